"""Events as lines of a conversation."""

from collections.abc import Mapping

import pytest

from clew.cli.activity import line_of
from clew.protocol.views import EventView
from tests.cli import samples


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"name": "commandExecution", "command": "/bin/bash -lc 'git diff && ls'"}, "Command: git diff && ls"),
        ({"name": "Bash", "command": "bash -c \"it's"}, "Bash: bash -c \"it's"),
        ({"name": "Edit", "file": "/srv/maze.py"}, "Edit: /srv/maze.py"),
        ({"name": "Edit", "file": f"/{'deep/' * 12}web/issue-3-ada/maze.py"}, "Edit: …/web/issue-3-ada/maze.py"),
        ({"name": "fileChange", "file": "a.py\nb.py"}, "Change: a.py b.py"),
    ],
)
def test_a_tool_is_told_in_a_short_line(body: Mapping[str, object], line: str) -> None:
    assert line_of(EventView(1, "tool-started", samples.AT, body)) == line
