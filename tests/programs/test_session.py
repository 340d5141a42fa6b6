"""Open sessions: they close once, have one turn at a time, and each part of a request is answered once."""

import asyncio

import pytest

from clew.kernel import ApprovalId
from clew.programs.faults import Refused
from clew.programs.session import OpenRequests, OpenSession, Request

ONE, TWO, THREE = (ApprovalId(each) for each in ("one", "two", "three"))


def test_a_request_is_answered_when_all_its_parts_are() -> None:
    requests: OpenRequests[str] = OpenRequests()
    requests.add(Request(7, "about", {ONE: "first", TWO: "second"}))
    first = requests.record(TWO, "yes")
    assert first is not None
    assert (first.is_answered, bool(requests)) == (False, True)
    assert requests.record(TWO, "again") is None, "each part is answered once"
    assert requests.record(ONE, None) is first
    assert (first.is_answered, bool(requests)) == (True, False)
    assert first.answers == {TWO: "yes", ONE: None}


def test_a_request_that_is_withdrawn_can_not_be_answered() -> None:
    requests: OpenRequests[str] = OpenRequests()
    requests.add(Request(7, "about", {ONE: "", TWO: ""}))
    requests.add(Request("8", "other", {THREE: ""}))
    requests.withdraw(7)
    assert requests.record(ONE, "yes") is None
    assert requests
    requests.clear()
    assert requests.record(THREE, "yes") is None
    assert not requests


class Session(OpenSession):
    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self.closes = 0
        self._fault = fault

    def turn(self, running: object) -> None:
        self._must_be_idle(running)

    async def _close(self) -> None:
        self.closes += 1
        await asyncio.sleep(0.02)
        if self._fault is not None:
            raise self._fault


def test_a_session_closes_once_and_a_cancelled_caller_does_not_stop_that() -> None:
    async def scene() -> None:
        sessions: set[Session] = set()
        session = Session().listed_in(sessions)
        assert sessions == {session}
        impatient = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(session.close(), session.close())
        assert (session.closes, sessions) == (1, set())

    asyncio.run(scene())


def test_what_a_session_holds_is_released_even_where_its_close_fails() -> None:
    async def scene() -> None:
        released = list[str]()
        session = Session(OSError("the disk is gone"))
        session.after_close.callback(released.append, "lock")
        for _ in range(2):
            with pytest.raises(OSError, match="the disk is gone"):
                await session.close()
        assert released == ["lock"]

    asyncio.run(scene())


def test_a_turn_is_refused_beside_another_and_after_the_close() -> None:
    async def scene() -> None:
        session = Session()
        session.turn(None)
        with pytest.raises(Refused, match="is running"):
            session.turn(object())
        await session.close()
        with pytest.raises(Refused, match="is closed"):
            session.turn(None)

    asyncio.run(scene())
