"""What lies beside a transcript: side threads, outputs too long for it, and the agent's list of tasks."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.providers.claude.home import Home
from clew.providers.claude.placing import is_ours
from clew.providers.claude.transcript import lines_of

TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class Placed:
    """Files put in place for a session that is yet to come."""

    places: tuple[Path, ...]

    def remove(self) -> None:
        for place in self.places:
            shutil.rmtree(place, ignore_errors=True)


def files_of(home: Home, transcript: Path) -> dict[str, bytes]:
    """What can be carried: of a thread its whole lines, and nothing of one that is damaged."""
    files = all_of(home, transcript)
    for name in list(filter(is_thread, files)):
        files[name] = files[name][: files[name].rfind(b"\n") + 1]
        if not is_whole(name, files[name]):
            del files[name]
    return files


def all_of(home: Home, transcript: Path) -> dict[str, bytes]:
    """By the names they have in an archive, which do not tell where the home was."""
    native_id = transcript.stem
    places = {native_id: transcript.with_suffix(""), f"{TASKS}/{native_id}": home.tasks(native_id)}
    files = {}
    for name, place in places.items():
        for path in sorted(place.rglob("*")):
            # What leads out of the session does not belong to it, nor what a restore that was killed left.
            if path.is_file() and not path.is_symlink() and "\\" not in str(path) and not is_ours(path):
                with contextlib.suppress(FileNotFoundError):
                    files[f"{name}/{path.relative_to(place).as_posix()}"] = path.read_bytes()
    return files


def is_thread(name: str) -> bool:
    """A side thread, which is added to and never rewritten."""
    return "/subagents/" in name and name.endswith(".jsonl")


def is_whole(name: str, data: bytes) -> bool:
    """Whether a thread is one; of what else lies there nothing is known."""
    return not is_thread(name) or (data.endswith(b"\n") and None not in lines_of(data))


def belongs(name: str, native_id: str) -> bool:
    return name.startswith((f"{native_id}/", f"{TASKS}/{native_id}/"))


def places(home: Home, project: Path, native_id: str, files: Mapping[str, bytes]) -> Iterator[tuple[Path, bytes]]:
    """Where each of them belongs."""
    for name, data in files.items():
        prefix = f"{TASKS}/{native_id}/"
        place = home.tasks(native_id) if name.startswith(prefix) else project / native_id
        yield place / name.removeprefix(prefix).removeprefix(f"{native_id}/"), data


def copy_for(home: Home, transcript: Path, project: Path, new_id: str) -> Placed:
    """A fork begins with its own copies: the program copies the transcript alone."""
    targets = {transcript.with_suffix(""): project / new_id, home.tasks(transcript.stem): home.tasks(new_id)}
    placed = Placed(tuple(targets.values()))
    try:
        for source, target in targets.items():
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
    except OSError:
        placed.remove()
        raise
    return placed
