"""The first process of the container: forks candidate and test, watches, and says the verdict."""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib.util
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, "/")
from sandbox import candidate, process, pytest_plugin, tester, wire

sys.path.remove("/")

SHOWN_OUTPUT = 2000
"""How much of what a test printed is said in its result, in bytes."""


class HostGone(Exception):
    """Nobody outside waits for a verdict any more."""


class TooMuchOutput(Exception):
    """Candidate and test together printed more than they may."""


class Standard:
    """Standard input and output as a channel for frames."""

    def recv(self, size: int, /) -> bytes:
        return os.read(0, size)

    def sendall(self, data: bytes, /) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


class Inbox:
    """Bytes of one pipe, cut into frames as they arrive."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
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
            if size > wire.FRAME_BYTES:
                raise wire.Malformed(f"a frame of {size} bytes")
            if len(self.data) < 4 + size:
                break
            body = bytes(self.data[4 : 4 + size])
            del self.data[: 4 + size]
            found.append(None if size == 0 else wire.unpack(body))
        return found


class Host:
    """The outside, as S sees it: jobs and heartbeats in, verdicts out."""

    def __init__(self, beat_seconds: float, life_seconds: float) -> None:
        self.beat_seconds = beat_seconds
        self.ends_at = time.monotonic() + life_seconds
        self.last_beat = time.monotonic()
        self.standard = Standard()
        self.inbox = Inbox(0)

    def say(self, **message: Any) -> None:
        wire.send(self.standard, message)

    def wait_for_job(self) -> dict[str, Any]:
        """Read exactly one job and not a byte more: what follows is not for every process."""
        while True:
            self._wait_for_bytes()
            frame = wire.receive(self.standard)
            self.last_beat = time.monotonic()
            if frame is not None:
                return dict(frame)

    def _wait_for_bytes(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            while not selector.select(0.1):
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
        self.start()

    def start(self) -> None:
        """Begin to count anew, for the next test."""
        self.kept = bytearray()
        self.count = 0

    def fill(self) -> None:
        try:
            part = os.read(self.read_end, 2**16)
        except BlockingIOError:
            return
        self.count += len(part)
        self.kept += part[: max(0, SHOWN_OUTPUT - len(self.kept))]
        if self.count > self.limit:
            raise TooMuchOutput

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

    def wait(self, inbox: Inbox, until: float, answered: Callable[[], bool]) -> bool:
        """Watch host, output and one pipe until `answered` holds; False when time is up."""
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ, self.host.hear)
            selector.register(self.output.read_end, selectors.EVENT_READ, self.output.fill)
            selector.register(inbox.descriptor, selectors.EVENT_READ, inbox.fill)
            while not answered():
                left = min(until, self.ends_at) - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in selector.select(min(left, 0.1)):
                    key.data()
                self.host.check_alive()
                if inbox.closed:
                    return True
        return True

    def which_limit(self) -> str:
        if time.monotonic() >= self.ends_at:
            return f"limit of {self.limits['total_seconds']:g} s for the whole evaluation"
        return f"limit of {self.limits['test_seconds']:g} s for one test"

    def until(self) -> float:
        return time.monotonic() + float(self.limits["test_seconds"])


def files_of(order: dict[str, Any]) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in order["files"].items()}


# ---------------------------------------------------------------- the candidate's process


class Candidate:
    """The process C, in which the module is imported before any test has been read."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.control, theirs = socket.socketpair()
        self.inbox = Inbox(self.control.fileno())
        self.frames: list[Any] = []
        self.pid = os.fork()
        if self.pid == 0:
            candidate.run(job.order, job.files, theirs, job.output.write_end)
        theirs.close()
        job.kept.add(self.pid)
        self.problem = self._import()

    def _import(self) -> dict[str, Any] | None:
        """Wait for the import to end; None when it did as it should."""
        try:
            in_time = self.job.wait(self.inbox, self.job.until(), self._heard)
        except TooMuchOutput:
            return {"status": "output", "message": "too much output while being imported"}
        if not in_time:
            return {"status": "timeout", "message": f"import: {self.job.which_limit()}"}
        frame = self.frames.pop(0) if self.frames else {}
        if "import" not in frame:
            return {"status": "error", "message": "the candidate exited while being imported"}
        problem = frame["import"]
        return problem and {"status": "error", **as_problem(problem)}

    def _heard(self) -> bool:
        try:
            self.frames += [f for f in self.inbox.frames() if isinstance(f, dict)]
        except wire.Malformed:
            self.inbox.closed = True
        return bool(self.frames)

    def fork(self, channel: socket.socket) -> None:
        """Let a fork of C serve one test."""
        with contextlib.suppress(OSError):
            socket.send_fds(self.control, [b"f"], [channel.fileno()])

    def last_words(self) -> str:
        """Say how the fork that served the last test ended, as far as C tells."""
        with contextlib.suppress(TooMuchOutput):
            self.job.wait(self.inbox, time.monotonic() + 0.2, self._heard)
        ended = [str(f["ended"])[:80] for f in self.frames if "ended" in f]
        self.frames.clear()
        return ended[-1] if ended else ""


def as_problem(found: Any) -> dict[str, Any]:
    """Read a problem that an untrusted process wrote."""
    try:
        frames = [str(frame)[:500] for frame in found["frames"][:5]]
        return {"message": str(found["message"])[:2000], "frames": frames}
    except (TypeError, LookupError, AttributeError):
        return {"message": "the candidate's process answered nonsense", "frames": []}


# ---------------------------------------------------------------- one test


def run_test(job: Job, tests: Job, c: Candidate | None, test: dict[str, Any]) -> dict[str, Any]:
    """Run one test in fresh processes and end everything that it started."""
    started, kills = time.monotonic(), process.out_of_memory_kills()
    job.output.start()
    ours, theirs = socket.socketpair()
    try:
        inbox = Inbox(ours.fileno())
        pid = start(job, tests, c, test, theirs)
        result = watch(job, inbox, pid)
        how = wait_status(pid, 1.0 if result["status"] == "passed" else 0.0)
    finally:
        statuses = process.kill_all_but(job.kept)
        ours.close()
        theirs.close()
    how = process.describe(statuses[pid]) if pid in statuses else how
    if result["status"] == "passed" and how != GOOD_END:
        result = {"status": "no-verdict", "message": f"the test's process {how}"}
    if result["status"] in ("error", "no-verdict") and process.out_of_memory_kills() > max(
        kills, 0
    ):
        result = {"status": "memory", "message": "killed by the kernel: out of memory"}
    if result.get("died") and c is not None and (words := c.last_words()):
        result["message"] = f"the candidate {words} during the call"
    elif c is not None:
        c.last_words()
    process.empty_folder("/tmp")
    seconds = round(time.monotonic() - started, 4)
    return {**BLANK, **result, "seconds": seconds, "printed": job.output.text()}


GOOD_END = process.describe(0)
BLANK: dict[str, Any] = {
    "expected": None,
    "actual": None,
    "compared": False,
    "message": "",
    "frames": [],
    "unstable": False,
}


def start(
    job: Job, tests: Job, c: Candidate | None, test: dict[str, Any], verdict: socket.socket
) -> int:
    """Fork T, and let C serve it; without C, both are one process."""
    channel = None
    if c is not None:
        channel, theirs = socket.socketpair()
        c.fork(theirs)
        theirs.close()
    pid = os.fork()
    if pid == 0:
        files = tests.files if c is not None else job.files
        tester.run(test, job.order, files, verdict, channel, job.output.write_end)
    if channel is not None:
        channel.close()
    verdict.close()
    return pid


def watch(job: Job, inbox: Inbox, pid: int) -> dict[str, Any]:
    """Wait for the verdict of one test, within its limits."""
    found: list[Any] = []

    def answered() -> bool:
        found.extend(inbox.frames())
        return bool(found)

    try:
        in_time = job.wait(inbox, job.until(), answered)
    except TooMuchOutput:
        limit = job.limits["output_bytes"]
        return {"status": "output", "message": f"printed more than the limit of {limit} bytes"}
    except wire.Malformed:
        return {"status": "no-verdict", "message": "the test's process answered nonsense"}
    if not in_time:
        return {"status": "timeout", "message": job.which_limit()}
    if not found:
        message = f"the test's process {wait_status(pid, 0.1)}"
        return {"status": "no-verdict", "message": message}
    drain(job)
    return dict(found[0]["end"])


def wait_status(pid: int, seconds: float) -> str:
    """Say how a child ended, or that it has not ended after this long."""
    until = time.monotonic() + seconds
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return "ended unseen"
        if done:
            return process.describe(status)
        if time.monotonic() >= until:
            return "had not ended"
        time.sleep(0.0002)


def drain(job: Job) -> None:
    """Read what is left of the output, once the verdict is in."""
    with contextlib.suppress(TooMuchOutput):
        before = -1
        while before != job.output.count:
            before = job.output.count
            job.output.fill()


# ---------------------------------------------------------------- jobs


def judge(host: Host, order: dict[str, Any]) -> None:
    """Import the candidate, then read the tests, then run each of them."""
    job = Job(host, order)
    c = Candidate(job) if order["split"] else None
    tests = read_tests(host)
    if c is not None and c.problem is not None:
        results = [{**BLANK, "seconds": 0.0, "printed": job.output.text(), **c.problem}]
        results = [{**results[0], "name": t["name"], "mode": "split"} for t in tests.order["tests"]]
    else:
        results = [judge_test(job, tests, c, test) for test in tests.order["tests"]]
        results = [
            once_more(job, tests, c, *pair)
            for pair in zip(tests.order["tests"], results, strict=False)
        ]
    process.kill_all_but(set())
    problem = c.problem if c is not None else None
    host.say(say="verdict", nonce=order["nonce"], results=results, **{"import": problem})


def read_tests(host: Host) -> Job:
    """Take the tests from the stream; only now do they exist in this container."""
    while True:
        for frame in host.inbox.frames():
            if frame is not None:
                return Job(host, {"limits": {"total_seconds": 0, "output_bytes": 0}, **frame})
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            if selector.select(0.1):
                host.hear()
        host.check_alive()


def judge_test(job: Job, tests: Job, c: Candidate | None, test: dict[str, Any]) -> dict[str, Any]:
    """Run a test in its mode; in-process instead where the test, not the answer, needs it."""
    named = {"name": test["name"], "mode": test["mode"]}
    if time.monotonic() >= job.ends_at:
        message = f"not run: {job.which_limit()}"
        return {
            **BLANK,
            "status": "timeout",
            "message": message,
            "seconds": 0,
            "printed": "",
        } | named
    if test["mode"] == "in-process":
        return run_test(job, tests, None, test) | named
    result = run_test(job, tests, c, test)
    refused = result.pop("refused", False)
    if result.pop("argument_refused", False) or (refused and test["may_fall_back"]):
        return run_test(job, tests, None, test) | named | {"mode": "in-process"}
    return result | named


def once_more(
    job: Job, tests: Job, c: Candidate | None, test: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    """Run a failing test again on the same candidate: one that changes its mind is unstable."""
    if result["status"] not in ("failed", "error") or test.get("control"):
        return result
    if time.monotonic() >= job.ends_at:
        return result
    again = judge_test(job, tests, c, test)
    return {**result, "unstable": again["status"] == "passed"}


def probe(host: Host, order: dict[str, Any]) -> None:
    """Say which modules the image does not have."""
    missing = [name for name in order["modules"] if not is_there(name)]
    host.say(say="probe", nonce=order["nonce"], missing=missing)


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def run_pytest(host: Host, order: dict[str, Any]) -> None:
    """Run a user's test files; a test that hangs is ended, and the others go on without it."""
    job = Job(host, order)
    results: dict[str, dict[str, Any]] = {}
    pytest_plugin.write_files(job.files)
    while pytest_round(job, results):
        pass
    process.kill_all_but(set())
    host.say(
        say="verdict", nonce=order["nonce"], results=list(results.values()), **{"import": None}
    )


def pytest_round(job: Job, results: dict[str, dict[str, Any]]) -> bool:
    """Run pytest until it ends or a test must be ended; True when there may be more to run."""
    ours, theirs = socket.socketpair()
    kills = process.out_of_memory_kills()
    job.output.start()
    pid = os.fork()
    if pid == 0:
        pytest_plugin.run(job.order, set(results), theirs, job.output.write_end)
    theirs.close()
    story = PytestStory(job, Inbox(ours.fileno()), results)
    ended = story.follow()
    process.kill_all_but(set())
    ours.close()
    if not ended and process.out_of_memory_kills() > max(kills, 0):
        story.blame("memory", "killed by the kernel: out of memory")
    return not ended and time.monotonic() < job.ends_at


class PytestStory:
    """What one pytest process tells, and which test it was in when it fell silent."""

    def __init__(self, job: Job, inbox: Inbox, results: dict[str, dict[str, Any]]) -> None:
        self.job, self.inbox, self.results = job, inbox, results
        self.current = ""
        self.began = time.monotonic()
        self.frames: list[dict[str, Any]] = []

    def follow(self) -> bool:
        """Take in reports until pytest says that it is done; False when it was cut short."""
        while True:
            try:
                in_time = self.job.wait(self.inbox, self.job.until(), self._heard)
            except TooMuchOutput:
                limit = self.job.limits["output_bytes"]
                self.blame("output", f"printed more than the limit of {limit} bytes")
                return False
            if not in_time:
                self.blame("timeout", self.job.which_limit())
                return False
            if not self.frames:
                self.blame("error", "the process ended during the test")
                return self.current == ""
            if any(self._take(frame) for frame in self.frames):
                return True
            self.frames.clear()

    def _heard(self) -> bool:
        try:
            self.frames += [f for f in self.inbox.frames() if isinstance(f, dict)]
        except wire.Malformed:
            self.inbox.closed = True
        return bool(self.frames)

    def _take(self, frame: dict[str, Any]) -> bool:
        if "begin" in frame:
            self.current, self.began = str(frame["begin"]), time.monotonic()
        elif "report" in frame:
            self._report(str(frame["report"]), frame)
        elif "collect" in frame:
            self._report(str(frame["collect"]), {"status": "error", "frames": [], **frame})
        return "end" in frame

    def _report(self, name: str, frame: dict[str, Any]) -> None:
        worse = self.results.get(name, {}).get("status") in ("failed", "error")
        if not worse:
            problem = as_problem({"message": frame["message"], "frames": frame["frames"]})
            self._keep(name, str(frame["status"]), problem)
        self.current = "" if self.current == name else self.current

    def blame(self, status: str, message: str) -> None:
        """Lay what ended the process to the test that was running."""
        name = self.current or "pytest"
        self._keep(name, status, {"message": message, "frames": []})

    def _keep(self, name: str, status: str, problem: dict[str, Any]) -> None:
        self.results[name] = {
            **BLANK,
            **problem,
            "name": name,
            "status": status,
            "mode": "in-process",
            "seconds": round(time.monotonic() - self.began, 4),
            "printed": self.job.output.text(),
        }


JOBS: dict[str, Callable[[Host, dict[str, Any]], None]] = {
    "judge": judge,
    "probe": probe,
    "pytest": run_pytest,
}


def facts() -> dict[str, Any]:
    """Tell what this container's limits are from within."""
    tmp = os.statvfs("/tmp")
    return {
        "uid": os.getuid(),
        "tmp_bytes": tmp.f_blocks * tmp.f_frsize,
        "tmp_inodes": tmp.f_files,
        "interfaces": sorted(os.listdir("/sys/class/net"))
        if Path("/sys/class/net").exists()
        else [],
        "memory_bytes": first_number("memory.max", "memory/memory.limit_in_bytes"),
        "pids": first_number("pids.max", "pids/pids.max"),
        "root_is_read_only": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
        "seccomp": status_field("Seccomp"),
        "no_new_privileges": status_field("NoNewPrivs"),
        "capabilities": status_field("CapEff"),
        "sees_memory_kills": process.out_of_memory_kills() >= 0,
    }


def first_number(*names: str) -> int:
    """Read the first of these cgroup files that holds a number; 0 when none does."""
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            return int(Path("/sys/fs/cgroup", name).read_text())
    return 0


def status_field(name: str) -> str:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return ""


def warm() -> None:
    """Import what tests and candidates commonly use, once, before anybody waits for it."""
    names = (
        "abc array bisect calendar collections.abc contextlib copy dataclasses datetime decimal "
        "enum fractions functools hashlib heapq io itertools json math numbers operator pathlib "
        "random re statistics string struct tempfile textwrap threading time traceback typing "
        "unicodedata unittest asyncio linecache inspect"
    )
    for name in names.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def main(arguments: list[str]) -> None:
    """Serve one job, then end."""
    process.set_dumpable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    beat_seconds, life_seconds = (float(argument) for argument in arguments)
    host = Host(beat_seconds, life_seconds)
    warm()
    host.last_beat = time.monotonic()
    host.say(say="ready", python=sys.version.split()[0], facts=facts())
    try:
        order = host.wait_for_job()
        JOBS[order["do"]](host, order)
    except (HostGone, wire.Closed, BrokenPipeError):
        process.kill_all_but(set())


if __name__ == "__main__":
    main(sys.argv[1:])
