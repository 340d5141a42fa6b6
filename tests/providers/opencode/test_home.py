"""Keys as one digest: another key, another digest, and a login that is renewed is the same."""

import json
from pathlib import Path
from typing import Any

from clew.providers.opencode.home import credential


def home(tmp: Path, **held: Any) -> dict[str, str]:
    (tmp / "opencode").mkdir(exist_ok=True)
    (tmp / "opencode" / "auth.json").write_text(json.dumps(held), encoding="utf-8")
    return {"XDG_DATA_HOME": str(tmp)}


def test_a_key_is_known_by_its_digest_and_not_told(tmp_path: Path) -> None:
    one = credential({"OPENAI_API_KEY": "sk-1", "PATH": "/bin"})
    assert one is not None
    assert one.startswith("key:")
    assert len(one) == 12
    assert one == credential({"OPENAI_API_KEY": "sk-1", "PATH": "/usr/bin"})
    others = [
        {"OPENAI_API_KEY": "sk-2"},
        {"XAI_API_KEY": "sk-1"},
        {"OPENAI_API_KEY": "sk-1", "AWS_BEARER_TOKEN_BEDROCK": "t"},
        {"OPENAI_API_KEY": "sk-1", **home(tmp_path, xai={"type": "api", "key": "k"})},
    ]
    assert len({one, *map(credential, others)}) == 5


def test_without_a_key_there_is_none(tmp_path: Path) -> None:
    assert credential({"HOME": str(tmp_path), "SSH_AUTH_SOCK": "/run/x", "OPENAI_API_KEY": ""}) is None
    (tmp_path / "opencode").mkdir()
    for damaged in ("", "[1]", "{", '{"xai": 3}'):
        (tmp_path / "opencode" / "auth.json").write_text(damaged, encoding="utf-8")
        assert credential({"XDG_DATA_HOME": str(tmp_path)}) is None


def test_a_login_is_the_same_when_its_tokens_are_renewed(tmp_path: Path) -> None:
    login = {"type": "oauth", "accountId": "ada", "access": "a1", "refresh": "r1", "expires": 1}
    first = credential(home(tmp_path, openai=login))
    assert first is not None
    assert first == credential(home(tmp_path, openai={**login, "access": "a2", "refresh": "r2", "expires": 2}))
    assert first != credential(home(tmp_path, openai={**login, "accountId": "bob"}))


def test_the_variable_stands_for_the_file(tmp_path: Path) -> None:
    content = {"xai": {"type": "api", "key": "k"}}
    in_file = credential(home(tmp_path, **content))
    assert in_file == credential({**home(tmp_path), "OPENCODE_AUTH_CONTENT": json.dumps(content)})
    assert credential({**home(tmp_path, **content), "OPENCODE_AUTH_CONTENT": json.dumps({})}) is None
