"""An option that no provider knows: it is refused with those that it has, so that nothing is believed to be set."""

from collections.abc import Callable

import pytest

from clew.ports.provider import Provider, Settings
from clew.programs.faults import BadOptions
from clew.providers import acp, claude, codex, command, guide, opencode


@pytest.mark.parametrize(
    ("make", "has"),
    [
        (claude.make, "It has none"),
        (codex.make, "It has none"),
        (guide.make, "It has none"),
        (opencode.make, "It has agent, project-config."),
        (acp.make, "It has agent, asks, history, list"),
        (command.make, "It has "),
    ],
)
def test_an_option_that_is_not_known_is_refused(make: Callable[[Settings], Provider], has: str) -> None:
    with pytest.raises(BadOptions, match=r"has no option colour\.") as told:
        make(Settings(program=("true",), options={"colour": "red"}))
    assert told.value.remedy.startswith(has)
