"""What lies beside a transcript: side threads, outputs too long for it, and the agent's list of tasks."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.providers.claude.home import Home

TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class Placed:
    """Files put in place for a session that is yet to come."""

    places: tuple[Path, ...]

    def remove(self) -> None:
        for place in self.places:
            shutil.rmtree(place, ignore_errors=True)


def files_of(home: Home, transcript: Path) -> dict[str, bytes]:
    """By the names they have in an archive, which do not tell where the home was."""
    native_id = transcript.stem
    places = {native_id: transcript.with_suffix(""), f"{TASKS}/{native_id}": home.tasks(native_id)}
    files = {}
    for name, place in places.items():
        for path in sorted(place.rglob("*")):
            # What leads out of the session does not belong to it.
            if path.is_file() and not path.is_symlink() and "\\" not in str(path):
                with contextlib.suppress(FileNotFoundError):
                    files[f"{name}/{path.relative_to(place).as_posix()}"] = path.read_bytes()
    return files


def belongs(name: str, native_id: str) -> bool:
    return name.startswith((f"{native_id}/", f"{TASKS}/{native_id}/"))


def put(home: Home, project: Path, native_id: str, files: Mapping[str, bytes]) -> None:
    """Each whole or not at all."""
    for name, data in files.items():
        prefix = f"{TASKS}/{native_id}/"
        place = home.tasks(native_id) if name.startswith(prefix) else project / native_id
        write(place / name.removeprefix(prefix).removeprefix(f"{native_id}/"), data)


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


def write(path: Path, data: bytes) -> None:
    """The file is there with all of it, or it is as it was."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.clew-part")
    try:
        file = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as written:
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
