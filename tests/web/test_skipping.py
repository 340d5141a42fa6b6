"""Where there is no browser, tests of pages are skipped, counted, and the end of the run says so and what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import browser

ROOT = Path(__file__).parents[2]
ONE = ("tests/web/test_rig.py", "-k", "without_javascript")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLEW_"))}
    return subprocess.run(
        (sys.executable, *arguments),
        cwd=ROOT,
        env={**kept, "PATH": "/nowhere", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def play(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "pytest", "-p", "no:cacheprovider", *ONE, *arguments, **environment)


def test_what_was_skipped_is_counted_and_said_at_the_end_with_what_to_do() -> None:
    """Also when the run is spread over processes, as by `make test`."""
    ended = play("-n", "2")
    assert ended.returncode == 0, ended.stdout
    last = ended.stdout[ended.stdout.index("SKIPPED FOR WANT OF A BROWSER") :].splitlines()
    assert last[1].startswith("1 test: ")
    assert "Run `make browser`" in last[1]
    assert "1 skipped" in last[-1]


def test_where_a_browser_is_needed_its_absence_is_a_failure() -> None:
    ended = play(CLEW_NEED_BROWSER="1", CLEW_CHROMIUM="/nowhere/chromium")
    assert ended.returncode == 1
    assert "CLEW_CHROMIUM is '/nowhere/chromium', which cannot be run" in ended.stdout
    assert "1 error" in ended.stdout.splitlines()[-1]


def test_a_machine_that_cannot_install_one_is_told_loudly() -> None:
    ended = run("-m", "tools.browser")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("THE PAGES WILL NOT BE TESTED IN A BROWSER. None of chromium")
    assert "apt-get install chromium" in ended.stderr
    assert run("-m", "tools.browser", "--if-possible").returncode == 0


def pretend(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (directory / name).chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs")
def test_root_installs_it_once_without_a_question(tmp_path: Path) -> None:
    """By an apt-get that does what it should: the real one would change this machine."""
    made = f"printf '#!/bin/sh\\n' > {tmp_path}/chromium; /bin/chmod +x {tmp_path}/chromium"
    pretend(
        tmp_path,
        "apt-get",
        f'echo "$DEBIAN_FRONTEND $*" >> {tmp_path}/asked\ncase "$*" in *install*) {made};; esac',
    )
    ended = run("-m", "tools.browser", PATH=str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == f"Browser: {tmp_path}/chromium"
    update, install = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert update.startswith("noninteractive ")
    assert update.endswith(" update")
    assert " chromium" in install
    assert run("-m", "tools.browser", PATH=str(tmp_path)).stdout == f"Browser: {tmp_path}/chromium\n"
    assert len((tmp_path / "asked").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs")
def test_what_the_installer_says_is_passed_on(tmp_path: Path) -> None:
    pretend(tmp_path, "apt-get", 'echo "E: Unable to locate package chromium" >&2; exit 100')
    ended = run("-m", "tools.browser", "--if-possible", PATH=str(tmp_path))
    assert ended.returncode == 0
    assert "`apt-get update` failed: E: Unable to locate package chromium" in ended.stderr


def test_the_first_of_the_known_names_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    assert browser.chromium() is None
    for name in ("google-chrome", "chromium-browser", "chromium"):
        pretend(tmp_path, name, "")
        assert browser.chromium() == str(tmp_path / name)
    monkeypatch.setenv(browser.VARIABLE, str(tmp_path / "google-chrome"))
    assert browser.chromium() == str(tmp_path / "google-chrome")
