"""OpenAI Responses, as Codex speaks it."""

import json
import uuid

from tests.providers.loopback.heard import Format, Heard, Hearing, Json, texts
from tests.providers.loopback.script import USAGE, Call, Fail, Failure, Say, Sent, Spoken, pieces

ERRORS = {400: "invalid_request", 401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}

# No tool for files is offered; Codex finds a patch in a command and treats it as a change of files.
PATCH = "apply_patch <<'END'\n*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\nEND"


class Responses:
    format = Format.RESPONSES

    def read(self, body: Json) -> Heard:
        hearing = Hearing(system=texts(body.get("instructions")))
        for item in body.get("input", []):
            kind, role = item.get("type", "message"), item.get("role")
            if kind.endswith("call_output"):
                output = item.get("output")
                hearing.result(item["call_id"], "".join(texts(output)) or json.dumps(output))
            elif role == "user":
                for text in texts(item.get("content")):
                    hearing.user(text)
            elif role == "assistant":
                hearing.assistant("".join(texts(item.get("content"))))
            elif kind == "message":
                hearing.system += texts(item.get("content"))
        tools = tuple(tool.get("name") or tool["type"] for tool in body.get("tools") or ())
        return hearing.told(body.get("model", ""), bool(body.get("stream")), tools)

    def events(self, spoken: Spoken, model: str) -> list[Sent]:
        whole = self.whole(spoken, model)
        opening = {**whole, "status": "in_progress", "output": [], "usage": None}
        sent = [_event("response.created", response=opening)]
        for index, item in enumerate(whole["output"]):
            sent += _item(index, item)
        return [*sent, _event("response.completed", response=whole)]

    def whole(self, spoken: Spoken, model: str) -> Json:
        output: list[Json] = []
        if spoken.thought:
            summary = [{"type": "summary_text", "text": spoken.thought}]
            sealed = {"encrypted_content": "c2VhbGVk", "content": None}
            output.append({"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": summary, **sealed})
        match spoken:
            case Say():
                content = [{"type": "output_text", "text": spoken.text, "annotations": []}]
                said = {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": content}
                output.append({"type": "message", "status": "completed", **said})
            case Call():
                call = {"call_id": f"call_{uuid.uuid4().hex}", "name": spoken.tool}
                arguments = json.dumps(dict(spoken.arguments))
                output.append({"type": "function_call", "id": f"fc_{uuid.uuid4().hex}", **call, "arguments": arguments})
        return {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "status": "completed",
            "model": model,
            "output": output,
            "usage": {
                "input_tokens": USAGE.input,
                "input_tokens_details": {"cached_tokens": USAGE.cached},
                "output_tokens": USAGE.output,
                "output_tokens_details": {"reasoning_tokens": USAGE.reasoning},
                "total_tokens": USAGE.input + USAGE.output,
            },
        }

    def failure(self, fail: Fail) -> Failure:
        message = f"The loopback model fails with {fail.status}."
        if fail.resets_at is not None:
            limit = {"type": "usage_limit_reached", "plan_type": "pro", "resets_at": fail.resets_at}
            return Failure({"error": {**limit, "message": message}}, {})
        code = ERRORS.get(fail.status, "server_error")
        return Failure({"error": {"message": message, "type": code, "code": code}}, {})

    def shell(self, command: str, tools: tuple[str, ...], escalate: bool) -> Call | None:
        outside = {"sandbox_permissions": "require_escalated", "justification": "May I?"} if escalate else {}
        if "exec_command" in tools:
            return Call("exec_command", {"cmd": command, **outside})
        if "shell_command" in tools:
            return Call("shell_command", {"command": command, **outside})
        return None

    def writing(self, path: str, text: str, tools: tuple[str, ...]) -> Call | None:
        return self.shell(PATCH.format(path=path, text=text), tools, escalate=False)


def _item(index: int, item: Json) -> list[Sent]:
    at = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            start = {**item, "summary": []}
            thought = item["summary"][0]["text"]
            deltas = [
                _event("response.reasoning_summary_part.added", **at, summary_index=0),
                _event("response.reasoning_summary_text.delta", **at, summary_index=0, delta=thought),
            ]
        case "message":
            start, (content,) = {**item, "content": []}, item["content"]
            deltas = [
                _event("response.output_text.delta", **at, content_index=0, delta=piece)
                for piece in pieces(content["text"])
            ]
        case _:
            start, deltas = {**item, "arguments": ""}, []
    return [
        _event("response.output_item.added", output_index=index, item=start),
        *deltas,
        _event("response.output_item.done", output_index=index, item=item),
    ]


def _event(name: str, **rest: object) -> Sent:
    return Sent({"type": name, **rest}, name, piece=name == "response.output_text.delta")
