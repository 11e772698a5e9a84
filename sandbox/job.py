"""What the supervisor holds while it serves: the line outside, the output, clock and processes."""

from __future__ import annotations

import base64
import os
import select
import selectors
import time
from collections.abc import Callable
from typing import Any

from sandbox import process, wire

SHOWN_OUTPUT = 2000
"""How much of what a test printed is said in its result, in bytes."""
INBOX_BYTES = 2**18
"""The longest frame that is taken from a process of the container."""
TICK = 0.1


class HostGone(Exception):
    """Nobody outside waits for a verdict any more."""


class TooMuchOutput(Exception):
    """Candidate and test together printed more than they may."""


class Inbox:
    """Bytes of one pipe, cut into frames as they arrive."""

    def __init__(self, descriptor: int, limit: int = INBOX_BYTES) -> None:
        self.descriptor = descriptor
        self.limit = limit
        self.data = bytearray()
        self.closed = False

    def fill(self) -> None:
        """Read what is there, without waiting for more than one read."""
        try:
            part = os.read(self.descriptor, 2**16)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            part = b""
        self.data += part
        self.closed = not part

    def frames(self) -> list[Any]:
        """Take the whole frames out. Raises Malformed on nonsense."""
        found = []
        while len(self.data) >= 4:
            size = int.from_bytes(self.data[:4], "big")
            if size > self.limit:
                raise wire.Malformed(f"a frame of {size} bytes")
            if len(self.data) < 4 + size:
                break
            body = bytes(self.data[4 : 4 + size])
            del self.data[: 4 + size]
            found.append(None if size == 0 else wire.unpack(body))
        return found


class Host:
    """The outside, as S sees it: jobs and heartbeats in, verdicts out.

    It is a channel for frames as well (see `wire.Channel`), one that never waits for an
    outside that is gone.
    """

    def __init__(self, beat_seconds: float, life_seconds: float) -> None:
        self.beat_seconds = beat_seconds
        self.ends_at = time.monotonic() + life_seconds
        self.last_beat = time.monotonic()
        self.inbox = Inbox(0, wire.FRAME_BYTES)
        os.set_blocking(1, False)

    def recv(self, size: int, /) -> bytes:
        while not select.select([0], [], [], TICK)[0]:
            self.check_alive()
        self.last_beat = time.monotonic()
        return os.read(0, size)

    def sendall(self, data: bytes, /) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(1, view) :]
            except BlockingIOError:
                self._wait_to_write()

    def _wait_to_write(self) -> None:
        """Wait until the outside has read something, hearing its heartbeats meanwhile."""
        readable, _, _ = select.select([0], [1], [], TICK)
        if readable:
            self.hear()
        self.check_alive()

    def say(self, **message: Any) -> None:
        wire.send(self, message)

    def wait_for_job(self) -> dict[str, Any]:
        """Read exactly one job and not a byte more: what follows is not for every process."""
        while (frame := wire.receive(self)) is None:
            pass
        return dict(frame)

    def wait_for_frame(self) -> dict[str, Any]:
        """Read the next frame that is not a heartbeat, and whatever came with it."""
        while True:
            for frame in self.inbox.frames():
                if frame is not None:
                    return dict(frame)
            if select.select([0], [], [], TICK)[0]:
                self.hear()
            self.check_alive()

    def hear(self) -> None:
        """Take in what has arrived: a frame of any kind is a sign of life."""
        self.inbox.fill()
        if self.inbox.closed:
            raise HostGone("standard input ended")
        self.last_beat = time.monotonic()

    def check_alive(self) -> None:
        now = time.monotonic()
        if now > self.ends_at:
            raise HostGone("the container's life is over")
        if self.beat_seconds and now - self.last_beat > self.beat_seconds:
            raise HostGone("no heartbeat")


class Output:
    """What candidate and test print: counted, and the first part kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self.kept = bytearray()
        self.count = 0

    def start(self) -> None:
        """Begin to count anew, for the next test, with nothing left of the one before."""
        self.drain()
        self.kept.clear()
        self.count = 0

    def fill(self) -> None:
        """Read what is there once. Raises TooMuchOutput."""
        if self._read() and self.count > self.limit:
            raise TooMuchOutput

    def drain(self) -> None:
        """Read all that is there, but not for ever: somebody may go on printing."""
        most = self.count + self.limit + 2**16
        while self._read() and self.count <= most:
            pass

    def _read(self) -> int:
        try:
            part = os.read(self.read_end, 2**16)
        except BlockingIOError:
            return 0
        self.count += len(part)
        self.kept += part[: max(0, SHOWN_OUTPUT - len(self.kept))]
        return len(part)

    def text(self) -> str:
        return bytes(self.kept).decode("utf-8", "backslashreplace")


class Job:
    """One evaluation: the clock, the output, and the processes that belong to it."""

    def __init__(self, host: Host, order: dict[str, Any]) -> None:
        self.host = host
        self.order = order
        self.files = files_of(order)
        self.limits = order["limits"]
        self.ends_at = time.monotonic() + self.limits["total_seconds"]
        self.output = Output(self.limits["output_bytes"])
        self.kept: set[int] = set()
        """Processes that outlive a single test."""
        self.ended: dict[int, int] = {}
        """Wait statuses of children that have been collected."""

    @property
    def is_over(self) -> bool:
        return bool(time.monotonic() >= self.ends_at)

    def wait(
        self,
        inbox: Inbox,
        until: float,
        answered: Callable[[], bool],
        pid: int,
        has_ended: Callable[[], bool] | None = None,
    ) -> bool:
        """Watch host, output and one pipe until `answered` holds; False when time is up.

        True as well when the pipe is closed or who should write to it has ended, `pid` or else
        what `has_ended` tells of: a process that it left behind may hold the pipe open.
        """
        silent = False
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ, self.host.hear)
            selector.register(self.output.read_end, selectors.EVENT_READ, self.output.fill)
            selector.register(inbox.descriptor, selectors.EVENT_READ, inbox.fill)
            while not answered():
                left = min(until, self.ends_at) - time.monotonic()
                if left <= 0:
                    return False
                ready = selector.select(min(left, TICK))
                for key, _ in ready:
                    key.data()
                self.host.check_alive()
                if inbox.closed:
                    return True
                if all(key.fd != inbox.descriptor for key, _ in ready):
                    if silent:
                        return True
                    silent = self.has_ended(pid) or (has_ended is not None and has_ended())
        return True

    def fork(self) -> int:
        """Fork, also when a candidate has left no room for one more process.

        Raises OSError if there is none even when all but the kept processes are gone.
        """
        try:
            pid = os.fork()
        except OSError:
            self.end_all_but(self.kept)
            pid = os.fork()
        self.ended.pop(pid, None)
        return pid

    def has_ended(self, pid: int) -> bool:
        self.ended |= process.reap()
        return pid in self.ended

    def end_all_but(self, keep: set[int]) -> None:
        self.ended |= process.kill_all_but(keep)

    def how_ended(self, pid: int, seconds: float = 0.0) -> str:
        """Say how a child ended, or that it has not ended after this long."""
        until = time.monotonic() + seconds
        while not self.has_ended(pid):
            if time.monotonic() >= until:
                return "had not ended"
            time.sleep(0.0002)
        return process.describe(self.ended[pid])

    def which_limit(self) -> str:
        if self.is_over:
            return f"limit of {self.limits['total_seconds']:g} s for the whole evaluation"
        return f"limit of {self.limits['test_seconds']:g} s for one test"

    def until(self) -> float:
        return time.monotonic() + float(self.limits["test_seconds"])


def files_of(order: dict[str, Any]) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in order["files"].items()}
