"""Tests that are skipped because this machine lacks what they need: counted, and said loudly at the end of the run."""

import os
from collections import Counter
from dataclasses import dataclass
from typing import NoReturn

import pytest


@dataclass(frozen=True)
class Want:
    """What some tests need of this machine. With `needed` set to 1 in the environment, its absence fails them."""

    mark: str
    """How the reason of such a skip begins."""
    needed: str
    title: str
    unproven: str


AGENT = Want(
    "no agent: ",
    "CLEW_NEED_AGENTS",
    "SKIPPED FOR WANT OF AN AGENT",
    "What these would prove of the real programs is not proven by this run.",
)
BROWSER = Want(
    "no browser: ",
    "CLEW_NEED_BROWSER",
    "SKIPPED FOR WANT OF A BROWSER",
    "The pages were not tested as a person sees them.",
)
INDEX = Want(
    "no package index: ",
    "CLEW_NEED_INDEX",
    "SKIPPED FOR WANT OF A PACKAGE INDEX",
    "`uv tool install` and `pipx install` were not tried.",
)


def skip(want: Want, reason: str) -> NoReturn:
    if os.environ.get(want.needed) == "1":
        pytest.fail(f"{want.mark}{reason}")
    pytest.skip(f"{want.mark}{reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("skipped")
    reasons = Counter(str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple))
    for want in (AGENT, BROWSER, INDEX):
        ours = {reason.partition(want.mark)[2]: count for reason, count in reasons.items() if want.mark in reason}
        if not ours:
            continue
        terminalreporter.section(want.title, sep="!", red=True, bold=True)
        for reason, count in ours.items():
            terminalreporter.line(f"{count} {'test' if count == 1 else 'tests'}: {reason}", red=True)
        terminalreporter.line(want.unproven, red=True)
