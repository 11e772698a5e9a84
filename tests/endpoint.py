"""An endpoint on loopback that speaks the OpenAI protocol, for tests of the real client."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the endpoint answers one request with."""

    text: str = ""
    status: int = 200
    error: str = ""
    finish: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)
    reasoning: str = ""


Answers = Callable[[str, dict[str, Any]], Reply]
"""From the question's name and the request's body to the reply."""


class Endpoint:
    """Keeps what was asked: (question, body, headers)."""

    def __init__(self, answers: Answers, models: list[str]) -> None:
        self.answers = answers
        self.models = models
        self.asked: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.url = ""


def scripted(**answers: list[str]) -> Answers:
    """Answer each question from its list; the last answer of a list is repeated."""
    left = {question: list(texts) for question, texts in answers.items()}

    def answer(question: str, _body: dict[str, Any]) -> Reply:
        texts = left.get(question) or [""]
        return Reply(texts.pop(0) if len(texts) > 1 else texts[0])

    return answer


def handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            if self.path != "/v1/models":
                self._json(404, {"error": {"message": "no such path"}})
                return
            self._json(200, {"object": "list", "data": [{"id": m} for m in endpoint.models]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self._json(404, {"error": {"message": "no such path"}})
                return
            question = self.headers.get("X-Reflexfix-Question", "")
            endpoint.asked.append((question, body, dict(self.headers)))
            reply = endpoint.answers(question, body)
            if reply.status != 200:
                self._json(reply.status, {"error": {"message": reply.error}}, reply.headers)
            else:
                self._stream(reply, body)

        def _json(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
            raw = json.dumps(data).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def _stream(self, reply: Reply, body: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            pieces = [reply.text[n : n + 40] for n in range(0, len(reply.text), 40)]
            if reply.reasoning:
                self._chunk({"reasoning_content": reply.reasoning}, None)
            for piece in pieces:
                self._chunk({"content": piece}, None)
            self._chunk({}, reply.finish)
            if body.get("stream_options"):
                words = sum(len(m["content"].split()) for m in body["messages"])
                usage = {"prompt_tokens": words, "completion_tokens": len(reply.text.split())}
                usage["total_tokens"] = sum(usage.values())
                self._event({"id": "x", "object": "chat.completion.chunk", "created": 0,
                             "model": body["model"], "choices": [], "usage": usage})  # fmt: skip
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def _chunk(self, delta: dict[str, str], finish: str | None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            self._event({"id": "x", "object": "chat.completion.chunk", "created": 0,
                         "model": "m", "choices": [choice]})  # fmt: skip

        def _event(self, data: Any) -> None:
            self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")

    return Handler


@contextmanager
def serving(answers: Answers, models: list[str] | None = None) -> Iterator[Endpoint]:
    """Serve on a free port of loopback for as long as the `with` lasts."""
    endpoint = Endpoint(answers, models or ["scripted"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(endpoint))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
