"""The agents are installed whole or not at all, and each works with the loopback model by its own command line."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clew.ports.provider import Settings
from tests.providers.agents import Agents, Ended, claude_home, codex_home, installed, opencode_home, run
from tests.providers.loopback.heard import Format, Role
from tests.providers.loopback.script import USAGE
from tests.providers.loopback.server import Model
from tools import agents as installing

# ---------------------------------------------------------------- one agent as the others


@dataclass(frozen=True)
class Told:
    session: str
    reply: str
    used: dict[str, Any]
    ended: Ended


def claude(settings: Settings, cwd: Path, prompt: str, session: str = "") -> Told:
    resumed = ("--resume", session) if session else ()
    options = ("-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions")
    ended = run(settings, *options, *resumed, "--", prompt, cwd=cwd)
    last = ended.lines[-1]
    return Told(last["session_id"], last["result"], last["usage"], ended)


def codex(settings: Settings, cwd: Path, prompt: str, session: str = "", seconds: float = 90.0) -> Told:
    resumed = ("resume", session) if session else ()
    options = ("exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access")
    ended = run(settings, *options, *resumed, prompt, cwd=cwd, seconds=seconds)
    said = [line["item"]["text"] for line in ended.lines if line.get("item", {}).get("type") == "agent_message"]
    return Told(ended.lines[0]["thread_id"], said[-1] if said else "", ended.lines[-1].get("usage", {}), ended)


def opencode(settings: Settings, cwd: Path, prompt: str, session: str = "") -> Told:
    resumed = ("-s", session) if session else ()
    ended = run(settings, "run", "--format", "json", *resumed, cwd=cwd, stdin=prompt)
    said = [line["part"]["text"] for line in ended.lines if line["type"] == "text"]
    used = ended.lines[-1].get("part", {}).get("tokens", {})
    return Told(ended.lines[0]["sessionID"], said[-1] if said else "", used, ended)


@dataclass(frozen=True)
class Driver:
    home: Callable[[Path, Model, Agents], Settings]
    talk: Callable[[Settings, Path, str, str], Told]
    format: Format
    used: dict[str, Any]


DRIVERS = {
    "claude": Driver(
        claude_home,
        claude,
        Format.ANTHROPIC,
        {"input_tokens": USAGE.input, "output_tokens": USAGE.output, "cache_read_input_tokens": USAGE.cached},
    ),
    "codex": Driver(
        codex_home,
        codex,
        Format.RESPONSES,
        {"input_tokens": USAGE.input, "output_tokens": USAGE.output, "cached_input_tokens": USAGE.cached},
    ),
    "opencode": Driver(
        opencode_home,
        opencode,
        Format.CHAT,
        {"input": USAGE.input - USAGE.cached, "output": USAGE.output, "cache": {"read": USAGE.cached, "write": 0}},
    ),
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.mark.parametrize("name", DRIVERS)
def test_a_session_is_resumed_with_its_history_and_its_tools_are_real(
    name: str, agents: Agents, model: Model, tmp_path: Path, work: Path
) -> None:
    driver = DRIVERS[name]
    settings = driver.home(tmp_path, model, agents)
    first = driver.talk(settings, work, "hello alpha", "")
    assert first.reply == 'SAW users=1 first="hello alpha" last="hello alpha"', first.ended
    assert driver.used.items() <= first.used.items()

    prompt = f"RUN: echo real | tee proof\nWRITE: {work}/note few words"
    second = driver.talk(settings, work, prompt, first.session)
    assert second.session == first.session
    assert second.reply.startswith("TOOL SAID: "), second.ended
    assert 'SAW users=2 first="hello alpha" last="RUN: echo real' in second.reply
    assert (work / "proof").read_text(encoding="utf-8") == "real\n"
    assert (work / "note").read_text(encoding="utf-8").strip() == "few words"

    last = model.work[-1]
    assert last.format is driver.format
    assert last.turns[:3] == ((Role.USER, "hello alpha"), (Role.ASSISTANT, first.reply), (Role.USER, prompt))
    assert "real" in last.results[0].text
    assert len(last.results) == 2
    assert len(model.work) == 4
    assert last.system
    assert "(hidden)" in (last.headers.get("x-api-key"), last.headers.get("authorization"))


def test_claude_code_says_that_its_model_is_overloaded(
    agents: Agents, model: Model, tmp_path: Path, work: Path
) -> None:
    model.fail(529)
    told = claude(claude_home(tmp_path, model, agents), work, "hello")
    assert told.ended.code == 1
    assert told.ended.lines[-1]["api_error_status"] == 529
    assert [request.answered for request in model.requests] == ["fail 529"] * 2


def test_codex_says_when_its_usage_limit_ends(agents: Agents, model: Model, tmp_path: Path, work: Path) -> None:
    model.fail(429, resets_at=int(time.time()) + 3600)
    told = codex(codex_home(tmp_path, model, agents), work, "hello")
    assert told.ended.code == 1
    failed = told.ended.lines[-1]
    assert failed["type"] == "turn.failed"
    assert "try again at" in failed["error"]["message"]


def test_opencode_asks_for_a_title_and_says_that_its_key_is_refused(
    agents: Agents, model: Model, tmp_path: Path, work: Path
) -> None:
    model.fail(401)
    told = opencode(opencode_home(tmp_path, model, agents), work, "hello")
    assert told.ended.code == 1
    assert told.ended.lines[-1]["error"]["data"]["statusCode"] == 401
    titles = [request for request in model.requests if request.side]
    assert titles
    assert all(request.prompts[-1] == "hello" for request in titles)


def test_what_an_agent_started_ends_with_it(agents: Agents, model: Model, tmp_path: Path, work: Path) -> None:
    settings = codex_home(tmp_path, model, agents)
    # The shell is let go of by its own session, as a daemon would be.
    left = f"sleep {600 + os.getpid()}"
    prompt = f"RUN: setsid {left} >/dev/null 2>&1 & echo $! > left; sleep 600"
    with pytest.raises(subprocess.TimeoutExpired):
        codex(settings, work, prompt, seconds=5)
    process = int((work / "left").read_text(encoding="utf-8"))
    deadline = time.monotonic() + 10
    while running(process, left) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(process, left)


def running(process: int, command: str) -> bool:
    try:
        told = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return told.replace(b"\0", b" ").decode().strip() == command


# ---------------------------------------------------------------- installing them


def test_the_lock_has_every_hash_and_no_address() -> None:
    locked = json.loads((installing.PINS / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    packages = {path: package for path, package in locked.items() if path}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())
    for name, version in installing.pins().items():
        assert packages[f"node_modules/{installing.SOURCES[name].package}"]["version"] == version


def test_a_lock_loses_addresses_and_builds_that_the_registry_lacks() -> None:
    packages: dict[str, dict[str, Any]] = {
        "": {"dependencies": {"a": "1"}},
        "node_modules/a": {"resolved": "somewhere", "optionalDependencies": {"a-here": "1", "a-there": "1"}},
        "node_modules/a-here": {"resolved": "somewhere", "integrity": "sha512-x"},
    }
    assert installing.plain(packages) == ["a-there"]
    assert packages["node_modules/a"] == {"optionalDependencies": {"a-here": "1"}}
    assert packages["node_modules/a-here"] == {"integrity": "sha512-x"}


FAKE_NPM = """\
#!/bin/sh
echo called >> "{log}"
sleep 0.3
mkdir -p node_modules/@openai/codex-here/vendor/v/bin
printf '#!/bin/sh\\necho codex-cli {version}\\n' > node_modules/@openai/codex-here/vendor/v/bin/codex
chmod +x node_modules/@openai/codex-here/vendor/v/bin/codex
exit {code}
"""


@dataclass(frozen=True)
class FakeNpm:
    bin: Path
    log: Path

    def make(self, version: str, code: int = 0) -> None:
        for name in ("npm", "node"):
            script = self.bin / name
            script.write_text(FAKE_NPM.format(log=self.log, version=version, code=code), encoding="utf-8")
            script.chmod(0o755)

    @property
    def calls(self) -> int:
        return self.log.read_text(encoding="utf-8").count("called")


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    fake = FakeNpm(tmp_path / "bin", tmp_path / "log")
    fake.bin.mkdir()
    monkeypatch.setenv("PATH", f"{fake.bin}:/usr/bin:/bin")
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    return fake


def test_an_installation_that_failed_is_never_used(npm: FakeNpm) -> None:
    pinned = installing.pins()["codex"]
    for version, code, why in (("0.0.1", 0, "should be"), (pinned, 1, "npm failed")):
        npm.make(version, code)
        with pytest.raises(installing.CannotInstall, match=why):
            installing.install()
        assert installed() is None
        assert [file.name for file in installing.place().parent.iterdir()] == ["lock"]
    npm.make(pinned)
    installing.install()
    there = installed()
    assert there is not None
    assert there.codex.version == pinned
    assert list(there.programs) == ["codex"]


def test_two_installations_at_once_are_one(npm: FakeNpm) -> None:
    npm.make(installing.pins()["codex"])
    said: list[str] = []
    both = [threading.Thread(target=installing.install, args=(said.append,)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert npm.calls == 1
    assert "Another run installs the agents; waiting for it" in said
    assert installed() is not None


def test_without_npm_it_says_what_is_missing_and_what_will_be_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    assert installing.main([]) == 1
    assert installing.main(["--if-possible"]) == 0
    said = capsys.readouterr().err
    assert said.count("NOT INSTALLED. node is not here: install Node.js") == 2
    assert "claude, codex, opencode" in said


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLEW_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert installing.cache() == tmp_path / ".cache" / "clew"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert installing.cache() == tmp_path / "xdg" / "clew"
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "own"))
    assert installing.cache() == tmp_path / "own"
