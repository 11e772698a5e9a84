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

FRAME_BYTES = 16 * 2**20
"""The longest frame that is taken from a container; the supervisor cuts its verdicts to fit."""
ORDER_BYTES = 32 * 2**20
"""The longest frame that a supervisor takes."""
SEND_SECONDS = 30.0
"""How long an engine may take to pass on what is written before the line counts as broken."""


class Gone(SandboxTrouble):
    """The container ended before it said what it was asked."""


class Line:
    """Frames to and from one container, over the engine's multiplexed attach stream.

    The stream comes in chunks of a header (stream number, three zeros, four bytes of length)
    and that many bytes; stream 1 carries our frames, stream 2 is what went wrong.
    """

    def __init__(self, attached: socket.socket, *holders: Any) -> None:
        """`holders` are objects that keep the socket's descriptor open beside it."""
        self.socket = attached
        self.holders = holders
        self.socket.settimeout(SEND_SECONDS)
        self.raw = bytearray()
        self.frames = bytearray()
        self.errors = bytearray()
        self.ended = False
        self.lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Write one frame. Raises Gone, or SandboxTrouble for one that nobody would take."""
        body = json.dumps(message, separators=(",", ":")).encode("ascii")
        if len(body) > ORDER_BYTES:
            raise SandboxTrouble(
                f"The files to be judged come to {len(body)} bytes, above {ORDER_BYTES}.",
                hint="leave large data files out of the tests' folder",
            )
        with self.lock:
            self._write(len(body).to_bytes(4, "big") + body)

    def beat(self) -> None:
        """Say that somebody is still there; never waits, since other lines are waiting too.

        A line that is being written to, or is full, needs no heartbeat.
        """
        if not self.lock.acquire(blocking=False):
            return
        try:
            if self._ready(select.POLLOUT, 0):
                self._write(b"\0\0\0\0")
        except Gone:
            return
        finally:
            self.lock.release()

    def _write(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            self.ended = True
            raise Gone(f"The container's line broke: {error}") from error

    def _ready(self, event: int, seconds: float) -> bool:
        poll = select.poll()  # select.select stops at descriptor 1024
        try:
            poll.register(self.socket, event)
        except ValueError:
            return False  # closed meanwhile
        return bool(poll.poll(seconds * 1000))

    def speaks_within(self, seconds: float) -> bool:
        """Whether the container says something, or ends, in this time."""
        return self._ready(select.POLLIN, seconds)

    def receive(self, seconds: float) -> dict[str, Any]:
        """Read one frame. Raises Gone when the container ended, or SandboxTrouble in time."""
        until = time.monotonic() + seconds
        while (frame := self._take_frame()) is None:
            if self.ended:
                raise Gone(f"The container ended without an answer. {self._last_words()}".strip())
            left = until - time.monotonic()
            if left <= 0:
                raise SandboxTrouble(f"The container gave no answer within {seconds:g} s.")
            if self._ready(select.POLLIN, left):
                self._fill()
        return frame

    def alive(self) -> bool:
        """Whether the container still holds the line, and has said nothing unasked."""
        while not (self.ended or self.frames) and self._ready(select.POLLIN, 0):
            self._fill()
        return not (self.ended or self.frames)

    def _fill(self) -> None:
        try:
            part = self.socket.recv(2**16)
        except OSError:
            part = b""
        self.ended = not part
        self.raw += part
        while len(self.raw) >= 8:
            size = int.from_bytes(self.raw[4:8], "big")
            if size > FRAME_BYTES:
                raise SandboxTrouble(f"The engine sent a chunk of {size} bytes.")
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
        for holder in (*self.holders, self.socket):
            with contextlib.suppress(OSError, ValueError):
                holder.close()
