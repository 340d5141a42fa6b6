"""Providers are found by entry point; one that is broken is told and stops no other."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from clew.kernel import Directory, PermissionMode
from clew.ports.events import Done
from clew.ports.finding import BrokenProvider, UnknownProvider, find_providers
from clew.ports.provider import OpenSpec, Settings

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
    async def turn(self, prompt):
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
    package(site, "clew-parrot", "parrot = parrot_provider_2:make", parrot_provider_2=PARROT)
    found = find_providers()
    assert {"parrot", "guide", "command"} <= set(found.makers)
    assert {"torn", "gone", "thing"} <= set(found.broken)
    assert "no such library" in found.broken["torn"].words
    assert "clew-torn" in found.broken["torn"].words
    assert found.broken["torn"].remedy
    with pytest.raises(BrokenProvider, match="no such library"):
        found.make("torn", Settings())


def test_a_strangers_provider_does_not_replace_one_of_clew(site: Path) -> None:
    package(site, "a-guide", "guide = other_guide:make", other_guide=PARROT)
    found = find_providers()
    assert found.makers["guide"].__module__ == "clew.providers.guide"
    assert "a-guide" in found.broken["guide of a-guide"].words


def test_an_unknown_provider_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownProvider, match="guide"):
        find_providers().make("nobody", Settings())


def test_a_package_that_an_installer_put_there_is_found(tmp_path: Path) -> None:
    """Built and installed as anybody would do it, with no network."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "installed_parrot.py").write_text(PARROT, encoding="utf-8")
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "installed-parrot"\nversion = "1.0"\n'
        '[project.entry-points."clew.providers"]\nlora = "installed_parrot:make"\n'
        '[tool.hatch.build.targets.wheel]\nonly-include = ["installed_parrot.py"]\n',
        encoding="utf-8",
    )
    target = tmp_path / "target"
    install = ("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(target))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", *install, str(source))
    subprocess.run(pip, check=True, capture_output=True)
    code = "from clew.ports.finding import find_providers as f; print(*sorted(f().makers))"
    said = subprocess.run(
        (sys.executable, "-c", code), check=True, capture_output=True, text=True, env={"PYTHONPATH": str(target)}
    )
    assert {"lora", "guide"} <= set(said.stdout.split())
