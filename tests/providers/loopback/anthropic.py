"""Anthropic Messages, as Claude Code speaks it."""

import json
import uuid

from tests.providers.loopback.heard import Format, Heard, Hearing, Json, texts
from tests.providers.loopback.script import USAGE, Call, Fail, Failure, Say, Sent, Spoken, pieces

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Anthropic:
    format = Format.ANTHROPIC

    def read(self, body: Json) -> Heard:
        hearing = Hearing(system=texts(body.get("system")))
        for message in body.get("messages", []):
            role, content = message["role"], message.get("content")
            if role == "assistant":
                hearing.assistant("".join(texts(content)))
            elif role == "user":
                # Prompts that followed one another come as blocks of one message.
                for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                    if block["type"] == "tool_result":
                        hearing.result(block["tool_use_id"], "".join(texts(block.get("content"))))
                    elif block["type"] == "text":
                        hearing.user(block["text"])
            else:
                hearing.system += texts(content)
        tools = tuple(tool["name"] for tool in body.get("tools") or ())
        return hearing.told(body.get("model", ""), bool(body.get("stream")), tools)

    def events(self, spoken: Spoken, model: str) -> list[Sent]:
        whole = self.whole(spoken, model)
        opening = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        sent = [_event("message_start", message=opening)]
        for index, block in enumerate(whole["content"]):
            sent += _block(index, block)
        ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        return [*sent, _event("message_delta", delta=ending, usage=whole["usage"]), _event("message_stop")]

    def whole(self, spoken: Spoken, model: str) -> Json:
        content: list[Json] = []
        if spoken.thought:
            content.append({"type": "thinking", "thinking": spoken.thought, "signature": "c2lnbmVk"})
        match spoken:
            case Say():
                content.append({"type": "text", "text": spoken.text})
            case Call():
                call = {"id": f"toolu_{uuid.uuid4().hex}", "name": spoken.tool, "input": dict(spoken.arguments)}
                content.append({"type": "tool_use", **call})
        return {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "tool_use" if isinstance(spoken, Call) else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": USAGE.input,
                "output_tokens": USAGE.output,
                "cache_read_input_tokens": USAGE.cached,
                "cache_creation_input_tokens": 0,
            },
        }

    def failure(self, fail: Fail) -> Failure:
        kind = ERRORS.get(fail.status, "api_error")
        headers: dict[str, str] = {}
        if fail.resets_at is not None:
            headers = {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-reset": str(fail.resets_at),
            }
        error = {"type": kind, "message": f"The loopback model fails with {fail.status}."}
        return Failure({"type": "error", "error": error}, headers)

    def shell(self, command: str, tools: tuple[str, ...], escalate: bool) -> Call | None:  # noqa: ARG002 - no sandbox
        return Call("Bash", {"command": command, "description": "Run it"}) if "Bash" in tools else None

    def writing(self, path: str, text: str, tools: tuple[str, ...]) -> Call | None:
        return Call("Write", {"file_path": path, "content": text}) if "Write" in tools else None


def _block(index: int, block: Json) -> list[Sent]:
    match block["type"]:
        case "thinking":
            start: Json = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use":
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        case _:
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    return [
        _event("content_block_start", index=index, content_block=start),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _event(name: str, **rest: object) -> Sent:
    delta = rest.get("delta")
    piece = isinstance(delta, dict) and delta.get("type") == "text_delta"
    return Sent({"type": name, **rest}, name, piece)
