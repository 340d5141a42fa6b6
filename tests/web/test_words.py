"""Values as people read them, the steps of a log in pages, and where a run's time went."""

import pytest

from clew.kernel import PermissionMode
from clew.protocol.views import EventView, RunView
from clew.web.conversation import steps_of, steps_until
from clew.web.modes import meanings
from clew.web.pages.run import headline
from clew.web.timeline import bars_of, opened_at, spans_of
from clew.web.words import coded, lasted


@pytest.mark.case("U04")
def test_only_the_marks_of_code_become_markup() -> None:
    assert coded("Run `clew up <b>`, <i>then</i> `") == "Run <code>clew up &lt;b&gt;</code>, &lt;i&gt;then&lt;/i&gt; `"


def test_durations() -> None:
    said = [lasted(0.0, seconds) for seconds in (0.34, 12.3, 60, 250, 3600, 7500)]
    assert said == ["340 ms", "12.3 s", "1 min", "4 min 10 s", "1 h", "2 h 5 min"]


def _tool(seq: int, name: str, ended: bool = False) -> EventView:
    body: dict[str, object] = {"id": name, "ok": True, "output": name} if ended else {"id": name, "name": name}
    return EventView(seq, "tool-finished" if ended else "tool-started", float(seq), body)


def test_pages_of_steps_show_each_line_once() -> None:
    log = [_tool(1, "a"), _tool(2, "a", True), _tool(3, "b"), _tool(4, "c"), _tool(5, "b", True), _tool(6, "c", True)]
    first, last = steps_until(log, 2)
    assert ([step.title for step in first], last) == (["a", "b"], 3)
    rest, end = steps_until(log[3:], 200)
    assert ([(step.title, step.output) for step in rest], end) == ([("c", "c"), ("Result", "b")], None)
    assert [step.lasted for step in steps_of(log)] == [1.0, 2.0, 2.0]


def _run(queued: float, started: float | None, ended: float | None) -> RunView:
    return RunView(
        *("rn", "run-1", "issue-1", "ada", "succeeded", 1),
        queued,
        started,
        ended,
        *(None, None, None, None, None, None, None),
    )


def test_where_the_time_went() -> None:
    run = _run(10, 12, 20)
    verified = EventView(3, "step", 15.0, {"what": "verify"})
    opened = opened_at([EventView(1, "step", 13.0, {"what": "open"}), verified])
    spans = spans_of(run, opened, now=99)
    assert [(span.kind, span.seconds) for span in spans] == [("waiting", 2), ("opening", 3), ("turn", 5)]
    assert [span.kind for span in spans_of(_run(10, None, None), None, now=14)] == ["waiting"]
    (bar,), axis = bars_of([(run, spans)])
    assert (axis, [(span.start, span.width) for span in bar.spans]) == (10, [(0, 20), (20, 30), (50, 50)])


def test_one_long_run_does_not_hide_the_others() -> None:
    runs = [_run(0, 0, 1), _run(0, 0, 1), _run(0, 0, 1000)]
    bars, axis = bars_of([(run, spans_of(run, None, 0)) for run in runs])
    assert (axis, [bar.cut for bar in bars], bars[2].spans[-1].width) == (4, [False, False, True], 100)


@pytest.mark.case("A01")
def test_a_mode_that_cannot_be_expressed_names_the_stricter_one() -> None:
    found = {each.mode: each for each in meanings("claude", [PermissionMode.ASK, PermissionMode.EDIT])}
    assert (found["full"].instead, found["edit"].instead, found["read"].none) == ("edit", "", True)
    assert all(not each.instead and not each.none and each.words for each in meanings("unheard-of"))


def test_a_headline_is_outcome_sentence_and_code() -> None:
    assert headline("reseed: It was lost: gone. [session:lost]") == ("reseed", "It was lost: gone.", "session:lost")
    assert headline("no colon") == ("", "no colon", "")
