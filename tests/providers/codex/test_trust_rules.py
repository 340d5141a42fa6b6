"""Rules of Codex are a program: however one is written, what could allow a command is never taken for strict."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from clew.providers.codex.trust import allows
from tests.providers.agents import Agents

ALLOWING = {
    "plainly": 'prefix_rule(pattern=["touch"], decision="allow")',
    "by default": 'prefix_rule(pattern=["touch"])',
    "by place": 'prefix_rule(["touch"], "allow")',
    "by another name": 'f = prefix_rule\nf(pattern=["touch"], decision="allow")',
    "out of a dictionary": 'd = {"f": prefix_rule}\nd["f"](pattern=["touch"], decision="allow")',
    "behind a comment": 'prefix_rule(\n  # decision = "prompt"\n  pattern=["touch"],\n  decision="allow",\n)',
    "behind words": 'prefix_rule(pattern=["touch"], justification="no decision = \'prompt\'", decision="allow")',
    "behind an example": 'prefix_rule(pattern=["touch"], match=["touch )"], not_match=[[\'decision="prompt"\']])',
    "by a list": '[prefix_rule(pattern=[c], decision="allow") for c in ["touch"]]',
    "by a function": 'def f(d):\n    prefix_rule(pattern=["touch"], decision=d)\nf("allow")',
    "by a name": 'prompt = "allow"\nprefix_rule(pattern=["touch"], decision=prompt)',
    "by a sum": 'prefix_rule(pattern=["touch"], decision="al" + "low")',
    "by a choice": 'prefix_rule(pattern=["touch"], decision="allow" if True else "prompt")',
    "by what is put together": 'd = "allow"\nprefix_rule(pattern=["touch"], decision=f"{d}")',
    "by an escape": 'prefix_rule(pattern=["touch"], decision="\\x61llow")',
    "by what is handed on": 'prefix_rule(**{"pattern": ["touch"], "decision": "allow"})',
    "after a strict one": (
        'prefix_rule(pattern=["rm"], decision="prompt"); prefix_rule(pattern=["touch"], decision="allow")'
    ),
}

STRICT = {
    "nothing": "",
    "comments": '# prefix_rule(pattern=["touch"], decision="allow")\n\n# nothing else\n',
    "asks": 'prefix_rule(pattern=["touch"], decision="prompt")\n',
    "forbids": "prefix_rule(pattern=['touch'], decision='forbidden')\n",
    "at length": (
        "# Why.\r\nprefix_rule(\r\n"
        '    pattern = ["touch", ["a", "b"]],  # these (two)\r\n'
        '    decision = "prompt",\r\n'
        '    justification = """because\r\n(of it)""",\r\n'
        '    match = ["touch a", ["touch", "b"]],\r\n'
        '    not_match = ["touch c"],\r\n)\r\n'
        'prefix_rule(pattern=["rm"], decision="forbidden")\r\n'
    ),
}

# Whatever Codex makes of these, it is not known to be strict.
UNKNOWN = {
    "no text": b"\xff\xfe",
    "no program": b"prefix_rule(",
    "an old line end": b'prefix_rule(pattern=["touch"], # \r decision="prompt"\n)',
    "a form feed": b'prefix_rule(pattern=["touch"],\x0cdecision="prompt")',
    "an end of text": b'prefix_rule(pattern=["rm"], decision="prompt")\n\x00prefix_rule(pattern=["touch"])',
    "twice": b'prefix_rule(pattern=["touch"], decision="allow", decision="prompt")',
    "of another kind": b'network_rule(host="example.com", protocol="https", decision="allow")',
    "another path": b'host_executable(name="git", paths=["/tmp/git"])',
    "from elsewhere": b'load("other.rules", "f")',
    "another argument": b'prefix_rule(pattern=["touch"], decision="prompt", then="allow")',
    "another decision": b'prefix_rule(pattern=["touch"], decision="Prompt")',
    "too deep": b'prefix_rule(pattern=%s"touch"%s, decision="prompt")' % (b"[" * 5000, b"]" * 5000),
    "too long": b"#" * ((1 << 20) + 1),
}


def decided(agents: Agents, file: Path) -> str | None:
    """What Codex itself says."""
    command = (*agents.codex.command, "execpolicy", "check", "--rules", str(file), "touch", "a")
    done = subprocess.run(command, env={**os.environ, "HOME": str(file.parent)}, capture_output=True, check=True)
    decision: str | None = json.loads(done.stdout).get("decision")
    return decision


@pytest.mark.case("A01")
@pytest.mark.parametrize("how", ALLOWING)
def test_a_rule_that_allows_is_known_however_it_is_written(tmp_path: Path, agents: Agents, how: str) -> None:
    file = tmp_path / "x.rules"
    file.write_text(ALLOWING[how])
    assert decided(agents, file) == "allow"
    assert allows(file)


@pytest.mark.case("A01")
@pytest.mark.parametrize("how", STRICT)
def test_a_rule_that_only_asks_or_forbids_is_known(tmp_path: Path, agents: Agents, how: str) -> None:
    file = tmp_path / "x.rules"
    file.write_bytes(STRICT[how].encode())
    assert decided(agents, file) != "allow"
    assert not allows(file)


@pytest.mark.case("A01")
@pytest.mark.parametrize("how", UNKNOWN)
def test_what_is_not_understood_counts_as_allowing(tmp_path: Path, how: str) -> None:
    file = tmp_path / "x.rules"
    file.write_bytes(UNKNOWN[how])
    assert allows(file)


def test_what_is_no_file_holds_no_rule(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.rules")
    (tmp_path / "directory.rules").mkdir()
    (tmp_path / "nowhere.rules").symlink_to(tmp_path / "gone")
    assert not any(map(allows, tmp_path.iterdir()))
