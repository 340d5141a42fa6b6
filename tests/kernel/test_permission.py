"""Permission modes: an order that is never widened."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from clew.kernel.permission import (
    ModeReason,
    PermissionMode,
    choose_mode,
    parse_mode,
)

READ, ASK, EDIT, FULL = PermissionMode
ALL = tuple(PermissionMode)


def subsets() -> Iterator[tuple[PermissionMode, ...]]:
    for size in range(len(ALL) + 1):
        yield from combinations(ALL, size)


@pytest.mark.case("A01")
def test_the_four_modes_are_ordered_from_strict_to_wide() -> None:
    assert [mode.value for mode in ALL] == ["read", "ask", "edit", "full"]
    assert [mode.rank for mode in ALL] == [0, 1, 2, 3]
    assert READ < ASK < EDIT < FULL
    assert sorted((EDIT, READ, FULL, ASK)) == list(ALL)
    assert [str(mode) for mode in ALL] == ["read", "ask", "edit", "full"]


@pytest.mark.case("A01")
def test_every_comparison_is_that_of_the_ranks() -> None:
    for one, two in product(ALL, ALL):
        assert (one < two, one <= two) == (one.rank < two.rank, one.rank <= two.rank)
        assert (one > two, one >= two) == (one.rank > two.rank, one.rank >= two.rank)


@pytest.mark.case("A01")
@pytest.mark.parametrize("wanted", ALL)
def test_the_mode_is_the_widest_expressible_that_nobody_forbids(wanted: PermissionMode) -> None:
    for limits, expressible in product(subsets(), subsets()):
        check_choice(wanted, limits, expressible)


def check_choice(
    wanted: PermissionMode, limits: tuple[PermissionMode, ...], expressible: tuple[PermissionMode, ...]
) -> None:
    choice = choose_mode(wanted, limits, frozenset(expressible))
    fine = [mode for mode in expressible if mode.rank <= wanted.rank and all(mode.rank <= cap.rank for cap in limits)]
    assert choice.wanted is wanted
    assert choice.mode is (fine[-1] if fine else None)
    assert choice == choose_mode(wanted, limits[::-1], frozenset(expressible))
    cap = min([wanted, *limits], key=lambda mode: mode.rank)
    if not fine:
        assert choice.reason is ModeReason.INEXPRESSIBLE
    elif fine[-1] is not cap:
        assert choice.reason is ModeReason.STRICTER
    elif cap is not wanted:
        assert choice.reason is ModeReason.CAPPED
    else:
        assert choice.reason is ModeReason.AS_WANTED


@pytest.mark.case("A01")
@pytest.mark.parametrize(
    ("limits", "expressible", "code", "words"),
    [
        ((), ALL, "mode:as-wanted", "The mode is edit, as asked."),
        ((ASK,), ALL, "mode:capped", "The mode is ask: edit was asked, but a limit allows no more."),
        (
            (),
            (READ, FULL),
            "mode:stricter",
            "The mode is read: edit cannot be expressed here, so the next stricter is used.",
        ),
        ((), (FULL,), "mode:inexpressible", "Neither edit nor anything stricter can be expressed here."),
    ],
)
def test_the_choice_says_why(
    limits: tuple[PermissionMode, ...], expressible: tuple[PermissionMode, ...], code: str, words: str
) -> None:
    choice = choose_mode(EDIT, limits, frozenset(expressible))
    assert (choice.reason.code, choice.words) == (code, words)


@pytest.mark.case("A02")
@pytest.mark.parametrize("text", [None, "", "FULL", "Full", "full ", "bypass", "4", "3"])
def test_an_unknown_or_missing_mode_is_the_strictest(text: str | None) -> None:
    assert parse_mode(text) is READ


@pytest.mark.case("A02")
@pytest.mark.parametrize("mode", ALL)
def test_a_mode_is_found_by_its_name(mode: PermissionMode) -> None:
    assert parse_mode(mode.value) is mode
