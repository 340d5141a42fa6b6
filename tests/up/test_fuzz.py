"""Requests that nobody would send, made from the API's own description: each is answered, and none breaks anything."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from requests import Session
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.up.kit import Up, up

EXAMPLES = 100 if os.environ.get("CLEW_THOROUGH") else 6

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

ODD = st.one_of(
    st.text(min_size=1, max_size=40).filter(lambda text: text not in (".", "..") and "/" not in text),
    st.sampled_from(["issue-1", "issue-0", "issue-99999999999", "chat-1", "own-guide", "own-", "-", "%", "rn_", "wk_"]),
)

POINT = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"


def furnished(clew: Up) -> dict[str, list[str]]:
    """Things that are there, so that requests reach them, by the name of the parameter that takes them."""
    clew.guide()
    clew.ask("POST", "/issues", {"title": "One", "assignee": "guide"})
    clew.ask("POST", "/chats", {"agent": "guide"})
    wake = clew.ask("POST", "/threads/chat-1/words", {"text": "SAY: hello"})["wake"]
    run = clew.ran(wake)
    with clew.http() as http:
        file = http.post("/files?name=a.txt", content=b"x").json()["id"]
    keys = {"p256dh": POINT, "auth": "BTBZMqHH6r4Tts7J_aSIgg"}
    browser = clew.ask("POST", "/push/subscriptions", {"endpoint": "https://push.invalid/1", "keys": keys})
    return {
        "subscription": [browser["id"]],
        "name": ["guide"],
        "agent": ["guide"],
        "ref": ["issue-1", "chat-1", "own-guide"],
        "run": [run["id"]],
        "file": [file],
        "wake": [wake["id"]],
        "subject": [run["id"], wake["id"]],
        "approval": ["ap_none"],
    }


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "wrong"])
def test_no_request_is_answered_with_a_mistake_of_the_server(tmp_path: Path, mode: GenerationMode) -> None:
    with up(tmp_path / "data") as clew:
        known = furnished(clew)
        described = clew.ask("GET", "/openapi.json")
        # It does not end by itself; its parameters are looked at in the tests of live events.
        del described["paths"]["/api/v1/live"]
        schema = schemathesis.openapi.from_dict(described)
        with Session() as session:
            calls: list[Any] = list(schema.get_all_operations())
            assert len(calls) > 30
            for each in calls:
                ask(each.ok(), mode, known, clew, session)
        assert "server:bug" not in clew.log
        assert clew.ask("GET", "/threads") is not None
        assert clew.stop() == 0
        assert "bug" not in clew.log


def ask(operation: Any, mode: GenerationMode, known: dict[str, list[str]], clew: Up, session: Session) -> None:
    """One operation, with parameters that are there and that are not."""
    bearer = {"Authorization": f"Bearer {clew.token}"}
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.path_parameters or operation.query):
        return
    names = {each.name for each in operation.path_parameters}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=not os.environ.get("CLEW_THOROUGH"),
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(
        case=operation.as_strategy(mode),
        real=st.fixed_dictionaries({name: st.one_of(st.sampled_from(known[name]), ODD) for name in names}),
        kept=st.booleans(),
    )
    def send(case: Any, real: dict[str, str], kept: bool) -> None:
        if names and not kept:
            case.path_parameters = {name: quote(value, safe="") for name, value in real.items()}
        answer = case.call(base_url=clew.address, session=session, headers=bearer)
        case.validate_response(answer, checks=CHECKS)

    send()
