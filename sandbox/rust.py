"""Rust inside: compile a crate into a library, load it in fresh processes, run one test in each.

A library that is loaded has no name in the file system, only a descriptor that is handed down,
so that no process finds the library of another one by a path.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import functools
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from sandbox import candidate, judging, process, results, wire
from sandbox.crates import USE
from sandbox.job import Host, Inbox, Job, TooMuchOutput
from sandbox.results import BLANK

RUSTC = "/usr/bin/rustc"
WIRE = "/sandbox/libreflexfix_wire.so"
LINKER = "/sandbox/linker"
FOLDER = Path("/tmp/rust")
MODULE = "reflexfix_module.rs"
"""The file beside the user's: what serves the candidate, or the tests."""
COPIES = "reflexfix_copies.rs"
"""The file with what is written inside of a function, once more; its errors are said already."""
LIBRARY = FOLDER / "library.so"
SAID_BYTES = 2**20
"""How much of what the compiler says is read; after that it is ended."""
ERRORS = 3
ROUNDS = 8
"""How often a suite is compiled anew without the tests that do not compile."""
HEAD = ["#![allow(warnings)]", "use super::*;"]


# ---------------------------------------------------------------- compiling


@dataclass(frozen=True)
class Error:
    """One error of the compiler, short, and where it is."""

    text: str
    places: tuple[tuple[str, int], ...] = ()
    """File and line of each place of it in the crate, the main one first."""


@dataclass(frozen=True)
class Compiled:
    """What came of a compilation: a status "" when all is well."""

    status: str = ""
    message: str = ""
    errors: tuple[Error, ...] = ()

    @property
    def problem(self) -> dict[str, Any] | None:
        if not self.status:
            return None
        return {"status": self.status, "message": self.message, "frames": []}


def compiled(job: Job, files: dict[str, bytes], emit: str = "link") -> Compiled:
    """Compile the crate, within its limits; the library is a file in FOLDER then."""
    write(files)
    job.output.start()
    kills = process.out_of_memory_kills()
    pid, said = told(job, command(job.order, emit))
    inbox = Inbox(said)
    until = time.monotonic() + float(job.limits["compile_seconds"])
    job.ends_at = until + 1
    try:
        in_time = job.wait(inbox, until, lambda: len(inbox.data) > SAID_BYTES, pid)
    except TooMuchOutput:
        in_time = True
    inbox.fill()
    how = job.how_ended(pid, 1.0) if in_time and len(inbox.data) <= SAID_BYTES else "talked on"
    job.end_all_but(job.kept)
    os.close(said)
    job.ends_at = time.monotonic() + float(job.limits["total_seconds"])
    if not in_time:
        limit = f"limit of {job.limits['compile_seconds']:g} s for the compiler"
        return Compiled("compile-timeout", limit)
    return ending(how, bytes(inbox.data), kills)


def ending(how: str, said: bytes, kills: int) -> Compiled:
    """Read what the compiler said, and how it ended."""
    if how == judging.GOOD_END:
        return Compiled()
    if process.out_of_memory_kills() > max(kills, 0):
        return Compiled("memory", "the compiler used more memory than there is")
    every = list(errors_of(said))
    errors = tuple(e for e in every if not any(file == COPIES for file, _ in e.places[:1]))
    shown = "\n".join(error.text for error in errors[:ERRORS])
    more = f"\n(and {len(errors) - ERRORS} more errors)" if len(errors) > ERRORS else ""
    message = shown + more if shown else f"the compiler {how}"
    return Compiled("compile-error", message, errors)


def write(files: dict[str, bytes]) -> None:
    """Lay out the crate; names come from outside and stay inside the folder."""
    FOLDER.mkdir(exist_ok=True)
    process.empty_folder(str(FOLDER))
    for name, data in files.items():
        place = FOLDER.joinpath(*(part for part in Path(name).parts if part not in ("/", "..")))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def command(order: dict[str, Any], emit: str) -> list[str]:
    """Give the compiler's arguments.

    Lints are capped, those that are errors by default or by the file's own word too: they would
    speak of the module beside the user's file, and of what a stub leaves unused.
    """
    kind = ["--crate-type", "cdylib", "-o", str(LIBRARY)]
    if emit == "metadata":
        kind = ["--crate-type", "lib", "--emit=metadata", "-o", str(FOLDER / "library.rmeta")]
    return [
        f"--edition={order['edition']}", "--crate-name=reflexfix_crate", *kind,
        "--error-format=json", "--cap-lints=allow", f"--extern=reflexfix_wire={WIRE}",
        "-Cdebuginfo=0", "-Ccodegen-units=1", f"-Clinker={LINKER}",
        *crates()["arguments"], order["module"],
    ]  # fmt: skip


# ---------------------------------------------------------------- the compiler's process


@dataclass(frozen=True)
class Waiting:
    """A compiler that has been started ahead, and waits for its arguments."""

    pid: int
    arguments: int
    """The writing end of its standard input, from which it reads them."""
    said: int
    """The reading end of its standard error."""

    def tell(self, arguments: list[str]) -> None:
        """Let it begin. Raises OSError when it has ended meanwhile."""
        with os.fdopen(self.arguments, "wb") as pipe:
            pipe.write("\n".join(arguments).encode())


STARTED: list[Waiting] = []
"""One compiler at most, started before anybody waits for it: a tenth of a short compilation."""


def start(fork: Callable[[], int]) -> Waiting:
    """Start a compiler, which no secret of S is left to."""
    FOLDER.mkdir(exist_ok=True)
    asked, arguments = os.pipe()
    said, theirs = os.pipe()
    os.set_blocking(said, False)
    pid = fork()
    if pid == 0:
        be_the_compiler(asked, theirs)
    os.close(asked)
    os.close(theirs)
    return Waiting(pid, arguments, said)


def told(job: Job, arguments: list[str]) -> tuple[int, int]:
    """Give a compiler its arguments; say which process it is, and where what it says arrives."""
    while STARTED:
        early = STARTED.pop()
        with contextlib.suppress(OSError):
            early.tell(arguments)
            return early.pid, early.said
        os.close(early.said)
    now = start(job.fork)
    with contextlib.suppress(OSError):  # how it ended is seen by whoever waits for it
        now.tell(arguments)
    return now.pid, now.said


def be_the_compiler(asked: int, said: int) -> NoReturn:
    """Be the compiler; it reads its arguments from standard input, and has no other output."""
    try:
        os.chdir(FOLDER)
        process.take_descriptors({asked, said}, os.open("/dev/null", os.O_WRONLY))
        os.dup2(asked, 0)
        os.dup2(said, 2)
        os.closerange(3, 4096)
        process.offer_to_the_kernel(1000)
        environment = {"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8"}
        os.execve(RUSTC, [RUSTC, "@/dev/stdin"], environment)
    finally:
        os._exit(process.LOST)


# ---------------------------------------------------------------- what the compiler says


def errors_of(said: bytes) -> Iterator[Error]:
    """List the errors of a JSON stream of diagnostics; lines that are none are left out."""
    for line in said.splitlines():
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            found = json.loads(line)
            if found["level"].startswith("error") and not found["message"].startswith("aborting"):
                yield error_of(found)


def error_of(found: dict[str, Any]) -> Error:
    """Say an error in a few lines: what, where, the line itself, and the first help."""
    spans = sorted(found["spans"], key=lambda span: not span["is_primary"])
    at_home = [home for span in spans if (home := home_of(span)) is not None]
    code = (found.get("code") or {}).get("code")
    lines = [f"error{f'[{code}]' if code else ''}: {found['message'][:300]}"]
    if at_home:
        span = at_home[0]
        source = span["text"][0]["text"].strip()[:120] if span["text"] else ""
        where = "" if span["file_name"] == MODULE else f"{span['file_name']}:{span['line_start']}: "
        lines.append(f"  at {where}{source.replace('::reflexfix_wire::', '')}")
        labels = [s["label"] for s in at_home[:2] if s.get("label")]
        lines += [f"  {label[:160]}" for label in labels]
    helps = [c["message"] for c in found["children"] if c["level"] in ("help", "note")]
    lines += [f"  help: {text.splitlines()[0][:160]}" for text in helps[:1] if text]
    places = tuple((str(s["file_name"]), int(s["line_start"])) for s in at_home)
    return Error("\n".join(lines), places)


def home_of(span: dict[str, Any]) -> dict[str, Any] | None:
    """Follow a span out of macros of other crates to where they are called in this one."""
    place: dict[str, Any] | None = span
    while place is not None:
        name = str(place["file_name"])
        if name.startswith(str(FOLDER)):
            return {**place, "file_name": Path(name).name, "label": span["label"]}
        if not name.startswith(("/", "<")):
            return {**place, "label": span["label"]}
        place = (place.get("expansion") or {}).get("span")
    return None


# ---------------------------------------------------------------- crates from elsewhere


@functools.cache
def crates() -> dict[str, Any]:
    """Say which crates the image has beside the standard library, and how they are found."""
    if not USE.exists():
        return {"names": [], "arguments": []}
    return dict(json.loads(USE.read_text()))


def probe(host: Host, order: dict[str, Any]) -> None:
    """Say which crates the image does not have."""
    missing = [name for name in order["modules"] if name not in crates()["names"]]
    host.say(say="probe", nonce=order["nonce"], missing=missing)


# ---------------------------------------------------------------- the tests' crate


@dataclass
class Written:
    """The tests as one module, and which lines belong to which."""

    tests: list[dict[str, Any]]
    lines: list[str] = field(default_factory=lambda: list(HEAD))
    ranges: list[range] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, test in enumerate(self.tests):
            start = len(self.lines) + 1
            self.lines += [f"fn test_{number}() {{", *test["source"].split("\n"), "}"]
            self.ranges.append(range(start, len(self.lines) + 1))
        names = ", ".join(f"test_{number}" for number in range(len(self.tests)))
        self.lines.append(f"::reflexfix_wire::tests_are!({names});")

    @property
    def text(self) -> bytes:
        return "\n".join([*self.lines, ""]).encode()

    def blamed(self, error: Error) -> str:
        """Name the test that an error lies in; "" when it lies elsewhere."""
        for file, line in error.places[:1]:
            for test, lines in zip(self.tests, self.ranges, strict=True):
                if file == MODULE and line in lines:
                    return str(test["name"])
        return ""


@dataclass(frozen=True)
class Built:
    """A crate with tests: which are in it, which are not and why, or why there is none."""

    tests: list[dict[str, Any]]
    dropped: dict[str, str]
    compiled: Compiled


def built(
    job: Job, files: dict[str, bytes], tests: list[dict[str, Any]], emit: str = "link"
) -> Built:
    """Compile a crate with tests, dropping those that do not compile one by one."""
    dropped: dict[str, str] = {}
    for _ in range(ROUNDS):
        module = Written(tests)
        result = compiled(job, {**files, MODULE: module.text}, emit)
        blamed = {module.blamed(error): error.text for error in reversed(result.errors)}
        elsewhere = blamed.pop("", "")
        if result.status != "compile-error" or elsewhere or not blamed:
            return Built(tests, dropped, result)
        dropped |= blamed
        tests = [test for test in tests if test["name"] not in dropped]
    return Built(tests, dropped, result)


def build_tests(host: Host, order: dict[str, Any]) -> None:
    """Compile the tests against the stub, in a container that no candidate ever enters."""
    job = Job(host, order)
    emit = "metadata" if order["check"] else "link"
    found = built(job, job.files, order["tests"], emit)
    library = b"" if order["check"] or found.compiled.status else LIBRARY.read_bytes()
    names = [test["name"] for test in found.tests]
    told = {"problem": found.compiled.problem, "dropped": found.dropped, "names": names}
    told["errors"] = [
        [e.text, *place] for e in found.compiled.errors[:20] for place in e.places[:1]
    ]
    text = base64.b64encode(library).decode("ascii")
    host.say(say="built", nonce=order["nonce"], library=text, **told)


# ---------------------------------------------------------------- judging


def judge(host: Host, order: dict[str, Any]) -> None:
    """Compile and load the candidate, then read the tests, then run each of them."""
    job = Job(host, order)
    if order["split"]:
        judge_split(host, job)
    else:
        judge_in_one(host, job)


def judge_split(host: Host, job: Job) -> None:
    result = compiled(job, job.files)
    c = Served(job) if not result.status else None
    tests = Linked(host.wait_for_frame())
    if c is None:
        say_verdict(host, tests, not_run(tests.tests, result.problem or {}), result.problem)
        return
    job.ends_at = time.monotonic() + float(job.limits["total_seconds"])
    say_verdict(host, tests, run_all(job, tests, c), c.problem)


def judge_in_one(host: Host, job: Job) -> None:
    """Compile candidate and tests into one library."""
    tests = Linked(host.wait_for_frame())
    found = built(job, job.files, tests.tests)
    if problem := found.compiled.problem:
        say_verdict(host, tests, not_run(tests.tests, problem), problem)
        return
    tests.link(LIBRARY.read_bytes(), found.tests)
    process.empty_folder("/tmp")
    dropped = [
        one
        for test in tests.tests
        if (why := found.dropped.get(test["name"]))
        for one in not_run([test], {"status": "compile-error", "message": why})
    ]
    say_verdict(host, tests, [*run_all(job, tests, None), *dropped], None)


def run_all(job: Job, tests: Linked, c: judging.Candidate | None) -> list[dict[str, Any]]:
    """Run the tests that are in the library, each in fresh processes."""
    linked = [test for test in tests.tests if test["name"] in tests.names]
    found = [judging.judge_test(job, tests, c, test) for test in linked]
    pairs = zip(linked, found, strict=True)
    found = [judging.once_more(job, tests, c, test, result) for test, result in pairs]
    job.end_all_but(set())
    return found


def not_run(tests: list[dict[str, Any]], problem: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**BLANK, **problem, "name": t["name"], "mode": t["mode"]} for t in tests]


def say_verdict(
    host: Host, tests: Linked, found: list[dict[str, Any]], problem: dict[str, Any] | None
) -> None:
    told = {"import": problem, "results": results.within_budget(found)}
    host.say(say="verdict", nonce=tests.nonce, **told)


def in_memory(library: bytes) -> int:
    """Keep a library as a file that has no name, only a descriptor."""
    descriptor = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(library)
    return descriptor


def loaded(descriptor: int) -> ctypes.CDLL:
    return ctypes.CDLL(f"/proc/self/fd/{descriptor}")


class Served(judging.Candidate):
    """The process C, which has loaded the candidate's library before any test has been read."""

    def __init__(self, job: Job) -> None:
        self.library = in_memory(LIBRARY.read_bytes())
        process.empty_folder("/tmp")
        super().__init__(job)

    def be_it(self, control: socket.socket) -> NoReturn:
        try:
            process.take_descriptors({control.fileno(), self.library}, self.job.output.write_end)
            process.offer_to_the_kernel(candidate.FIRST)
            serve = loaded(self.library).reflexfix_serve
            process.offer_to_the_kernel(candidate.NOT_FIRST)
            wire.send(control, {"import": None})
            candidate.fork_for_each_test(lambda _, channels: serve(channels[0].fileno()), control)
            os._exit(0)
        except (OSError, AttributeError) as error:
            message = f"the candidate's library does not load: {error}"
            wire.send(control, {"import": {"message": message, "frames": []}})
        finally:
            os._exit(process.LOST)


class Linked(judging.Tests):
    """The tests in one library; read only after the candidate has its own process."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__({"files": {}, **order})
        self.names: list[str] = order.get("names", [])
        self.library = in_memory(base64.b64decode(order.get("library", "")))

    def link(self, library: bytes, tests: list[dict[str, Any]]) -> None:
        self.names = [test["name"] for test in tests]
        self.library = in_memory(library)

    def be_one(
        self,
        test: dict[str, Any],
        job: Job,
        verdict: socket.socket,
        channel: socket.socket | None,
    ) -> NoReturn:
        try:
            kept = {verdict.fileno(), self.library} | ({channel.fileno()} if channel else set())
            process.take_descriptors(kept, job.output.write_end)
            if channel is None:
                process.offer_to_the_kernel(1000)
            wire.send(verdict, {"end": self.ended(test["name"], channel)})
            os._exit(0)
        finally:
            os._exit(process.LOST)

    def ended(self, name: str, channel: socket.socket | None) -> dict[str, Any]:
        """Run one test of the library and say how it ended."""
        try:
            library = loaded(self.library)
            if library.reflexfix_count() != len(self.names):
                raise AttributeError("the library holds another number of tests")
            run = library.reflexfix_test
        except (OSError, AttributeError) as error:
            return {"status": "no-verdict", "message": str(error)}
        run.restype = Report
        number = ctypes.c_size_t(self.names.index(name))
        report = run(number, channel.fileno() if channel else -1)
        return said(ctypes.string_at(report.data, report.size))


class Report(ctypes.Structure):
    """Where the library keeps what it says of a test."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def said(data: bytes) -> dict[str, Any]:
    """Read the five texts of a report: status, expected, actual, message, place."""
    texts = []
    while data:
        size = int.from_bytes(data[:8], "little")
        texts.append(data[8 : 8 + size].decode("utf-8", "replace"))
        data = data[8 + size :]
    kind, expected, actual, message, place = texts
    if kind in ("passed", "no-verdict"):
        return {"status": kind, "message": message}
    if kind == "mismatch":
        why = message or f"expected {expected}, got {actual}"
        seen = {"expected": expected, "actual": actual, "compared": True}
        return {"status": "failed", "message": why, **seen}
    if kind == "died":
        return {"status": "error", "message": message, "died": True}
    own = kind == "panic" and MODULE in place
    frames = [] if own or not place else [Path(place).name]
    return {
        "status": "failed" if own else "error",
        "message": f"panicked: {message}",
        "frames": frames,
    }


def warm() -> None:
    """Load what all libraries stand on, and start a compiler, before anybody waits for it."""
    crates()
    ctypes.CDLL(WIRE, mode=ctypes.RTLD_GLOBAL)
    STARTED.append(start(os.fork))
