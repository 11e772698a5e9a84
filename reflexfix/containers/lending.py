"""Idle containers that lend their empty network namespace, so that others start sooner.

Making a network namespace is most of what Docker does to start a container. A lender is a
container like any other that never gets a job; each live container has a lender of its own, and
no two share one. When a container has ended, with all its processes, nothing of it is left in
the namespace: no address to listen on was ever to be had there (the seccomp profile refuses
every socket but a connected pair), and a pair dies with its processes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from reflexfix.containers.container import Container
from reflexfix.errors import SandboxTrouble


class Lenders:
    """Hands out lenders; makes at most `most` of them, each off the critical path."""

    def __init__(
        self,
        start: Callable[[], Container],
        end: Callable[[Container], None],
        background: Callable[[Callable[[], None]], object],
        most: int,
    ) -> None:
        self.start = start
        self.end = end
        self.background = background
        self.most = most
        self.free: list[Container] = []
        self.made = 0
        """Lenders that are free or being made; those that are lent come back by themselves."""
        self.closed = False
        self.lock = threading.Lock()

    def borrow(self) -> Container | None:
        """Give a free lender that still lives, or None; then one more is made for later."""
        while (lender := self._free_one()) is not None:
            if lender.line.alive():
                return lender
            self.end(lender)
        with self.lock:
            if self.closed or self.made >= self.most:
                return None
            self.made += 1
        self.background(self._make)
        return None

    def _free_one(self) -> Container | None:
        with self.lock:
            if not self.free:
                return None
            self.made -= 1
            return self.free.pop()

    def give_back(self, lender: Container | None) -> None:
        """Take a lender back whose borrower has ended."""
        if lender is None:
            return
        with self.lock:
            if not self.closed:
                self.made += 1
                self.free.append(lender)
                return
        self.end(lender)

    def _make(self) -> None:
        lender = None
        with contextlib.suppress(SandboxTrouble):  # without one, containers start only slower
            lender = self.start()
        with self.lock:
            self.made -= 1
        self.give_back(lender)

    def close(self) -> None:
        with self.lock:
            self.closed = True
            free, self.free = self.free, []
        for lender in free:
            self.end(lender)
