"""Wrong types break the caller's contract: each raises ValueError with what was expected, as docs/kernel.md says."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clew.kernel import (
    AdmissionPolicy,
    Directory,
    ReadState,
    Source,
    SourceRead,
    admit,
    coalesce,
    decide,
    explain,
    headline,
    read_subject,
    replay,
    settle,
    verify,
)
from tests.kernel.kit import situation

WRONG: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
    (decide, (None,), "what is to be decided must be Situation, and is NoneType"),
    (decide, ({"run": "rn_1"},), "must be Situation, and is dict"),
    (settle, (None, None), "the plan to settle must be Plan"),
    (verify, ("plan", None), "the plan to verify must be Plan, and is str"),
    (explain, (None,), "the plan to explain must be Plan, and is NoneType"),
    (headline, ("resume",), "the plan to explain must be Plan, and is str"),
    (admit, (None, AdmissionPolicy()), "what is asked must be Request"),
    (coalesce, ("wk_1",), "each of the wakes to coalesce must be Wake, and is str"),
    (coalesce, (None,), "what is to be coalesced must be Iterable, and is NoneType"),
    (read_subject, (7,), "a subject must be str, and is int"),
    (Directory, (None,), "the path of a directory must be str"),
    (replay, (None,), "the record of a decision must be Mapping, and is NoneType"),
]


@pytest.mark.parametrize(("function", "arguments", "words"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_type_raises_a_value_error(
    function: Callable[..., object], arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        function(*arguments)


@pytest.mark.parametrize("field", ["here", "demand", "sources", "head", "place", "policy", "floor", "probes"])
def test_a_situation_with_a_field_of_another_type_is_refused(field: str) -> None:
    wrong: Any = {field: "something else"}
    with pytest.raises(ValueError, match=f"the field {field} of a situation must be"):
        replace(situation(), **wrong)


def test_a_source_that_answered_with_nothing_has_no_session() -> None:
    known = replace(situation(), sources=(SourceRead(Source.LANE, ReadState.ANSWERED),))
    steps = {step.subject: step for step in decide(known).trace if step.rule == "source"}
    assert (steps["lane"].code, steps["lane"].words) == ("source:empty", "It has no session.")
