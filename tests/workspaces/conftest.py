"""A project and a root for each test, and nothing of the configuration of whoever runs it."""

from pathlib import Path

import pytest

from tests.workspaces.kit import Scene


@pytest.fixture(autouse=True)
def nobodys_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)
