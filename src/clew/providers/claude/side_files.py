"""The files beside a transcript: side threads, outputs too long for it, and the agent's list of tasks."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.programs.file_transaction import is_temporary
from clew.providers.claude.home import Home
from clew.providers.claude.transcript import lines_of

_TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class Copies:
    """Directories that were copied for a fork whose session does not exist yet."""

    directories: tuple[Path, ...]

    def remove(self) -> None:
        for directory in self.directories:
            shutil.rmtree(directory, ignore_errors=True)


def archivable_files(home: Home, transcript: Path) -> dict[str, bytes]:
    """The side files for an archive. A side thread is cut after its last whole line; a damaged one is left out."""
    files = all_files(home, transcript)
    for name in list(filter(is_side_thread, files)):
        files[name] = files[name][: files[name].rfind(b"\n") + 1]
        if not is_whole(name, files[name]):
            del files[name]
    return files


def all_files(home: Home, transcript: Path) -> dict[str, bytes]:
    """The side files by their names in an archive, which do not depend on where the home is."""
    native_id = transcript.stem
    directories = {native_id: transcript.with_suffix(""), f"{_TASKS}/{native_id}": home.tasks(native_id)}
    files = {}
    for name, directory in directories.items():
        for path in sorted(directory.rglob("*")):
            # A link may lead out of the session, and a restore that was killed leaves temporary files.
            if path.is_file() and not path.is_symlink() and "\\" not in str(path) and not is_temporary(path):
                with contextlib.suppress(FileNotFoundError):
                    files[f"{name}/{path.relative_to(directory).as_posix()}"] = path.read_bytes()
    return files


def is_side_thread(name: str) -> bool:
    """Side threads are appended to and never rewritten."""
    return "/subagents/" in name and name.endswith(".jsonl")


def is_whole(name: str, data: bytes) -> bool:
    """Whether a side thread is undamaged. Other files cannot be checked and count as whole."""
    return not is_side_thread(name) or (data.endswith(b"\n") and None not in lines_of(data))


def belongs(name: str, native_id: str) -> bool:
    return name.startswith((f"{native_id}/", f"{_TASKS}/{native_id}/"))


def targets(home: Home, project: Path, native_id: str, files: Mapping[str, bytes]) -> Iterator[tuple[Path, bytes]]:
    """Each file with the path it is restored to."""
    prefix = f"{_TASKS}/{native_id}/"
    for name, data in files.items():
        directory = home.tasks(native_id) if name.startswith(prefix) else project / native_id
        yield directory / name.removeprefix(prefix).removeprefix(f"{native_id}/"), data


def copy_for_fork(home: Home, transcript: Path, project: Path, new_id: str) -> Copies:
    """Copy the side files for a fork: the program itself copies only the transcript."""
    pairs = {transcript.with_suffix(""): project / new_id, home.tasks(transcript.stem): home.tasks(new_id)}
    copies = Copies(tuple(pairs.values()))
    try:
        for source, target in pairs.items():
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
    except OSError:
        copies.remove()
        raise
    return copies
