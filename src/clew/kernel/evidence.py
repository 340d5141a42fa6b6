"""Evidence: whether an agent took a prompt. Read from the agent's own store, never inferred from what Clew did."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NewType

from clew.kernel.ids import RunId
from clew.kernel.reason import Reason

PromptId = NewType("PromptId", str)
"""Chosen by Clew for every prompt before it is sent: a UUID of version 7, so that ids sort by time."""


class Evidence(StrEnum):
    """How far a prompt got, according to the agent's store, not to ours."""

    UNSENT = "unsent"
    """The store is there, whole, and does not hold the prompt."""
    TAKEN = "taken"
    """The store holds it, and nothing follows it."""
    CUT_OFF = "cut-off"
    """The store holds it and part of a turn."""
    FINISHED = "finished"
    """The store holds it and a finished reply."""
    UNKNOWN = "unknown"
    """The store could not be read, was being written, or this provider is declared unable to tell."""


HELD_BY_AGENT = frozenset({Evidence.TAKEN, Evidence.CUT_OFF, Evidence.FINISHED})
"""The session has the prompt, so it has seen the entries in it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Identifies a prompt in an agent's store: by its id or, where a program stores no ids, by position and text.

    `turns` is the number of turns before it, as the agent counts them; None where the agent does not say.
    `digest` is `digest_of` the text.
    """

    id: PromptId
    digest: str
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class Attestation:
    """A store's answer about one prompt. `reply` is the finished reply. `able` is false when the provider can never
    tell, so that asking again is useless."""

    evidence: Evidence
    detail: str = ""
    reply: str = ""
    able: bool = True


def with_observed_work(heard: Attestation, worked: bool) -> Attestation:
    """Correct a store's answer: an agent that reported work has taken the prompt, whatever its store kept of it."""
    if not worked or heard.evidence not in (Evidence.UNSENT, Evidence.TAKEN):
        return heard
    return replace(
        heard, evidence=Evidence.CUT_OFF, detail=f"it told of its work in the turn; its store: {heard.detail}"
    )


@dataclass(frozen=True, slots=True)
class Unheard:
    """A run that ended without evidence on its prompt, or on a message that was sent during its turn.

    `hears`: the provider can be asked at all. `asked`: how often it was asked without an answer. `why`: its last
    answer.
    """

    run: RunId
    hears: bool = True
    asked: int = 0
    why: str = ""


_ASK_AGAIN_AFTER = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds to wait before a store is asked again, by how often it was asked without an answer."""


NEVER_AGAIN = 1000
"""Counted as asked this often when a store says that it can never tell: a person decides at once."""


class EvidenceReason(Reason):
    UNHEARD = (
        "prompt:unheard",
        (
            "Run {run} ended after its prompt may have been sent; first checking in the agent's own store whether it "
            "was taken{so_far}."
        ),
    )
    UNKNOWN = (
        "prompt:unknown",
        (
            "Clew cannot tell whether the agent took the prompt of run {run}{why}. "
            "`clew retry {run} --not-taken` sends it again in full if it is still wanted; if the agent did take it, "
            "the work is done twice. `clew retry {run} --taken` does not send it again: if the agent still has its "
            "session, it is asked to continue there; if the agent did not take it, say it again yourself."
        ),
    )


@dataclass(frozen=True, slots=True)
class AskNext:
    """The next step for prompts without evidence. `wait` is the time until their stores are asked again; None when a
    person has to decide."""

    reason: EvidenceReason
    words: str
    wait: float | None


def ask_next(unheard: Sequence[Unheard]) -> AskNext | None:
    """None when every prompt has evidence: then the next prompt may be sent."""
    waits = []
    for each in unheard:
        if not each.hears or each.asked > len(_ASK_AGAIN_AFTER):
            why = f" ({_bare(each.why)})" if _bare(each.why) else ""
            return AskNext(EvidenceReason.UNKNOWN, EvidenceReason.UNKNOWN.fill(run=each.run, why=why), None)
        waits.append(_ASK_AGAIN_AFTER[each.asked - 1] if each.asked else 0.0)
    if not waits:
        return None
    first = unheard[0]
    so_far = f" (asked {first.asked} times so far: {_bare(first.why)})" if first.asked and _bare(first.why) else ""
    return AskNext(EvidenceReason.UNHEARD, EvidenceReason.UNHEARD.fill(run=first.run, so_far=so_far), max(waits))


def _bare(sentence: str) -> str:
    return sentence.strip().rstrip(".?!")


def digest_of(text: str) -> str:
    """Lone surrogates, which no file can hold, are replaced first, as every provider does before it sends."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
