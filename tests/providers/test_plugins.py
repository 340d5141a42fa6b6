"""Providers are found by entry point; one that is broken is told and stops no other."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clew.kernel import Directory, PermissionMode
from clew.ports.events import Done
from clew.ports.plugins import BrokenPlugin, UnknownPlugin, find_providers
from clew.ports.provider import OpenSpec, Settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "parrot"
USED = """
import asyncio, sys
from clew.kernel import Directory, PermissionMode
from clew.ports.fault import Fault
from clew.ports.plugins import find_providers
from clew.ports.provider import OpenSpec, Settings

async def main():
    found = find_providers()
    print(*sorted({"guide", "parrot"} & set(found.makers)))
    home = {"PARROT_HOME": sys.argv[1] + "/home"}
    provider = found.make("parrot", Settings(options={"word": "there"}, home=home))
    print(provider.name, (await provider.discover()).version)
    spec = OpenSpec(Directory(sys.argv[1]), PermissionMode.FULL)
    session = await provider.open(spec)
    print([event async for event in session.turn("hello")][-1].reply)
    cursor = session.cursor
    await provider.close()
    provider = found.make("parrot", Settings(home=home))
    session = await provider.open(OpenSpec(spec.directory, spec.mode, cursor))
    print(session.landing.turns)
    try:
        await provider.open(OpenSpec(spec.directory, spec.mode, cursor, fork=True))
    except Fault as fault:
        print(fault.code)
    try:
        found.make("parrot", Settings(options={"colour": "red"}))
    except Fault as fault:
        print(fault.code)
    await provider.close()

asyncio.run(main())
"""

OWN = {"acp", "claude", "codex", "command", "guide", "opencode"}

# A provider of somebody else: a module of their own, and a line of metadata that names it.
PARROT = """
from clew.kernel import Capabilities, Landing, NativeId, ProviderName
from clew.ports.events import Done, Ending
from clew.ports.provider import Discovery

class Session:
    cursor = None
    def __init__(self, spec):
        self.landing = Landing(NativeId("parrot-1"), spec.directory)
    async def turn(self, prompt, id=None):
        yield Done(Ending.COMPLETED, prompt[::-1])
    async def close(self): ...

class Parrot:
    name = ProviderName("parrot")
    capabilities = Capabilities()
    def __init__(self, settings): self.settings = settings
    async def discover(self): return Discovery(True, "parrot", "1")
    async def open(self, spec): return Session(spec)
    async def close(self): ...

make = Parrot
"""


def package(site: Path, name: str, points: str, **modules: str) -> None:
    """A package as an installer leaves it: modules, and a directory of metadata beside them."""
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source, encoding="utf-8")
    metadata = site / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[clew.providers]\n{points}\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.case("P13")
def test_the_providers_of_clew_are_there_without_naming_them_anywhere() -> None:
    found = find_providers()
    assert set(found.makers) >= OWN - set(found.broken)
    assert {"acp", "command", "guide"} <= set(found.makers)


@pytest.mark.case("P13")
def test_a_provider_is_added_by_an_entry_point_alone(site: Path) -> None:
    package(site, "clew-parrot", "parrot = parrot_provider:make", parrot_provider=PARROT)

    async def talk() -> str:
        provider = find_providers().make("parrot", Settings())
        session = await provider.open(OpenSpec(Directory(str(site)), PermissionMode.READ))
        events = [event async for event in session.turn("hello")]
        await session.close()
        assert isinstance(events[-1], Done)
        return events[-1].reply

    assert asyncio.run(talk()) == "olleh"


def test_a_broken_provider_is_told_and_stops_no_other(site: Path) -> None:
    package(site, "clew-torn", "torn = torn_provider:make", torn_provider="raise RuntimeError('no such library')")
    package(site, "clew-gone", "gone = not_there:make")
    package(site, "clew-thing", "thing = thing_provider:make", thing_provider="make = 42")
    package(site, "clew-exit", "exit = exit_provider:make", exit_provider="raise SystemExit('bye')")
    package(site, "clew-late", "late = late_provider:make", late_provider="def make(settings): return 1 / 0")
    package(site, "clew-parrot", "parrot = parrot_provider_2:make", parrot_provider_2=PARROT)
    found = find_providers()
    assert {"parrot", "guide", "command"} <= set(found.makers)
    assert {"torn", "gone", "thing", "exit"} <= set(found.broken)
    assert "no such library" in found.broken["torn"].words
    assert "clew-torn" in found.broken["torn"].words
    assert found.broken["torn"].remedy
    with pytest.raises(BrokenPlugin, match="no such library"):
        found.make("torn", Settings())
    with pytest.raises(BrokenPlugin, match="ZeroDivisionError"):
        found.make("late", Settings())


def test_a_list_that_cannot_be_read_stops_no_other(site: Path) -> None:
    package(site, "clew-mute", "this line names nothing")
    package(site, "clew-odd", "odd = not a module at all!")
    package(site, "clew-parrot", "parrot = parrot_provider_3:make", parrot_provider_3=PARROT)
    found = find_providers()
    assert found.makers.keys() >= {"parrot", "guide", "command"}
    assert "clew-mute" in found.broken["those of clew-mute"].words
    assert "odd" in found.broken
    assert found.makers["guide"].__module__ == "clew.providers.guide"


@pytest.mark.parametrize("raised", ["BaseException", "GeneratorExit", "asyncio.CancelledError", "SystemExit"])
def test_nothing_that_a_package_raises_stops_another(site: Path, raised: str) -> None:
    module = f"wild_{raised.rpartition('.')[2].lower()}"
    source = f"import asyncio\nraise {raised}('bye')"
    package(site, "clew-wild", f"wild = {module}:make", **{module: source})
    late = f"import asyncio\ndef make(settings): raise {raised}('bye')"
    package(site, "clew-late", f"late = {module}_late:make", **{f"{module}_late": late})
    found = find_providers()
    assert "bye" in found.broken["wild"].words
    assert "guide" in found.makers
    with pytest.raises(BrokenPlugin, match="bye"):
        found.make("late", Settings())


def test_who_stops_clew_stops_it(site: Path) -> None:
    package(site, "clew-stop", "stop = stop_provider:make", stop_provider="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        find_providers()


def test_a_name_whose_provider_is_broken_passes_to_nobody(site: Path) -> None:
    package(site, "a-first", "same = first_provider:make", first_provider="raise RuntimeError('torn')")
    package(site, "b-second", "same = second_provider:make", second_provider=PARROT)
    found = find_providers()
    assert "same" not in found.makers
    assert "torn" in found.broken["same"].words
    assert "b-second" in found.broken["same of b-second"].words


def test_a_strangers_provider_does_not_replace_one_of_clew(site: Path) -> None:
    package(site, "a-guide", "guide = other_guide:make", other_guide=PARROT)
    found = find_providers()
    assert found.makers["guide"].__module__ == "clew.providers.guide"
    assert "a-guide" in found.broken["guide of a-guide"].words


@pytest.mark.parametrize("made", ["None", "exit()"])
def test_one_that_makes_nothing_is_named(site: Path, made: str) -> None:
    package(site, "a-void", "void = void_provider:make", void_provider=f"def make(settings): return {made}")
    with pytest.raises(BrokenPlugin, match="void"):
        find_providers().make("void", Settings())


def test_an_unknown_provider_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownPlugin, match="guide"):
        find_providers().make("nobody", Settings())


@pytest.mark.case("P13")
def test_the_package_of_examples_works_once_it_is_installed(tmp_path: Path) -> None:
    """Built and installed as anybody would do it, with no network; used in a process that knows only where it lies."""
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source)
    install = ("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(target))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", *install, str(source))
    subprocess.run(pip, check=True, capture_output=True)
    said = subprocess.run(
        (sys.executable, "-P", "-c", USED, str(tmp_path)),
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(target)},
    )
    told = ["guide parrot", "parrot 1.0", "hello there", "1", "program:not-able", "program:bad-options"]
    assert said.stdout.splitlines() == told
