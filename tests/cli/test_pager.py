"""Long output is paged at a terminal, and nowhere else."""

from dataclasses import replace
from pathlib import Path

import pytest

from clew.protocol.views import EntryView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Stub
from tests.cli.terminal import terminal

LONG_PAGE = replace(
    samples.PAGE,
    entries=tuple(EntryView(seq, "human", "me", f"line {seq}", samples.AT) for seq in range(1, 60)),
    approvals=(),
)


def pager(tmp_path: Path) -> str:
    """Shows what it was given between two marks."""
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\necho '<<<'\ncat\necho '>>>'\n")
    script.chmod(0o700)
    return str(script)


@pytest.mark.parametrize("columns", [80, 200])
def test_what_does_not_fit_the_screen_is_paged(stub: Stub, tmp_path: Path, columns: int) -> None:
    stub.on("GET", "/threads/issue-3", LONG_PAGE)
    stub.on("GET", "/why/issue-3", samples.WHY)
    with terminal(
        "thread", "show", "issue-3", columns=columns, CLEW_DATA=str(stub.data), PAGER=pager(tmp_path)
    ) as screen:
        screen.until("<<<\n")
        shown = screen.until(">>>\n")
        assert screen.ended() == 0
    assert "line 1\n" in shown
    assert "line 59\n" in shown
    # What fits is printed.
    with terminal("why", "issue-3", columns=columns, CLEW_DATA=str(stub.data), PAGER=pager(tmp_path)) as screen:
        screen.until("reseed: Its session is lost")
        assert screen.ended() == 0
    assert "<<<" not in screen.seen


def test_a_pipe_is_not_paged(stub: Stub, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stub.on("GET", "/threads/issue-3", LONG_PAGE)
    monkeypatch.setenv("PAGER", "false")
    assert "line 59\n" in here(capfd, "thread", "show", "issue-3").out
