"""OpenAI chat completions, as OpenCode speaks it."""

import json
import uuid
from typing import Any

from tests.providers.loopback.heard import Format, Heard, Hearing, Json, texts
from tests.providers.loopback.script import USAGE, Call, Fail, Failure, Say, Sent, Spoken, pieces

# OpenCode looks at the code, too, before it tries again.
ERRORS = {400: "invalid_request", 401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class Chat:
    format = Format.CHAT

    def read(self, body: Json) -> Heard:
        hearing = Hearing()
        for message in body.get("messages", []):
            role, content = message["role"], texts(message.get("content"))
            if role == "user":
                for text in content:
                    hearing.user(text)
            elif role == "assistant":
                hearing.assistant("".join(content))
            elif role == "tool":
                hearing.result(message["tool_call_id"], "".join(content))
            else:
                hearing.system += content
        tools = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
        return hearing.told(body.get("model", ""), bool(body.get("stream")), tools)

    def events(self, spoken: Spoken, model: str) -> list[Sent]:
        base = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion.chunk", "created": 0, "model": model}

        def chunk(delta: Json, finish: str | None = None) -> Sent:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return Sent({**base, "choices": [choice]}, piece="content" in delta and "role" not in delta)

        sent = [chunk({"role": "assistant", "content": ""})]
        if spoken.thought:
            sent.append(chunk({"reasoning_content": spoken.thought}))
        match spoken:
            case Say():
                sent += [chunk({"content": piece}) for piece in pieces(spoken.text)]
                sent.append(chunk({}, "stop"))
            case Call():
                sent += [chunk({"tool_calls": [{"index": 0, **_call(spoken)}]}), chunk({}, "tool_calls")]
        return [*sent, Sent({**base, "choices": [], "usage": _usage()}), Sent("[DONE]")]

    def whole(self, spoken: Spoken, model: str) -> Json:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        match spoken:
            case Say():
                message["content"] = spoken.text
            case Call():
                message["tool_calls"] = [_call(spoken)]
        if spoken.thought:
            message["reasoning_content"] = spoken.thought
        finish = "tool_calls" if isinstance(spoken, Call) else "stop"
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": _usage(),
        }

    def failure(self, fail: Fail) -> Failure:
        code = ERRORS.get(fail.status, "server_error")
        message = f"The loopback model fails with {fail.status}."
        headers = {} if fail.resets_at is None else {"x-ratelimit-reset": str(fail.resets_at)}
        return Failure({"error": {"message": message, "type": code, "code": code}}, headers)

    def shell(self, command: str, tools: tuple[str, ...], escalate: bool) -> Call | None:  # noqa: ARG002 - no sandbox
        return Call("bash", {"command": command, "description": "Run it"}) if "bash" in tools else None

    def writing(self, path: str, text: str, tools: tuple[str, ...]) -> Call | None:
        return Call("write", {"filePath": path, "content": text}) if "write" in tools else None


def _call(call: Call) -> Json:
    function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    return {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}


def _usage() -> Json:
    return {
        "prompt_tokens": USAGE.input,
        "completion_tokens": USAGE.output,
        "total_tokens": USAGE.input + USAGE.output,
        "prompt_tokens_details": {"cached_tokens": USAGE.cached},
    }
