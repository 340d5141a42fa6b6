"""What cannot be a path, a home or a variable is refused in words."""

import os
from pathlib import Path

import pytest

from clew.kernel import Directory
from clew.programs.archive import pack, unpack
from clew.programs.checks import check_homes, check_paths
from clew.programs.faults import BadArchive, BadArguments, CannotStart, NoProgram, Refused
from clew.programs.program import start
from tests.programs.kit import run


@pytest.mark.parametrize("text", ["/a\0b", "/\ud800"])
def test_what_no_system_takes_is_no_path(text: str) -> None:
    for path in (text, Path(text), Directory(text)):
        with pytest.raises(Refused, match="cannot be a path"):
            check_paths("/fine", path)
    check_paths("/fine", Path("also fine"), None, "/not-\udcff-utf-8")


@pytest.mark.parametrize("value", ["", "here", "./here", "~/here", "/a\0b", "/\ud800"])
def test_a_home_is_a_whole_path(value: str) -> None:
    with pytest.raises(Refused, match="THE_HOME"):
        check_homes({"THE_HOME": value}, ["THE_HOME"])
    check_homes({"THE_HOME": value, "OTHER": "/whole"}, ["OTHER", "NOT_SET"])


def test_a_pipe_is_no_archive_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadArchive, match="no file"):
        unpack(tmp_path / "pipe", "one", frozenset({"format"}))
    with pytest.raises(BadArchive, match="no file"):
        pack(tmp_path / "new", "one", "format", "id", {}, {}, since=tmp_path / "pipe")


def test_an_archive_is_not_written_where_no_path_leads(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be a path"):
        pack(tmp_path / "a\0b", "one", "format", "id", {}, {})


@pytest.mark.parametrize(
    ("command", "directory", "environment", "kind", "remedy"),
    [
        (("/nowhere/program",), "/", {}, NoProgram, "Install it again"),
        (("/bin/true",), "/nowhere", {}, CannotStart, "directory"),
        (("/bin/true", "a\0b"), "/", {}, BadArguments, "zero bytes"),
        (("/bin/true", "x" * 300_000), "/", {}, BadArguments, "shorter"),
        (("/bin/true",), "/", {"": "x"}, BadArguments, "Remove it"),
        (("/bin/true",), "/", {"A=B": "x"}, BadArguments, "Remove it"),
        (("/bin/true",), "/", {"A": "x\0y"}, BadArguments, "Remove it"),
    ],
)
def test_what_is_to_be_done_fits_what_went_wrong(
    command: tuple[str, ...], directory: str, environment: dict[str, str], kind: type[CannotStart], remedy: str
) -> None:
    with pytest.raises(CannotStart) as told:
        run(start(command, Path(directory), environment))
    assert type(told.value) is kind
    assert remedy in told.value.remedy
    assert remedy == "shorter" or "shorter" not in told.value.remedy
