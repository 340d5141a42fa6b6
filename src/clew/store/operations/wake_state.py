"""A wake's next state as SQL: the kernel's table of wakes, for every statement that changes one."""

from sqlalchemy import ColumnElement, literal_column

from clew.kernel import WakeEvent, WakeState, advance_wake

PENDING = WakeState.PENDING.value
"""Compared as a bound value where a row is found by its id: a literal would match the condition of ix_wakes_pending,
and PostgreSQL could scan that index from end to end."""


def state_after(state: WakeState, *events: WakeEvent) -> ColumnElement[str]:
    """The state after these events, as a literal. A transition that the kernel's table lacks raises ValueError."""
    for event in events:
        following = advance_wake(state, event)
        if following is None:
            raise ValueError(f"a wake that is {state} has no event {event}")
        state = following
    return state_literal(state)


def state_literal(state: WakeState) -> ColumnElement[str]:
    result: ColumnElement[str] = literal_column(f"'{state}'")
    return result
