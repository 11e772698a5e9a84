"""The line to a container's supervisor: frames over an attached standard input and output."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from typing import Any

from reflexfix.errors import SandboxTrouble

FRAME_BYTES = 48 * 2**20
"""The longest frame that is taken from a container."""


class Gone(SandboxTrouble):
    """The container ended before it said what it was asked."""


class Line:
    """Frames to and from one container, over the engine's multiplexed attach stream.

    The stream comes in chunks of a header (stream number, three zeros, four bytes of length)
    and that many bytes; stream 1 carries our frames, stream 2 is what went wrong.
    """

    def __init__(self, attached: socket.socket) -> None:
        self.socket = attached
        self.socket.setblocking(True)
        self.raw = bytearray()
        self.frames = bytearray()
        self.errors = bytearray()
        self.ended = False
        self.lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Write one frame. Raises Gone."""
        body = json.dumps(message, separators=(",", ":")).encode("ascii")
        self._write(len(body).to_bytes(4, "big") + body)

    def beat(self) -> None:
        """Say that somebody is still there."""
        with contextlib.suppress(Gone):
            self._write(b"\0\0\0\0")

    def _write(self, data: bytes) -> None:
        with self.lock:
            try:
                self.socket.sendall(data)
            except OSError as error:
                self.ended = True
                raise Gone(f"The container's line broke: {error}") from error

    def receive(self, seconds: float) -> dict[str, Any]:
        """Read one frame. Raises Gone when the container ended, or SandboxTrouble in time."""
        until = time.monotonic() + seconds
        while (frame := self._take_frame()) is None:
            if self.ended:
                raise Gone(f"The container ended without an answer. {self._last_words()}".strip())
            left = until - time.monotonic()
            if left <= 0:
                raise SandboxTrouble(f"The container gave no answer within {seconds:.0f} s.")
            if select.select([self.socket], [], [], left)[0]:
                self._fill()
        return frame

    def alive(self) -> bool:
        """Whether the container still holds the line."""
        while not self.ended and select.select([self.socket], [], [], 0)[0]:
            self._fill()
        return not self.ended

    def _fill(self) -> None:
        try:
            part = self.socket.recv(2**16)
        except OSError:
            part = b""
        self.ended = not part
        self.raw += part
        while len(self.raw) >= 8:
            size = int.from_bytes(self.raw[4:8], "big")
            if len(self.raw) < 8 + size:
                break
            target = self.frames if self.raw[0] == 1 else self.errors
            target += self.raw[8 : 8 + size]
            del self.raw[: 8 + size]
        del self.errors[:-4000]

    def _take_frame(self) -> dict[str, Any] | None:
        if len(self.frames) < 4:
            return None
        size = int.from_bytes(self.frames[:4], "big")
        if size > FRAME_BYTES:
            raise SandboxTrouble(f"The container sent a frame of {size} bytes.")
        if len(self.frames) < 4 + size:
            return None
        body = bytes(self.frames[4 : 4 + size])
        del self.frames[: 4 + size]
        try:
            return dict(json.loads(body))
        except (ValueError, TypeError, RecursionError) as error:
            raise SandboxTrouble(f"The container sent nonsense: {error}") from error

    def _last_words(self) -> str:
        lines = self.errors.decode("utf-8", "backslashreplace").strip().splitlines()
        return "Its last words: " + lines[-1][:300] if lines else ""

    def close(self) -> None:
        """Hang up; a close alone would leave the engine's side open."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
