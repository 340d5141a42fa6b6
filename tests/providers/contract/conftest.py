"""Every contract test runs once for each rig; what came of it is written down when CLEW_CONTRACT_TABLE names a file."""

import inspect
import itertools
import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests import skipped
from tests.providers.contract.stage import CORE, UNABLE, Stage, Troupe
from tests.providers.rig import NotPlayed, Rig, rigs
from tools.contract_table import in_words

_number = itertools.count(1)


@pytest.fixture(scope="session", params=rigs(), ids=lambda rig: rig.name)
def troupe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troupe]:
    kind: type[Rig] = request.param
    agents = request.getfixturevalue("agents") if kind.real else None
    troupe = Troupe(kind(tmp_path_factory.mktemp(kind.name.replace(":", "-")), agents))
    try:
        troupe.begin()
        yield troupe
    finally:
        troupe.close()


@pytest.fixture
def stage(troupe: Troupe, request: pytest.FixtureRequest) -> Iterator[Stage]:
    stage = Stage(troupe, request.node, next(_number))
    yield stage
    if troupe.rig.model is not None:
        troupe.rig.model.ok()
        troupe.rig.model.up()
    stage.run(stage.clear())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A contract test is a coroutine, and the loop of its rig runs it."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    stage = pyfuncitem.funcargs["stage"]
    assert isinstance(stage, Stage)
    names = inspect.signature(pyfuncitem.obj).parameters
    try:
        stage.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    except NotPlayed as why:
        stage.unable(str(why))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """A brief rig plays the core alone, a long one nothing. A program that stays does so in one worker."""
    for item in items:
        rig = _rig(item)
        if rig is not None and rig.warm:
            item.add_marker(pytest.mark.xdist_group(rig.name))
    if os.environ.get("CLEW_THOROUGH") == "1":
        return
    left = [item for item in items if _is_left_out(item)]
    items[:] = [item for item in items if not _is_left_out(item)]
    config.hook.pytest_deselected(items=left)


def _is_left_out(item: pytest.Item) -> bool:
    rig = _rig(item)
    return rig is not None and (rig.long or (rig.brief and not hasattr(getattr(item, "obj", None), CORE)))


def _rig(item: pytest.Item) -> type[Rig] | None:
    call = getattr(item, "callspec", None)
    return call.params.get("troupe") if call is not None else None


# ---------------------------------------------------------------- the table

RESULTS = pytest.StashKey[list[dict[str, str]]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    rig = _rig(item)
    if rig is not None and (report.when == "call" or report.outcome != "passed"):
        row = {"rig": rig.name, "about": item.path.stem.removeprefix("test_"), "behaviour": in_words(item.name)}
        item.config.stash.setdefault(RESULTS, []).append({**row, "result": _result(report)})
    return report


def _result(report: pytest.TestReport) -> str:
    # With CLEW_NEED_AGENTS what cannot be tried is a failure of the run, and none of the provider.
    if report.skipped or (report.failed and skipped.AGENT.mark in str(report.longrepr)):
        return "not installed"
    if report.failed:
        return "fails"
    return UNABLE if any(name == UNABLE for name, _ in report.user_properties) else "yes"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One file for each worker; tools/contract_table.py merges them."""
    wanted = os.environ.get("CLEW_CONTRACT_TABLE")
    if wanted:
        path = Path(wanted)
        worker = getattr(session.config, "workerinput", {}).get("workerid", "main")
        results = session.config.stash.get(RESULTS, [])
        path.with_name(f"{path.stem}.{worker}{path.suffix}").write_text(json.dumps(results), encoding="utf-8")
