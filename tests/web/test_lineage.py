from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import Outcome
from clew.protocol.lineage import LineageView, TurnDecision
from clew.protocol.views import RunView, SessionView
from clew.web.lineage import BAR, TICK, Drawing, SessionRow, draw
from tests.server.kit import House, inside

NOW = 1_000_000.0


def session(number: int, born: float = NOW, **more: object) -> SessionView:
    given_ = {
        "id": f"s{number}",
        "thread": "issue-1",
        "agent": "ada",
        "generation": number,
        "provider": "guide",
        "runtime": "rt",
        "native_id": f"n{number}",
        "directory": "/srv/shop/issue-1-ada",
        "state": "healthy",
        "turns": 1,
        "seen": number,
        "born_at": born,
        "proven_at": None,
        "resumability": "proven",
        "scope": "lane",
        "superseded": False,
    }
    return SessionView(**{**given_, **more})  # type: ignore[arg-type]


def run(number: int, of: str | None, at: float, agent: str = "ada", ended: bool = True) -> RunView:
    return RunView(
        id=f"r{number}",
        ref=f"run-{number}",
        thread="issue-1",
        agent=agent,
        state="succeeded" if ended else "running",
        attempt=1,
        queued_at=at,
        started_at=at,
        ended_at=at + 1 if ended else None,
        runtime="rt",
        session=of,
        decision="resume",
        decision_words="",
        claim=None,
        code=None,
        words=None,
    )


def decided(number: int, at: float, outcome: str, of: str | None = None, words: str = "Because.") -> TurnDecision:
    return TurnDecision(f"r{number}", at, outcome, words, of)


def drawn(sessions: list[SessionView], runs: list[RunView], *decisions: TurnDecision, more: bool = False) -> Drawing:
    return draw(LineageView(tuple(sessions), tuple(reversed(runs)), decisions, {"rt": "laptop"}, more))


def test_a_thread_without_sessions_has_an_empty_drawing() -> None:
    assert drawn([], []).rows == ()


def test_one_session() -> None:
    drawing = drawn([session(1)], [run(1, "s1", NOW)], decided(1, NOW, "blank", words="New conversation."))
    (row,) = drawing.rows
    assert row.label == "ada, session 1 on laptop in shop/issue-1-ada"
    assert (row.sentence, row.broke, row.current, row.live) == ("New conversation.", False, True, False)
    assert drawing.edges == ()


def test_a_reseed_breaks_continuity_and_says_why() -> None:
    first, second = session(1, NOW, state="lost"), session(2, NOW + 10)
    runs = [run(1, "s1", NOW), run(2, "s2", NOW + 9, ended=False)]
    drawing = drawn([second, first], runs, decided(1, NOW, "blank"), decided(2, NOW + 9, "reseed", words="It is gone."))
    old, new = drawing.rows
    assert [row.current for row in (old, new)] == [False, True]
    assert (new.parent, new.broke, new.live, new.by) == ("s1", True, True, runs[1])
    (edge,) = drawing.edges
    assert (edge.outcome, edge.words, edge.broke) == ("reseed", "It is gone.", True)


def test_a_fork_leads_from_the_session_that_it_continues() -> None:
    sessions = [session(number, NOW + number) for number in (1, 2, 3)]
    runs = [run(number, f"s{number}", NOW + number) for number in (1, 2, 3)]
    fork = decided(3, NOW + 3, "fork", "s1")
    drawing = drawn(sessions, runs, decided(1, NOW + 1, "blank"), decided(2, NOW + 2, "blank"), fork)
    assert (drawing.rows[2].parent, drawing.rows[2].broke) == ("s1", False)
    assert drawing.edges[1].path.startswith(f"M{drawing.rows[0].start:g} ")


def test_the_decision_that_made_a_session_is_shown_and_not_a_later_one_of_its_run() -> None:
    """A run that began a session and was tried again resumes it."""
    runs = [run(1, "s1", NOW)]
    again = decided(1, NOW + 50, "resume", "s1", "Continuing.")
    (row,) = drawn([session(1, NOW + 1)], runs, decided(1, NOW, "blank", words="New."), again).rows
    assert row.began is not None
    assert (row.began.outcome, row.sentence) == ("blank", "New.")


def test_where_the_first_run_of_a_session_is_not_known_nothing_is_said_of_how_it_began() -> None:
    runs = [run(7, "s1", NOW + 100)]
    (row,) = drawn([session(1, NOW)], runs, decided(7, NOW - 1, "blank"), more=True).rows
    assert (row.began, row.sentence) == (None, "")


def test_sixty_sessions_stand_below_one_another() -> None:
    sessions = [session(number, NOW + number) for number in range(1, 61)]
    runs = [run(number, f"s{number}", NOW + number) for number in range(1, 61)]
    made = [decided(number, NOW + number, "blank", words="x" * 500) for number in range(1, 61)]
    drawing = drawn(sessions, runs, *made)
    assert len(drawing.edges) == 59
    places = [tick.x for tick in drawing.ticks]
    assert len(places) > 1
    assert all(after - before >= TICK for before, after in pairwise(places))
    assert all(len(row.sentence) < 160 for row in drawing.rows)
    apart(drawing)


def apart(drawing: Drawing) -> None:
    """No row covers another, and nothing is outside."""

    def inside_of(row: SessionRow) -> bool:
        across = 0 <= row.start <= row.end <= drawing.width
        return across and all(row.start <= dot.x <= row.end for dot in row.dots) and row.top < row.y

    assert all(map(inside_of, drawing.rows))
    assert all(one.y + BAR < two.top for one, two in pairwise(drawing.rows))
    assert not drawing.rows or drawing.rows[-1].y + BAR < drawing.height


MOMENTS = st.integers(0, 50).map(lambda seconds: NOW + seconds)


@given(
    st.lists(st.tuples(MOMENTS, st.sampled_from(["ada", "bob"]), st.sampled_from(["lane", "r1"])), max_size=12),
    st.lists(st.tuples(MOMENTS, st.integers(0, 14), st.booleans()), max_size=20),
    st.lists(st.tuples(st.integers(0, 20), MOMENTS, st.sampled_from(Outcome), st.integers(0, 14)), max_size=20),
    st.booleans(),
)
def test_any_lineage_can_be_drawn(
    born: list[tuple[float, str, str]],
    used: list[tuple[float, int, bool]],
    made: list[tuple[int, float, Outcome, int]],
    more: bool,
) -> None:
    sessions = [session(number, at, agent=agent, scope=scope) for number, (at, agent, scope) in enumerate(born)]
    runs = [run(number, f"s{of}", at, ended=ended) for number, (at, of, ended) in enumerate(used)]
    decisions = [decided(number, at, outcome, f"s{of}") for number, at, outcome, of in made]
    drawing = drawn(sessions, runs, *sorted(decisions, key=lambda each: each.at), more=more)
    assert {row.session.id for row in drawing.rows} == {each.id for each in sessions}
    assert sum(row.current for row in drawing.rows) == len({each.agent for each in sessions if each.scope == "lane"})
    apart(drawing)


@pytest.mark.case("U04")
def test_the_page_of_a_thread_without_sessions_says_so_and_hostile_titles_are_text(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        title = "<svg onload=alert(1)>"
        await house.http.post("/api/v1/issues", json={"title": title})
        page = await house.http.get("/threads/issue-1/lineage")
        assert page.status_code == 200
        assert "No agent has had a conversation in this thread yet." in page.text
        assert title not in page.text
        assert (await house.http.get("/threads/issue-9/lineage")).status_code == 404
        assert (await house.stranger.get("/threads/issue-1/lineage")).status_code == 401

    inside(tmp_path, work)
