"""`clew up`: what it makes, what it says, and how it ends."""

import json
import shutil
import signal
import stat
from pathlib import Path

import httpx2
import pytest

from tests.up.kit import lines, until, up


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_guides_keep_their_sessions_in_the_data_directory_and_take_no_options(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        clew.guide()
        clew.ask("POST", "/agents", {"name": "ada", "provider": "guide"})
        runs = [clew.ran(clew.ask("POST", "/wakes", {"agent": name, "text": "hello"})) for name in ("guide", "ada")]
        assert len(list((data / "guide" / "sessions").glob("*.json"))) == 2
        homes = {each["id"]: each["home"] for each in clew.ask("GET", "/runtimes")}
        assert {homes[run["runtime"]] for run in runs} == {str(data / "guide")}
        for method, path, named in (
            ("POST", "/agents", {"name": "bob", "provider": "guide"}),
            ("PATCH", "/agents/ada", {}),
        ):
            with clew.http() as http:
                refused = http.request(method, path, json={**named, "options": {"colour": "red"}})
            assert (refused.status_code, refused.json()["code"]) == (422, "program:bad-options")
            assert refused.json()["detail"] == "The guide has no option colour."
        assert clew.ask("GET", "/agents/ada")["options"] == {}


def test_the_agent_of_another_package_is_named_at_the_start_like_any_other(tmp_path: Path) -> None:
    """As an installer leaves it: its module, and a line of metadata that names it."""
    parrot = Path(__file__).parents[2] / "examples" / "parrot" / "clew_parrot.py"
    shutil.copy(parrot, tmp_path)
    (metadata := tmp_path / "clew_parrot-1.0.dist-info").mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: clew-parrot\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[clew.providers]\nparrot = clew_parrot:make\n", encoding="utf-8")
    with up(tmp_path / "data", PYTHONPATH=str(tmp_path)) as clew:
        until(lambda: "  agents  " in clew.out, "what is installed")
        assert "  installed  parrot 1.0\n" in clew.out
        own = {"home": {"PARROT_HOME": str(tmp_path / "parrot")}, "create_home": True}
        clew.ask("POST", "/agents", {"name": "polly", "provider": "parrot", "mode": "full", **own})
        assert clew.ran(clew.ask("POST", "/wakes", {"agent": "polly", "text": "hello"}))["state"] == "succeeded"


def test_it_makes_what_it_needs_for_its_owner_alone_and_says_where_it_is(tmp_path: Path) -> None:
    data = tmp_path / "some" / "data"
    with up(data) as clew:
        clew.guide()
        assert clew.address.startswith("http://127.0.0.1:")
        assert (mode(data), mode(data / "token"), mode(data / "clew.db")) == (0o700, 0o600, 0o600)
        health = httpx2.get(f"{clew.address}/health")
        assert health.json()["ready"] is True
        said = clew.out
        assert clew.address in said
        assert str(data) in said
        assert "Ctrl-C" in said
        link = next(word for word in said.split() if "/enter?ticket=" in word)
        entered = httpx2.get(link)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert clew.stop() == 0
        assert clew.err == ""
        # The token is in no log and no output, and a ticket in no log.
        token = (data / "token").read_text().strip()
        for text in (clew.log, clew.out, clew.err):
            assert token not in text
        assert link.partition("=")[2] not in clew.log
        assert [each["words"] for each in lines(clew.log)][-1] == "stopped"
    assert not (data / "address").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_it_starts_again_with_all_it_had(tmp_path: Path, how: signal.Signals) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        clew.guide()
        clew.ask("POST", "/issues", {"title": "Kept"})
        before = {name: (data / name).read_text() for name in ("token", "machine")}
        assert clew.stop(how) == 0
    with up(data) as clew:
        assert [each["title"] for each in clew.ask("GET", "/threads?kind=issue")] == ["Kept"]
        assert {name: (data / name).read_text() for name in ("token", "machine")} == before
        assert clew.stop() == 0


def test_a_killed_one_leaves_nothing_that_keeps_the_next_from_starting(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as clew:
        clew.process.kill()
        clew.process.wait(60)
    assert (data / "address").exists()
    with up(data) as clew:
        assert clew.ask("GET", "/threads") is not None
        assert clew.stop() == 0


def test_its_own_environment_is_not_an_agents(tmp_path: Path) -> None:
    """What an agent's program sees is what it is given: neither the token nor what the server was started with."""
    data = tmp_path / "data"
    with up(data, SECRET_OF_THE_SERVER="hidden") as clew:
        seen = tmp_path / "seen"
        program = ["/bin/sh", "-c", f"env > {seen}.part && mv {seen}.part {seen}"]
        agent = {"name": "env", "provider": "command", "mode": "full", "program": program}
        clew.ask("POST", "/agents", {**agent, "environment": {"GIVEN": "yes"}})
        run = clew.ran(clew.ask("POST", "/wakes", {"agent": "env", "text": "go"}))
        assert run["state"] == "succeeded", run
        text = seen.read_text()
        assert "GIVEN=yes" in text
        assert clew.token not in text
        assert "SECRET_OF_THE_SERVER" not in text
        events = json.dumps(clew.ask("GET", f"/runs/{run['id']}/events"))
        assert clew.token not in events
        assert clew.stop() == 0
