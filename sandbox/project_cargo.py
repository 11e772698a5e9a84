"""Run a Rust project's own tests: cargo builds them once, and each has a process of its own.

What a test came to is told by its process and by the harness's log, never by what is printed: a
function that ends the process with 0 in the middle of a test has not passed it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sandbox import crates, process, project, results
from sandbox.job import Host, Inbox, Job, TooMuchOutput
from sandbox.pytest_plugin import FOLDER
from sandbox.results import BLANK
from sandbox.rust import error_of

CARGO = "/usr/bin/cargo"
HOME = "/tmp/cargo"
TARGET = "/tmp/target"
BUILD = "build"
"""What stands for a test where the tests cannot even be compiled."""
SAID_BYTES = 64 * 2**20
"""How much cargo may say of a build."""
RAN_BYTES = 2**20
ERRORS = 3
FAILED = 101
"""How a harness ends when its test failed."""
_PANIC = re.compile(r"panicked at ([^\n]+?):(\d+):\d+:\n")


def run_cargo(host: Host, order: dict[str, Any]) -> None:
    """Build and run the tests until each has a result or time is up, and say what came of them."""
    pack = order.pop("pack")
    job = Job(host, {**order, "files": {}})
    record = project.Record()
    project.lay_out(order["tree"], zlib.decompress(base64.b64decode(pack)))
    Packages(job, record).run()
    job.end_all_but(set())
    host.say(say="ran", nonce=order["nonce"], **record.told())


# ---------------------------------------------------------------- programs


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it wrote to its standard output."""

    status: str
    """"" when it came to its own end; else which limit it met."""
    message: str
    code: int
    said: bytes


def ran(
    job: Job, command: list[str], folder: str, more: dict[str, str], until: float, most: int
) -> Ended:
    """Run a program, hearing the outside meanwhile; what it wrote to standard error is in `job`."""
    said, theirs = os.pipe()
    kills = process.out_of_memory_kills()
    job.output.start()
    pid = job.fork()
    if pid == 0:
        be(command, folder, more, theirs, job.output.write_end)
    os.close(theirs)
    inbox = Inbox(said)
    status, message = "", ""
    try:
        if not job.wait(inbox, until, lambda: len(inbox.data) > most, pid):
            status, message = "timeout", job.which_limit()
    except TooMuchOutput:
        status = "output"
    if len(inbox.data) > most:
        status = "output"
    how = job.how_ended(pid, 0.0 if status else 1.0)
    job.end_all_but(set())
    os.close(said)
    job.output.drain()
    if status == "output":
        message = f"printed more than the limit of {job.limits['output_bytes']} bytes"
    elif not status and process.out_of_memory_kills() > max(kills, 0):
        status, message = "memory", "killed by the kernel: out of memory"
    code = os.waitstatus_to_exitcode(job.ended[pid]) if pid in job.ended else -9
    return Ended(status, message or how, code, bytes(inbox.data))


def be(command: list[str], folder: str, more: dict[str, str], said: int, errors: int) -> NoReturn:
    """Be that program."""
    try:
        os.chdir(folder)
        process.take_descriptors({said}, errors)
        os.dup2(said, 1)
        os.close(said)
        process.offer_to_the_kernel(1000)
        known = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        os.execve(command[0], command, {**known, **more})
    finally:
        os._exit(process.LOST)


# ---------------------------------------------------------------- the build


@dataclass(frozen=True)
class Program:
    """A compiled target with tests: how it is named, where it lies, and its package's folder."""

    name: str
    path: str
    folder: str


class Packages:
    """A project's packages: built once, then run test by test."""

    def __init__(self, job: Job, record: project.Record) -> None:
        self.job = job
        self.record = record
        self.root = next(iter(job.order["roots"]), "")
        """The folder of the workspace, below the project's: cargo's paths begin there."""
        self.first = list(job.order["first"])
        self.hung = set(job.order["hung"])

    def run(self) -> None:
        programs = self.build()
        if BUILD in self.first and programs is not None and BUILD not in self.record.found:
            self.keep(BUILD, {"status": "passed"}, 0.0)
        every = [test for one in programs or [] for test in self.tests(one)]
        for one, name, is_ignored in sorted(every, key=lambda t: not self.is_first(t[1])):
            if is_ignored:
                self.keep(name, {"status": "skipped", "message": "ignored"}, 0.0)
            elif self.job.is_over or len(self.record.found) > project.MOST:
                self.record.trouble = self.record.trouble or self.job.which_limit()
                return
            else:
                self.test(one, name)

    def build(self) -> list[Program] | None:
        """Have cargo build all tests; None, with the reason kept, when it cannot."""
        if crates.TARGET.is_dir():
            shutil.copytree(crates.TARGET, TARGET, symlinks=True)
        began = time.monotonic()
        more = {"CARGO_HOME": HOME, "CARGO_TARGET_DIR": TARGET, "CARGO_TERM_COLOR": "never"}
        more |= {"CARGO_NET_OFFLINE": "true", **crates.PROFILE}
        command = [CARGO, *crates.TEST, "--message-format=json", *crates.configured(crates.CONFIG)]
        command += self.job.order["arguments"] or ["--tests"]
        folder = os.path.join(FOLDER, self.root)
        ended = ran(self.job, command, folder, more, self.job.ends_at, SAID_BYTES)
        messages = list(read_messages(ended.said))
        if ended.code == 0 and not ended.status:
            return [one for message in messages for one in programs_in(message)]
        errors = [m["message"] for m in messages if is_error(m)]
        if errors and not ended.status:
            self.keep(BUILD, broken(errors), time.monotonic() - began)
            self.record.evidence[BUILD] = [self.placed(place) for place in places(errors)]
        elif ended.status:
            self.record.trouble = f"cargo: {ended.message}"
        else:
            self.record.trouble = reason(self.job.output.text()) or f"cargo {ended.message}"
        return None

    # ------------------------------------------------------------ the tests

    def tests(self, one: Program) -> Iterator[tuple[Program, str, bool]]:
        """List a target's tests; a target without the standard harness is one test."""
        listed = self.listed(one)
        if listed is None:
            if self.is_wanted(one.name):
                yield one, one.name, False
            return
        ignored = set(self.listed(one, "--ignored") or []) if listed else set()
        for test in listed:
            name = f"{one.name}::{test}"
            if self.is_wanted(name):
                yield one, name, test in ignored

    def listed(self, one: Program, *more: str) -> list[str] | None:
        command = [one.path, "--list", "--format", "terse", *more]
        until = time.monotonic() + float(self.job.limits["test_seconds"])
        ended = ran(self.job, command, one.folder, surroundings(one), until, RAN_BYTES)
        lines = ended.said.decode("utf-8", "replace").splitlines()
        found = [line.removesuffix(": test") for line in lines if line.endswith(": test")]
        is_harness = (
            not ended.status
            and ended.code == 0
            and all(line.endswith((": test", ": benchmark")) for line in lines)
        )
        return found if is_harness else None

    def is_first(self, name: str) -> bool:
        return any(name == one or name.startswith(one + "::") for one in self.first)

    def is_wanted(self, name: str) -> bool:
        return bool(self.job.order["rest"]) or self.is_first(name)

    def test(self, one: Program, name: str) -> None:
        """Run one test in a process of its own."""
        began = time.monotonic()
        limit = self.job.limits["hung_seconds" if name in self.hung else "test_seconds"]
        log, trail = Path("/tmp/reflexfix-log"), Path("/tmp/reflexfix-ran")
        for left in (log, trail):
            left.unlink(missing_ok=True)
        test = name.removeprefix(one.name).removeprefix("::")
        command = [one.path]
        if test:
            command += [test, "--exact", "--nocapture", "--test-threads=1", f"--logfile={log}"]
        more = surroundings(one) | {"REFLEXFIX_RAN": str(trail)}
        most = int(self.job.limits["output_bytes"])
        ended = ran(self.job, command, one.folder, more, began + float(limit), most)
        printed = self.job.output.text()
        result = told(ended, printed, not test or f"ok {test}" in lines_of(log), test)
        self.keep(name, result, time.monotonic() - began)
        self.record.ran[name] = set(lines_of(trail)[: project.MOST_FUNCTIONS])
        if result["status"] != "passed" and (found := last_panic(printed)):
            self.record.evidence[name] = [self.placed(found)]

    def placed(self, place: str) -> str:
        return os.path.normpath(os.path.join(self.root, place))

    def keep(self, name: str, result: dict[str, Any], seconds: float) -> None:
        told = {**BLANK, **result, "name": name, "mode": "in-process", "seconds": round(seconds, 4)}
        self.record.found[name] = told


def surroundings(one: Program) -> dict[str, str]:
    """Give the environment that cargo would give a test."""
    return {"CARGO_MANIFEST_DIR": one.folder, "RUST_BACKTRACE": "0"}


def told(ended: Ended, printed: str, is_logged: bool, test: str) -> dict[str, Any]:
    """Say what a test came to: passed only if its process and the harness's log both say so."""
    if ended.status:
        return {"status": ended.status, "message": ended.message, "printed": printed}
    if ended.code == 0:
        if is_logged:
            return {"status": "passed"}
        return {"status": "error", "message": "the process ended before the test did"}
    status = "failed" if ended.code == FAILED else "error"
    message = panic(printed) or f"the process {ended.message}"
    return {"status": status, "message": message[: results.SHOWN], "printed": before(printed)}


def panic(printed: str) -> str:
    """Give what the last panic says, without the advice below it."""
    found = list(_PANIC.finditer(printed))
    if not found:
        return ""
    return printed[found[-1].end() :].partition("\nnote: ")[0].strip()


def before(printed: str) -> str:
    """Give what a test printed before it panicked."""
    return printed.partition("\nthread '")[0].strip()


def last_panic(printed: str) -> str:
    """Say where the last panic was, as a function is named: path, line, and no name."""
    found = list(_PANIC.finditer(printed))
    return f"{found[-1][1].removeprefix('./')}:{found[-1][2]}:" if found else ""


def lines_of(path: Path) -> list[str]:
    """Read a file that an untrusted process could write to."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(RAN_BYTES).decode("utf-8", "replace").splitlines()
    return []


# ---------------------------------------------------------------- what cargo says


def read_messages(said: bytes) -> Iterator[dict[str, Any]]:
    for line in said.splitlines():
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def programs_in(message: dict[str, Any]) -> Iterator[Program]:
    """Give the compiled tests that a message tells of."""
    is_test = message.get("reason") == "compiler-artifact" and message["profile"]["test"]
    if is_test and message.get("executable"):
        name = os.path.relpath(message["target"]["src_path"], FOLDER)
        yield Program(name, message["executable"], os.path.dirname(message["manifest_path"]))


def is_error(message: dict[str, Any]) -> bool:
    if message.get("reason") != "compiler-message":
        return False
    said = message["message"]
    return bool(said["level"].startswith("error") and not said["message"].startswith("aborting"))


def broken(errors: list[dict[str, Any]]) -> dict[str, Any]:
    """Say why the tests do not compile: the first errors, each once."""
    texts = list(dict.fromkeys(each.text for each in map(error_of, errors)))
    more = f"\n(and {len(texts) - ERRORS} more errors)" if len(texts) > ERRORS else ""
    return {"status": "compile-error", "message": "\n".join(texts[:ERRORS]) + more}


def places(errors: list[dict[str, Any]]) -> list[str]:
    """Name the main place of each error, as a function is named."""
    main = [place for error in errors for place in error_of(error).places[:1]]
    return list(dict.fromkeys(f"{file}:{line}:" for file, line in main))


def reason(printed: str) -> str:
    """Say why cargo did not even begin: its error, and what lies at the bottom of it."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    start = next((n for n, line in enumerate(lines) if line.startswith("error")), None)
    return "\n".join(lines[start : start + 8]) if start is not None else ""
