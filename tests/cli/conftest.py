"""The same databases as the store's tests have, and a server that answers as it is told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.stub import Stub, serving
from tests.store.conftest import address, postgres

__all__ = ["address", "postgres"]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    data = tmp_path / "data"
    monkeypatch.setenv("CLEW_DATA", str(data))
    monkeypatch.setenv("COLUMNS", "200")
    with serving(Stub(data)) as started:
        # A new chat looks whether it is begun inside a project.
        started.on("GET", "/projects", [])
        yield started
