"""Reports and ends as the outbox keeps them: JSON that a later Clew reads, too."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from clew.daemon.outbox import Letter
from clew.kernel import (
    AccountId,
    ApprovalId,
    Attestation,
    Cursor,
    Directory,
    EntrySeq,
    Evidence,
    FailureKind,
    Floor,
    NativeId,
    RunId,
    WaitsFor,
)
from clew.protocol.reports import (
    Asked,
    Completed,
    End,
    Failed,
    Finish,
    NewSession,
    Report,
    Returned,
    RunEventRecord,
    Steered,
    Stopped,
    StoreAnswer,
    StoreAsked,
    Usage,
)

REPORT, FINISH = "report", "finish"

_ENDS: Mapping[str, type[End]] = {each.__name__: each for each in (Completed, Failed, Returned, Stopped, StoreAsked)}


def letter_of(said: Report | Finish) -> Letter:
    if isinstance(said, Finish):
        end = {"is": type(said.end).__name__, **asdict(said.end)}
        return Letter(said.run, said.attempt, FINISH, _text({"end": end, "pin": _pin(said.pin)}))
    if (
        said.opens
        or said.settled
        or said.landed is not None
        or said.told is not None
        or said.prompted is not None
        or said.reopens
    ):
        raise ValueError("what decides whether a prompt goes out is asked, and never said later")
    body = {
        "pin": _pin(said.pin),
        "tool_ran": said.tool_ran,
        "asks": [asdict(ask) for ask in said.asks],
        "answered": said.answered,
        "steered": None if said.steered is None else asdict(said.steered),
        "events": [[event.seq, event.kind, event.body] for event in said.events],
    }
    return Letter(said.run, said.attempt, REPORT, _text(body))


def read_letter(letter: Letter) -> Report | Finish:
    """Raises ValueError, TypeError or KeyError where it cannot be read."""
    body = json.loads(letter.body)
    pin = None if body["pin"] is None else _read_pin(body["pin"])
    if letter.kind == FINISH:
        return Finish(letter.run, letter.attempt, _read_end(body["end"]), pin)
    if letter.kind != REPORT:
        raise ValueError(f"there are no letters of the kind {letter.kind!r}")
    return Report(
        letter.run,
        letter.attempt,
        pin=pin,
        tool_ran=body["tool_ran"],
        asks=tuple(Asked(ApprovalId(ask["id"]), ask["question"], ask["expires_at"]) for ask in body["asks"]),
        answered=body["answered"],
        steered=_read_steered(body.get("steered")),
        events=tuple(RunEventRecord(seq, kind, text) for seq, kind, text in body["events"]),
    )


def _text(body: Mapping[str, Any]) -> str:
    # ASCII, so that half a letter in an agent's output is kept as it came.
    return json.dumps(body, ensure_ascii=True)


def _pin(pin: NewSession | None) -> dict[str, Any] | None:
    return None if pin is None else asdict(pin)


def _read_end(said: dict[str, Any]) -> End:
    kind = _ENDS[said.pop("is")]
    if "usage" in said:
        said["usage"] = Usage(**said["usage"])
    if kind is Failed:
        said["kind"] = FailureKind(said["kind"])
    if kind is Returned:
        said["waits_for"] = WaitsFor(said["waits_for"])
    if kind in (Failed, Stopped):
        said["heard"] = _read_attestation(said.get("heard"))
    if kind is StoreAsked:
        said["answers"] = tuple(
            StoreAnswer(RunId(each["run"]), _read_attestation(each["prompt"]), _read_attestation(each["steered"]))
            for each in said["answers"]
        )
    return kind(**said)


def _read_attestation(said: dict[str, Any] | None) -> Attestation | None:
    return None if said is None else Attestation(**{**said, "evidence": Evidence(said["evidence"])})


def _read_pin(said: dict[str, Any]) -> NewSession:
    cursor, directory, floor = said["cursor"], said["directory"], said["floor"]
    return NewSession(
        cursor=Cursor(cursor["version"], NativeId(cursor["native_id"]), cursor["extra"]),
        directory=Directory(directory["path"], directory["real"]),
        account=None if said["account"] is None else AccountId(said["account"]),
        begins=EntrySeq(said["begins"]),
        also=_entries(said["also"]),
        floor=None if floor is None else Floor(floor["generation"], EntrySeq(floor["entry"]), _entries(floor["kept"])),
        model=said["model"],
        mode=said["mode"],
        instructions=said["instructions"],
        tools=said["tools"],
        seen=EntrySeq(said.get("seen", 0)),
        credential=said.get("credential"),
    )


def _read_steered(said: dict[str, Any] | None) -> Steered | None:
    return None if said is None else Steered(said["taken"], EntrySeq(said["through"]))


def _entries(numbers: list[int]) -> tuple[EntrySeq, ...]:
    return tuple(map(EntrySeq, numbers))
