"""Joining: callers who come at the same moment are served as one group, and each has its own answer."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, text

from clew.store.joining import MOST, Joiner, Joint
from clew.store.statement import POSTGRESQL
from tests.store.kit import Daemon


@dataclass(frozen=True)
class Note(Joint[str]):
    number: int
    about_it: str = ""

    @property
    def about(self) -> str:
        return self.about_it or f"{self.number:04}"

    def __call__(self, _: Connection) -> str:
        return f"alone {self.number}"

    def joins(self) -> bool:
        return True

    @classmethod
    def together(cls, _: Connection, group: Sequence["Note"]) -> Sequence[str | None]:
        return [f"together {each.number}" for each in group]


def test_every_caller_is_answered_once_and_with_its_own_answer() -> None:
    groups: list[list[Note]] = []

    def serve(group: Sequence[Note]) -> list[str]:
        groups.append(list(group))
        return [f"did {each.number}" for each in group]

    joiner = Joiner(serve)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda number: joiner.do(Note(number)), range(2000)))
    assert answers == [f"did {number}" for number in range(2000)]
    assert sorted(each.number for group in groups for each in group) == list(range(2000))
    assert all(group == sorted(group, key=lambda each: each.about) for group in groups)


def test_who_waits_while_a_group_is_under_way_is_in_the_next_and_two_of_one_kind_are_not_in_one() -> None:
    started, go_on, groups = threading.Event(), threading.Event(), list[list[int]]()

    def serve(group: Sequence[Note]) -> list[str]:
        groups.append([each.number for each in group])
        started.set()
        go_on.wait(30)
        return ["done" for _ in group]

    joiner = Joiner(serve)
    with ThreadPoolExecutor(MOST + 8) as pool:
        first = pool.submit(joiner.do, Note(0))
        assert started.wait(30)
        others = [pool.submit(joiner.do, Note(number, f"{number % 3}")) for number in range(1, 7)]
        while len(joiner._waiting) < len(others):  # noqa: SLF001 - until all of them wait
            pass
        go_on.set()
        assert {each.result(30) for each in (first, *others)} == {"done"}
    assert groups[0] == [0]
    assert [len(group) for group in groups[1:]] == [3, 3]
    assert all(len({number % 3 for number in group}) == len(group) for group in groups[1:])


def test_a_leader_that_fails_leaves_nobody_waiting() -> None:
    def serve(_: Sequence[Note]) -> list[str]:
        raise ValueError("no")

    joiner = Joiner(serve)

    def ask(number: int) -> str | None:
        try:
            return joiner.do(Note(number))
        except ValueError as fault:
            return str(fault)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(ask, range(200)))
    # Whoever led hears of it; the others do it alone, and hear what is wrong with theirs.
    assert answers <= {"no", None}
    assert "no" in answers


def refused_by_the_database(connection: Connection, _: Sequence[Note]) -> Sequence[str | None]:
    connection.execute(text("SELECT 1 / 0"))
    return []


def wrong_in_one_of_them(_: Connection, group: Sequence[Note]) -> Sequence[str | None]:
    raise TypeError(f"{group[0].number} has no place in a statement")


@pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)
@pytest.mark.parametrize("fails", [refused_by_the_database, wrong_in_one_of_them])
def test_what_cannot_be_done_together_is_done_alone(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., Sequence[str | None]]
) -> None:
    assert daemon.write(Note(1)) == "together 1"
    monkeypatch.setattr(Note, "together", fails)
    assert daemon.write(Note(1)) == "alone 1"


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_a_file_does_each_alone_and_shares_the_commit(daemon: Daemon) -> None:
    assert daemon.write(Note(1)) == "alone 1"
