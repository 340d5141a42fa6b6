"""Joining: operations of one kind that wait at the same moment are done together, in one transaction."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from sqlalchemy import Connection

Result = TypeVar("Result")

LEADERS = 1
"""How many groups of a kind are under way at once: while the database works for one, the next is made ready."""

MOST = 32
"""How many operations stand in one group: enough to share what a transaction costs, few enough to answer soon."""

LINGER = 0.001
"""Seconds to wait for callers that were just answered and are likely to come again."""


class Joint(ABC, Generic[Result]):
    """An operation that can be done together with others of its kind."""

    reads: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, connection: Connection) -> Result:
        """It alone, in whatever way it takes."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What it is about: two about the same never stand in one group, and all groups take things in one order, so
        that nobody waits in a circle."""

    @abstractmethod
    def joins(self) -> bool:
        """Whether there is hope that it can be done together with others."""

    def found(self, connection: Connection) -> Self | None:  # noqa: ARG002 - for those who have something to find
        """The same with what has to be read before it joins; None where it cannot after all. Asked where it `reads`."""
        return self

    @classmethod
    @abstractmethod
    def together(cls, connection: Connection, group: Sequence[Self]) -> Sequence[Result | None]:
        """All of them; None for each of which nothing was done, because it takes more than that."""


@dataclass(slots=True, eq=False)
class _Caller:
    """The bell is for who waits; who leads at once needs none."""

    operation: Joint[Any]
    answer: Any = None
    leads: bool = False
    bell: threading.Event | None = None

    def call(self) -> None:
        if self.bell is not None:
            self.bell.set()


class Joiner:
    """The callers of one kind. Whoever comes while few groups are under way leads one: itself and all who wait. The
    others wait until they are answered, or until it is theirs to lead."""

    def __init__(self, serve: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._serve = serve
        self._gate = threading.Lock()
        self._arrived = threading.Condition(self._gate)
        self._crowd = 1
        self._waiting: deque[_Caller] = deque()
        self._leaders = 0

    def do(self, operation: Joint[Result]) -> Result | None:
        """What came of it in its group; None where it has to be done alone."""
        caller = _Caller(operation)
        with self._gate:
            caller.leads = self._leaders < LEADERS
            if caller.leads:
                self._leaders += 1
            else:
                caller.bell = threading.Event()
                self._waiting.append(caller)
                self._arrived.notify()
        if caller.bell is not None:
            caller.bell.wait()
        if caller.leads:
            self._lead(caller)
        result: Result | None = caller.answer
        return result

    def _lead(self, caller: _Caller) -> None:
        group = self._gathered(caller)
        try:
            answers = self._serve([each.operation for each in group])
            for each, answer in zip(group, answers, strict=True):
                each.answer = answer
        finally:
            # Whatever happened to the leader, nobody waits for it.
            for each in group:
                each.call()
            self._hand_on()

    def _gathered(self, caller: _Caller) -> list[_Caller]:
        with self._gate:
            # Who was answered last is likely to come again; alone, nobody waits for anybody.
            self._arrived.wait_for(lambda: len(self._waiting) >= self._crowd - 1, LINGER)
            group, left = {caller.operation.about: caller}, deque[_Caller]()
            for each in self._waiting:
                joins = len(group) < MOST and group.setdefault(each.operation.about, each) is each
                if not joins:
                    left.append(each)
            self._waiting, self._crowd = left, len(group)
        return [group[about] for about in sorted(group)]

    def _hand_on(self) -> None:
        with self._gate:
            if not self._waiting:
                self._leaders -= 1
                return
            leader = self._waiting.popleft()
        leader.leads = True
        leader.call()
