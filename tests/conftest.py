"""How deep the tests go: `make test-fast`, `make test`, or all there is (CLEW_THOROUGH=1, as `make proof` sets it)."""

import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.skipped import pytest_terminal_summary

# A hook that sums up a whole run must stand here, or it is not heard when the run is spread over processes.
__all__ = [
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_ignore_collect",
    "pytest_terminal_summary",
]

# A shared machine makes single examples slow at random, so no example has a deadline.
settings.register_profile("clew", deadline=None)
settings.register_profile("clew-ci", deadline=None, derandomize=True)
settings.register_profile("clew-thorough", deadline=None, max_examples=2_000)

THOROUGH = os.environ.get("CLEW_THOROUGH") == "1"
if THOROUGH:
    settings.load_profile("clew-thorough")
elif os.environ.get("CI"):
    settings.load_profile("clew-ci")
else:
    settings.load_profile("clew")

_HERE = Path(__file__).parent
_SLOW_ROOMS = (
    "story",
    "up",
    "docs",
    "house",
    "providers",
    "web",
    "workspaces",
    "cli/test_chat.py",
    "cli/test_db.py",
    "cli/test_end_to_end.py",
    "cli/test_install.py",
    "cli/test_program.py",
    "cli/test_terminal.py",
    "cli/test_work.py",
    "cli/test_wrong_lines.py",
    "daemon/test_guide.py",
    "daemon/test_kills.py",
    "kernel/test_enumeration.py",
    "kernel/test_lifecycle_machine.py",
    "server/test_auth.py",
    "server/test_live.py",
    "server/test_problems.py",
    "store/test_backup.py",
    "store/test_foreign.py",
    "store/test_overlaps.py",
    "store/test_races.py",
    "store/test_restart.py",
    "store/test_soak.py",
    "store/test_stateful.py",
    "store/two_steps",
)
"""Their tests start programs, read the whole project, or walk through very many cases."""
_SLOW_FIXTURES = frozenset({"agents", "postgres"})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-fast` does not even import what it would leave out: every worker would do it again."""
    return True if config.getoption("markexpr") == "not slow" and _in_slow_room(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: looking through it for garbage takes a fifth of the time of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Mark as slow what starts an agent, a server or a PostgreSQL; leave out what is for `make proof` alone."""
    for item in items:
        if _is_slow(item):
            item.add_marker(pytest.mark.slow)
    if not THOROUGH:
        config.hook.pytest_deselected(items=[item for item in items if _is_proof(item)])
        items[:] = [item for item in items if not _is_proof(item)]


def _is_proof(item: pytest.Item) -> bool:
    """`proof` is for all of a test, `proof("postgresql")` for its variants with that value."""
    call = getattr(item, "callspec", None)
    values = () if call is None else tuple(map(str, call.params.values()))
    return any(not mark.args or any(each in values for each in mark.args) for mark in item.iter_markers("proof"))


def _in_slow_room(path: Path) -> bool:
    return path.is_relative_to(_HERE) and path.relative_to(_HERE).as_posix().startswith(_SLOW_ROOMS)


def _is_slow(item: pytest.Item) -> bool:
    if _in_slow_room(item.path) or not _SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    call = getattr(item, "callspec", None)
    return call is not None and "postgresql" in call.params.values()
