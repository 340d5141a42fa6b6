"""How far a prompt came, by rows that a test can hardly bring OpenCode to write."""

from typing import Any

import pytest

from clew import kernel
from clew.kernel import Evidence, PromptId, Sent, digest_of
from clew.programs.secrets import Redactor
from clew.providers.opencode.evidence import Message, StoredPrompt, attestation

TEXT = "do it"
SENT = Sent(PromptId("0"), digest_of(TEXT))


def prompt(id_: str = "m0", text: str = TEXT, at: int = 0, **part: Any) -> Message:
    return Message(id_, {"role": "user", "time": {"created": at}}, ({"type": "text", "text": text, **part},))


def said(
    text: str, at: int, *parts: dict[str, Any], of: str = "m0", finish: str | None = "stop", **info: Any
) -> Message:
    time = {"created": at} if finish is None else {"created": at, "completed": at + 10}
    about = {"role": "assistant", "parentID": of, "time": time, **info}
    if finish is not None:
        about["finish"] = finish
    return Message(f"m{at}", about, (*parts, {"type": "text", "text": text}))


def tool(status: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool", "state": {"status": status, **more}}


def of(*messages: Message, undone: bool = False) -> kernel.Attestation:
    return attestation(StoredPrompt("/", messages, undone), SENT, Redactor({"MY_TOKEN": "hush-hush"}))


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("messages", "evidence", "reply"),
    [
        ((), Evidence.UNSENT, ""),
        ((prompt(),), Evidence.TAKEN, ""),
        ((Message("m0", {"role": "user"}, ()),), Evidence.UNSENT, ""),
        ((prompt(), said("", 5, finish=None)), Evidence.CUT_OFF, ""),
        ((prompt(), said("half", 5, finish=None)), Evidence.CUT_OFF, ""),
        ((prompt(), Message("m1", {"role": "assistant"}, ({"type": "step-start"},))), Evidence.TAKEN, ""),
        ((prompt(), Message("m1", {"role": "assistant", "error": {"name": "APIError"}}, ())), Evidence.TAKEN, ""),
        ((prompt(), said("whole", 5)), Evidence.FINISHED, "whole"),
        ((prompt(), said("too long", 5, finish="length")), Evidence.FINISHED, "too long"),
        ((prompt(), said("broken", 5, error={"name": "MessageAbortedError"})), Evidence.CUT_OFF, ""),
        # A tool's result would have gone to the model, and did not.
        ((prompt(), said("let me see", 5, tool("completed"), finish="tool-calls")), Evidence.CUT_OFF, ""),
        ((prompt(), said("let me see", 5, tool("completed"))), Evidence.CUT_OFF, ""),
        (
            (prompt(), said("seen", 5, {**tool("completed"), "metadata": {"providerExecuted": True}})),
            Evidence.FINISHED,
            "seen",
        ),
        ((prompt(), said("well", 5, tool("error", metadata={"interrupted": True}))), Evidence.FINISHED, "well"),
        # The last words that there are.
        ((prompt(), said("first", 5, finish="tool-calls"), said("", 20)), Evidence.FINISHED, "first"),
        ((prompt(), said("the word is hush-hush", 5)), Evidence.FINISHED, "the word is [hidden]"),
    ],
)
def test_a_turn_by_its_rows(messages: tuple[Message, ...], evidence: Evidence, reply: str) -> None:
    answer = of(*messages)
    assert (answer.evidence, answer.reply) == (evidence, reply)


@pytest.mark.case("P19")
def test_a_later_turn_is_not_the_answer_of_one_that_was_cut_off() -> None:
    later = (prompt("m9", "go on", 90), said("answer", 95, of="m9"))
    assert of(prompt(), *later).evidence is Evidence.TAKEN
    assert of(prompt(), said("half", 5, finish=None), *later).evidence is Evidence.CUT_OFF
    assert of(prompt(), said("see", 5, tool("completed"), finish="tool-calls"), *later).evidence is Evidence.CUT_OFF


@pytest.mark.case("P19")
def test_an_answer_stands_although_what_was_told_meanwhile_was_cut_off() -> None:
    answer = of(prompt(), said("mine", 5), prompt("m9", "and this", 9), said("half", 20, of="m9", finish=None))
    assert (answer.evidence, answer.reply) == (Evidence.FINISHED, "mine")


@pytest.mark.case("P19")
def test_a_history_that_was_made_shorter_is_still_the_same_turn() -> None:
    cut = said("step", 5, tool("completed"), finish="tool-calls")
    shorter = Message("m20", {"role": "user", "time": {"created": 20}}, ({"type": "compaction"},))
    summary = said("what we did", 25, of="m20", summary=True)
    onward = prompt("m40", "go on", 40, synthetic=True)
    assert of(prompt(), cut, shorter, summary).evidence is Evidence.CUT_OFF
    answer = of(prompt(), cut, shorter, summary, onward, said("done", 45, of="m40"))
    assert (answer.evidence, answer.reply) == (Evidence.FINISHED, "done")
    # Put once more by OpenCode itself, it is the same prompt; another one is not.
    answer = of(prompt(), shorter, summary, prompt("m40", TEXT, 40), said("done", 45, of="m40"))
    assert (answer.evidence, answer.reply) == (Evidence.FINISHED, "done")
    other = of(prompt(), shorter, summary, prompt("m40", "other", 40), said("done", 45, of="m40"))
    assert other.evidence is Evidence.TAKEN


@pytest.mark.case("P19")
def test_what_was_undone_and_what_has_no_session() -> None:
    assert of(prompt(), said("whole", 5), undone=True).evidence is Evidence.UNKNOWN
    assert attestation(None, SENT, Redactor({})).evidence is Evidence.UNSENT
