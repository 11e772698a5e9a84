"""Says on a pipe what a project's tests do, and which functions they run."""

from __future__ import annotations

import _thread
import os
import socket
import time
from types import CodeType, TracebackType
from typing import Any

from sandbox import trace, wire
from sandbox.pytest_plugin import FOLDER

MOST_NAMES = 500
"""How many names of functions one frame carries."""


class Teller:
    """Says on a pipe what tests do, and what they run."""

    def __init__(self, verdict: socket.socket, order: dict[str, Any], done: set[str]) -> None:
        self.verdict = verdict
        self.done = done
        self.first = list(order["first"])
        self.rest = bool(order["rest"])
        self.hung = set(order["hung"])
        self.limits = order["limits"]
        self.tracer = trace.Tracer(FOLDER) if order["trace"] else None
        self.numbers: dict[CodeType, int] = {}
        self.tests: set[str] = set(order["tests"])
        """Files that hold tests, not what is tested."""
        self.running = ""
        self.lock = _thread.allocate_lock()

    def say(self, **what: Any) -> None:
        with self.lock:
            wire.send(self.verdict, what)

    def wanted(self, name: str) -> bool:
        """Whether a test is to be run: one that was asked for, in a file that was, or any."""
        if name in self.done or name.partition("::")[0] in self.done:
            return False
        return self.rest or self.asked_for(name)

    def asked_for(self, name: str) -> bool:
        return name in self.first or name.partition("::")[0] in self.first

    def begin(self, name: str) -> None:
        """A test begins; those that failed before are watched closely."""
        self.say(begin=name)
        self.running = name
        if self.tracer is None:
            return
        self.tracer.told = self.say_open if name in self.hung else None
        self.tracer.begin(self.asked_for(name))
        if self.asked_for(name):
            limit = self.limits["hung_seconds" if name in self.hung else "test_seconds"]
            self.tracer.watching += 1
            watch = (_thread.get_ident(), time.monotonic() + limit, self.say_what_hangs)
            _thread.start_new_thread(self.tracer.watch, watch)

    def say_open(self, calls: list[CodeType]) -> None:
        """Tell at once what a test has come to that may never come back."""
        self.say_functions(ran=self.running, functions=calls[-1:])
        self.say_functions(evidence=self.running, functions=calls)

    def say_what_hangs(self) -> None:
        """Tell where a test is that is about to be ended."""
        assert self.tracer is not None
        self.say_functions(ran=self.running, functions=list(self.tracer.ran))
        self.say_functions(evidence=self.running, functions=self.tracer.hanging())

    def stop(self) -> None:
        """The test's own code has ended: what follows is not its doing."""
        if self.tracer is not None:
            self.tracer.watching += 1
            self.tracer.end()

    def failed(self, name: str, error: BaseException, at: TracebackType | None) -> None:
        """Tell what led to a failure, and what it lacked if that is a module."""
        for cause in trace.causes(error):
            if isinstance(cause, ModuleNotFoundError) and cause.name:
                self.say(missing=name, module=cause.name)
                break
        if self.tracer is None:
            return
        passed = [c for c in trace.went_through(self.tracer, at) if not self.is_test(c)]
        for cause in trace.causes(error):
            passed = passed or self.outside_tests(cause.__traceback__)
        self.say_functions(evidence=name, functions=passed or self.tracer.flow(self.is_test))

    def outside_tests(self, at: TracebackType | None) -> list[CodeType]:
        assert self.tracer is not None
        return [c for c in trace.went_through(self.tracer, at) if not self.is_test(c)]

    def ended(self, name: str) -> None:
        """Tell which functions a test has run."""
        self.stop()
        if self.tracer is not None and self.tracer.ran:
            self.say_functions(ran=name, functions=list(self.tracer.ran))
            self.tracer.begin(False)
            self.tracer.end()

    def is_test(self, code: CodeType) -> bool:
        return os.path.relpath(code.co_filename, FOLDER) in self.tests

    def say_functions(self, functions: list[CodeType], **what: Any) -> None:
        """Send functions by number; the names of those that are new go first."""
        new = [code for code in dict.fromkeys(functions) if code not in self.numbers]
        for start in range(0, len(new), MOST_NAMES):
            some = new[start : start + MOST_NAMES]
            self.numbers |= {code: len(self.numbers) + n for n, code in enumerate(some)}
            self.say(names=[name_of(code) for code in some])
        self.say(functions=[self.numbers[code] for code in functions], **what)


def name_of(code: CodeType) -> str:
    """Name a function: file, first line, dotted name."""
    file = os.path.relpath(code.co_filename, FOLDER)
    return f"{file}:{code.co_firstlineno}:{code.co_qualname}"
