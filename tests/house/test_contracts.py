"""The import contracts, run for real on a copy of the source in which somebody has broken one."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"

LAYERS = "Imports go downwards only"
PARTS = "Parts meet only in app"
CONTROL = "Control knows the store and no other part"
PAGES = "Server and pages reach storage and agents through control"
SQL = "SQLAlchemy stays inside the store"
PROVIDERS = "Providers never import one another"
KERNEL = "The kernel is pure"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(copy: Path, module: str, text: str = "") -> None:
    """Write one module of the copy, and the packages above it."""
    file = copy / "src" / Path(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True, exist_ok=True)
    for package in file.relative_to(copy / "src" / "clew").parents:
        (copy / "src" / "clew" / package / "__init__.py").touch()
    file.write_text(text, encoding="utf-8")


def lint(copy: Path) -> tuple[int, str]:
    # PYTHONPATH comes before the editable install, so the copy is what gets read.
    done = subprocess.run(
        [LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def broken(output: str) -> set[str]:
    return set(re.findall(r"^(.+?) BROKEN", output, re.MULTILINE))


def test_the_source_keeps_every_contract(copy: Path) -> None:
    code, output = lint(copy)
    assert code == 0, output
    assert not broken(output)


def test_the_layers_of_the_design_keep_every_contract(copy: Path) -> None:
    plant(copy, "clew.ports.store", "import clew.kernel")
    plant(copy, "clew.protocol.claim", "import clew.ports.store")
    plant(copy, "clew.store.schema.tables", "import sqlite3\nimport clew.ports.store")
    plant(copy, "clew.providers.codex.cursor", "import clew.ports.store")
    plant(copy, "clew.providers.codex.open", "import clew.providers.codex.cursor")
    plant(copy, "clew.providers.claude", "import clew.ports.store")
    plant(copy, "clew.control.claim", "import clew.ports.store, clew.store.schema.tables")
    plant(copy, "clew.daemon.turn", "import clew.protocol.claim")
    plant(copy, "clew.server.api", "import clew.control.claim")
    plant(copy, "clew.app", "import clew.server.api, clew.daemon.turn, clew.store.schema.tables")
    plant(copy, "clew.testing", "import clew.app, clew.store.schema.tables")
    plant(copy, "clew.cli.commands.up", "import clew.app")
    code, output = lint(copy)
    assert code == 0, output


@pytest.mark.parametrize(
    ("planted", "contract", "culprit"),
    [
        pytest.param(
            {"clew.kernel.planted": "import sqlite3"},
            KERNEL,
            "clew.kernel.planted -> sqlite3",
            id="kernel-reads-a-database",
        ),
        pytest.param(
            {"clew.kernel.planted": "def later():\n    from urllib.request import urlopen\n"},
            KERNEL,
            "clew.kernel.planted -> urllib",
            id="kernel-calls-out-inside-a-function",
        ),
        pytest.param(
            {"clew.providers.one": "from clew.providers import two", "clew.providers.two": ""},
            PROVIDERS,
            "clew.providers.one -> clew.providers.two",
            id="provider-imports-provider",
        ),
        pytest.param(
            {"clew.kernel.planted": "import clew.store", "clew.store.schema.tables": ""},
            LAYERS,
            "clew.kernel.planted -> clew.store",
            id="kernel-imports-store",
        ),
        pytest.param(
            {"clew.store.schema.tables": "from clew.server import api", "clew.server.api": ""},
            LAYERS,
            "clew.store.schema.tables -> clew.server.api",
            id="store-imports-server",
        ),
        pytest.param(
            {"clew.daemon.turn": "from clew.store.schema import tables", "clew.store.schema.tables": ""},
            PARTS,
            "clew.daemon.turn -> clew.store.schema.tables",
            id="daemon-imports-store",
        ),
        pytest.param(
            {"clew.control.claim": "from clew.workspaces import tree", "clew.workspaces.tree": ""},
            CONTROL,
            "clew.control.claim -> clew.workspaces.tree",
            id="control-imports-workspaces",
        ),
        pytest.param(
            {"clew.web.issue": "from clew.store.schema import tables", "clew.store.schema.tables": ""},
            PAGES,
            "clew.web.issue -> clew.store.schema.tables",
            id="page-knows-a-table",
        ),
        pytest.param(
            {"clew.server.issue": "from clew.store.schema import tables", "clew.store.schema.tables": ""},
            PAGES,
            "clew.server.issue -> clew.store.schema.tables",
            id="server-knows-a-table",
        ),
        pytest.param(
            {"clew.control.planted": "from sqlalchemy import Connection"},
            SQL,
            "clew.control.planted -> sqlalchemy",
            id="control-knows-sql",
        ),
        pytest.param({"clew.misc": ""}, LAYERS, "clew.misc", id="module-in-no-layer"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, planted: dict[str, str], contract: str, culprit: str) -> None:
    for module, text in planted.items():
        plant(copy, module, text)
    code, output = lint(copy)
    assert code == 1, output
    assert contract in broken(output), output
    assert culprit in output, output
