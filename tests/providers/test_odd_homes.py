"""A home that is no place, for every provider that has one of its own: nothing is read or written anywhere else."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.kernel import Cursor, Directory, NativeId, PermissionMode, ProbeKind
from clew.ports.fault import Fault
from clew.ports.provider import OpenSpec, Provider, Settings
from clew.programs.faults import CannotStart, Refused
from clew.providers import acp, claude, codex, command, guide

ODD = ["", "here", "/a\0b", "/\ud800"]
ID = NativeId("01a1e1d6-05fc-78b2-b1de-8f0bdb91b141")


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    ("make", "name", "options"),
    [
        (claude.make, "CLAUDE_CONFIG_DIR", {}),
        (claude.make, "HOME", {}),
        (codex.make, "CODEX_HOME", {}),
        (codex.make, "HOME", {}),
        (guide.make, "GUIDE_HOME", {}),
        (acp.make, "CODEX_HOME", {"agent": "codex"}),
        (acp.make, "CLAUDE_CONFIG_DIR", {"agent": "claude"}),
    ],
)
def test_a_home_that_is_no_whole_path_is_refused(
    make: Callable[[Settings], Provider], name: str, options: dict[str, str], value: str
) -> None:
    with pytest.raises(Refused):
        make(Settings(home={name: value}, options=options))


@pytest.mark.parametrize("value", ["/a\0b", "/\ud800"])
def test_of_any_other_program_a_home_can_at_least_be_a_path(value: str) -> None:
    for make in (acp.make, command.make):
        with pytest.raises(Refused):
            make(
                Settings(
                    program=("/bin/true",), home={"X": value}, options={"start": "x"} if make is command.make else {}
                )
            )


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800"])
@pytest.mark.parametrize("make", [claude.make, codex.make, guide.make])
def test_a_directory_that_can_be_none_is_told_in_words(
    make: Callable[[Settings], Provider], path: str, tmp_path: Path
) -> None:
    names = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GUIDE_HOME")
    (tmp_path / "home" / "projects").mkdir(parents=True)
    settings = Settings(program=("/bin/true",), home=dict.fromkeys(names, str(tmp_path / "home")))
    odd, cursor = Directory(path), Cursor(1, ID if make is not guide.make else NativeId("guide_" + "0" * 24))

    async def scene() -> None:
        provider = make(settings)
        for opening in (OpenSpec(odd, PermissionMode.READ), OpenSpec(odd, PermissionMode.READ, cursor)):
            with pytest.raises(Fault):
                await provider.open(opening)
        assert (await provider.probe(cursor, odd)).kind in (ProbeKind.UNREACHABLE, ProbeKind.MISSING)
        with pytest.raises(Fault):
            await provider.restore(Path(path), odd)
        with pytest.raises(Fault):
            await provider.archive(cursor, odd, Path(path))
        await provider.sessions() if make is not guide.make else None
        await provider.close()

    asyncio.run(asyncio.wait_for(scene(), 30))


def test_the_remedy_for_a_directory_that_is_not_there_is_no_installation(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = guide.make(Settings(home={"GUIDE_HOME": str(tmp_path / "home")}))
        with pytest.raises(CannotStart) as told:
            await provider.open(OpenSpec(Directory(str(tmp_path / "nowhere")), PermissionMode.READ))
        assert "nstall" not in told.value.remedy
        await provider.close()

    asyncio.run(asyncio.wait_for(scene(), 30))


def test_a_full_disk_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def scene() -> None:
        provider = guide.make(Settings(home={"GUIDE_HOME": str(tmp_path)}))
        monkeypatch.setattr("clew.providers.guide.provider.restore_archive", full)
        with pytest.raises(Refused, match="No space left") as told:
            await provider.restore(tmp_path / "copy", Directory(str(tmp_path)))
        assert str(tmp_path) in told.value.words

    asyncio.run(scene())
