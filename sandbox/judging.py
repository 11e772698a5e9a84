"""Judge a candidate: import it, then read the tests, then run each in fresh processes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from sandbox import candidate, process, results, tester, wire
from sandbox.job import Host, Inbox, Job, TooMuchOutput, files_of
from sandbox.results import BLANK
from sandbox.watching import MARK

WRITABLE = ("/tmp", "/dev/mqueue", "/dev/shm", "/var/tmp")
"""All places of a container that code under test can write to; the last two Podman alone has."""
SIDE_SECONDS = 5.0
VALUES = 600
"""How much is said of the values that a call ended with, in characters."""
GOOD_END = process.describe(0)
OUT_OF_MEMORY = {"status": "memory", "message": "killed by the kernel: out of memory"}
NO_ROOM = {"status": "error", "message": "the candidate left no room for another process"}
LOST = {"status": "no-verdict", "message": "the candidate's process is gone", "lost": True}
NONSENSE = {"status": "no-verdict", "message": "the test's process answered nonsense"}


def judge(host: Host, order: dict[str, Any]) -> None:
    """Import the candidate, then read the tests, then run each of them."""
    job = Job(host, order)
    c = Candidate(job) if order["split"] else None
    tests = Tests(host.wait_for_frame())
    if c is not None and c.problem is None:
        tests.prepare(job)
    found = [judge_test(job, tests, c, test) for test in tests.tests]
    found = [once_more(job, tests, c, *pair) for pair in zip(tests.tests, found, strict=True)]
    problem = c.problem if c is not None else None
    told = {"import": problem, "results": results.within_budget(found)}
    host.say(say="verdict", nonce=tests.nonce, **told)
    job.end_all_but(set())  # each test's processes are gone; nobody waits for these two


class Tests:
    """What a candidate is judged by; read only after the candidate has its own process."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.nonce: str = order["nonce"]
        self.tests: list[dict[str, Any]] = order["tests"]
        self.files = files_of(order)
        self.side: TestSide | None = None

    def prepare(self, job: Job) -> None:
        """Load the user's file once, in a process from which each T is forked."""
        with contextlib.suppress(OSError):  # no room: each T loads the file for itself
            self.side = TestSide(job, self)

    def begin(
        self,
        test: dict[str, Any],
        job: Job,
        verdict: socket.socket,
        channel: socket.socket | None,
    ) -> Running:
        """Start T for one test. Raises OSError: no room."""
        if self.side is not None and channel is not None and self.side.is_ready():
            number = str(self.tests.index(test)).encode()
            self.side.fork(number, verdict, channel)
            return Running(self.side.pid, lambda _: self.side_says(), self.side.has_spoken)
        pid = job.fork()
        if pid == 0:
            self.forget_all_but(test)
            self.be_one(test, job, verdict, channel)
        return Running(pid, lambda seconds: job.how_ended(pid, seconds))

    def side_says(self) -> str:
        """Say how T ended; its parent is ours, and is waited for on the busiest machine."""
        words = self.side.last_words() if self.side is not None else ""
        return words or "ended unseen"

    def forget_all_but(self, test: dict[str, Any]) -> None:
        """Leave nothing of the other tests to the process that runs this one."""
        self.nonce = ""
        self.tests[:] = [test]

    def be_one(
        self,
        test: dict[str, Any],
        job: Job,
        verdict: socket.socket,
        channel: socket.socket | None,
    ) -> NoReturn:
        """Be the process T."""
        files = self.files if channel is not None else job.files
        tester.run(test, job.order, files, verdict, channel, job.output.write_end)


def judge_test(
    job: Job, tests: Tests, c: Candidate | None, test: dict[str, Any], watching: bool = False
) -> dict[str, Any]:
    """Run a test in its mode; in-process instead where the test, not the answer, needs it."""
    named = {"name": test["name"], "mode": test["mode"]}
    if c is not None and c.problem is not None:
        return {**BLANK, "printed": c.printed, **c.problem, **named}
    if job.is_over:
        message = f"not run: {job.which_limit()}"
        return {**BLANK, "status": "timeout", "message": message, **named}
    if test["mode"] == "in-process":
        return run_test(job, tests, None, test) | named
    if c is None or not c.is_ready():
        return {**BLANK, **LOST, **named}
    result = run_test(job, tests, c, test, watching)
    refused = result.pop("refused", False)
    if result.pop("argument_refused", False) or (refused and test["may_fall_back"]):
        return run_test(job, tests, None, test) | named | {"mode": "in-process"}
    return result | named


def once_more(
    job: Job, tests: Tests, c: Candidate | None, test: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    """Run a failing test again on the same candidate: one that changes its mind is unstable."""
    if result["status"] not in ("failed", "error") or test.get("control") or job.is_over:
        return result
    again = judge_test(job, tests, c, test)
    told = values_of(job, tests, c, test) if job.order.get("watch") else ""
    return {**result, "unstable": again["status"] == "passed", "values": told}


def values_of(job: Job, tests: Tests, c: Candidate | None, test: dict[str, Any]) -> str:
    """Say with which values a failing call ends: a run of its own, which decides nothing."""
    if job.is_over:
        return ""
    printed = judge_test(job, tests, c, test, watching=True)["printed"]
    return results.text(printed.rpartition(MARK)[2], VALUES) if MARK in printed else ""


# ---------------------------------------------------------------- the candidate's process


class Parent:
    """A process that outlives a single test, and forks one process for each."""

    patience = 0.2
    """How long it may take to say how a fork of it ended, in seconds."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.control, theirs = socket.socketpair()
        self.inbox = Inbox(self.control.fileno())
        self.frames: list[dict[str, Any]] = []
        self.serving = False
        self.pid = job.fork()
        if self.pid == 0:
            self.be_it(theirs)
        theirs.close()
        job.kept.add(self.pid)

    def be_it(self, control: socket.socket) -> NoReturn:
        """Be that process."""
        raise NotImplementedError

    def _heard(self) -> bool:
        try:
            self.frames += [f for f in self.inbox.frames() if isinstance(f, dict)]
        except wire.Malformed:
            self.inbox.closed = True
        return bool(self.frames)

    def is_ready(self) -> bool:
        """Whether it is there and has done with the test before; that one may have stopped it."""
        self.last_words()
        return not (self.inbox.closed or self.job.has_ended(self.pid))

    def has_spoken(self) -> bool:
        """Whether it has said something that nobody has read yet."""
        return bool(select.select([self.control], [], [], 0)[0])

    def fork(self, data: bytes, *channels: socket.socket) -> None:
        """Let a fork of it serve one test."""
        while self.has_spoken() and not self.inbox.closed:  # what came too late for last time
            self.inbox.fill()
            self._heard()
        self.frames.clear()
        with contextlib.suppress(OSError):
            socket.send_fds(self.control, [data], [channel.fileno() for channel in channels])
            self.serving = True

    def last_words(self) -> str:
        """Say how the fork that served the last test ended, as far as it tells; then it is free."""
        if not self.serving:
            return ""
        self.serving = False
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGCONT)
        with contextlib.suppress(TooMuchOutput):
            self.job.wait(self.inbox, time.monotonic() + self.patience, self._heard, self.pid)
        ended = [results.text(f["ended"], 80) for f in self.frames if "ended" in f]
        self.frames.clear()
        return ended[-1] if ended else ""


class TestSide(Parent):
    """The process that has loaded the user's file with the stub, and forks T for each test."""

    patience = SIDE_SECONDS

    def __init__(self, job: Job, tests: Tests) -> None:
        self.tests = tests
        super().__init__(job)

    def be_it(self, control: socket.socket) -> NoReturn:
        self.tests.nonce = ""
        job, tests = self.job, self.tests
        tester.run_each(tests.tests, job.order, tests.files, control, job.output.write_end)


class Running(NamedTuple):
    """A test under way: the process to be watched, and who says how T ended."""

    pid: int
    how_ended: Callable[[float], str]
    has_ended: Callable[[], bool] | None = None
    """Whether T has ended, where it is not a child of S."""


class Candidate(Parent):
    """The process C, in which the module is imported before any test has been read."""

    def __init__(self, job: Job) -> None:
        self.printed = ""
        super().__init__(job)
        kills = process.out_of_memory_kills()
        self.problem = self._import()
        job.end_all_but(job.kept)
        if self.problem is not None:
            self.give_up({**self.problem, **out_of_memory(self.problem, kills)})

    def be_it(self, control: socket.socket) -> NoReturn:
        """Be the process C."""
        candidate.run(self.job.order, self.job.files, control, self.job.output.write_end)

    def give_up(self, problem: dict[str, Any]) -> None:
        """End it; every test from now on has this problem."""
        self.problem = problem
        self.printed = self.job.output.text()
        self.job.end_all_but(set())

    def _import(self) -> dict[str, Any] | None:
        """Wait for the import to end; None when it did as it should."""
        try:
            in_time = self.job.wait(self.inbox, self.job.until(), self._heard, self.pid)
        except TooMuchOutput:
            return {"status": "output", "message": "too much output while being imported"}
        if not in_time:
            return {"status": "timeout", "message": f"import: {self.job.which_limit()}"}
        if not self.frames:
            how = self.job.how_ended(self.pid, 0.1)
            return {"status": "error", "message": f"the candidate {how} while being imported"}
        problem = self.frames.pop(0).get("import")
        return None if problem is None else {"status": "error", **results.problem(problem)}


# ---------------------------------------------------------------- one test


def run_test(
    job: Job, tests: Tests, c: Candidate | None, test: dict[str, Any], watching: bool = False
) -> dict[str, Any]:
    """Run one test in fresh processes and end everything that it started."""
    started, kills = time.monotonic(), process.out_of_memory_kills()
    job.output.start()
    ours, theirs = socket.socketpair()
    try:
        running = start(job, tests, c, test, theirs, watching)
    except OSError:
        result = no_room(c)
    else:
        result = watched(job, Inbox(ours.fileno()), running)
    if result.pop("died", False) and c is not None and (words := c.last_words()):
        result["message"] = f"the candidate {words} during the call"
    job.end_all_but(job.kept)
    ours.close()
    theirs.close()
    for folder in WRITABLE:
        process.empty_folder(folder)
    result |= out_of_memory(result, kills)
    seconds = round(time.monotonic() - started, 4)
    return {**BLANK, **result, "seconds": seconds, "printed": job.output.text()}


def no_room(c: Candidate | None) -> dict[str, Any]:
    if c is not None:
        c.give_up(dict(NO_ROOM))
    return dict(NO_ROOM)


def out_of_memory(result: dict[str, Any], kills: int) -> dict[str, Any]:
    """Say so when the kernel has killed since `kills` were counted, and that may be why."""
    unclear = result["status"] in ("error", "no-verdict")
    return OUT_OF_MEMORY if unclear and process.out_of_memory_kills() > max(kills, 0) else {}


def start(
    job: Job,
    tests: Tests,
    c: Candidate | None,
    test: dict[str, Any],
    verdict: socket.socket,
    watching: bool,
) -> Running:
    """Start T, and let C serve it; without C, both are one process. Raises OSError: no room."""
    channel = None
    if c is not None:
        channel, theirs = socket.socketpair()
        c.fork(candidate.WATCHED if watching else b"c", theirs)
        theirs.close()
    running = tests.begin(test, job, verdict, channel)
    if channel is not None:
        channel.close()
    verdict.close()
    return running


def watched(job: Job, inbox: Inbox, running: Running) -> dict[str, Any]:
    """Wait for the verdict of one test, within its limits; a pass needs a good end as well."""
    found: list[Any] = []

    def answered() -> bool:
        found.extend(inbox.frames())
        return bool(found)

    try:
        in_time = job.wait(inbox, job.until(), answered, running.pid, running.has_ended)
    except TooMuchOutput:
        limit = job.limits["output_bytes"]
        return {"status": "output", "message": f"printed more than the limit of {limit} bytes"}
    except wire.Malformed:
        return dict(NONSENSE)
    if not in_time:
        return {"status": "timeout", "message": job.which_limit()}
    if not found:
        message = f"the test's process {running.how_ended(0.1)}"
        return {"status": "no-verdict", "message": message}
    job.output.drain()
    result = results.told(found[0].get("end") if isinstance(found[0], dict) else None)
    if result["status"] == "passed" and (how := running.how_ended(1.0)) != GOOD_END:
        return {"status": "no-verdict", "message": f"the test's process {how}"}
    return result
