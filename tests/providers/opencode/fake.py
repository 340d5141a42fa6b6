"""A server that starts as OpenCode's does and answers as a test tells it. Run as a program: fake.py <answers>

The answers are JSON: a path's beginning to [status, body]; `null` never answers, "close" drops the connection.
{"dies": file, "then": answer} ends the server the first time, and answers so when that file is there.
"listening": false never says where it listens.
"""

import asyncio
import json
import os
import sys
from asyncio import StreamReader, StreamWriter
from pathlib import Path
from typing import Any

BESIDE = {"/global/health": [200, {"healthy": True, "version": "0"}], "/global/event": "events"}


async def main(answers: dict[str, Any]) -> None:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        answer = next(
            (answer for start, answer in {**BESIDE, **answers}.items() if path.startswith(start)), [404, None]
        )
        if isinstance(answer, dict):
            if not (told := Path(answer["dies"])).exists():
                told.touch()
                os._exit(1)
            answer = answer["then"]
        match answer:
            case None:
                await asyncio.sleep(60)
            case "events":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\n")
                await writer.drain()
                await reader.read()
            case "close":
                pass
            case _:
                status, body = answer
                content = b"" if body is None else json.dumps(body).encode()
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    if answers.get("listening", True):
        port = server.sockets[0].getsockname()[1]
        print(f"opencode server listening on http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
