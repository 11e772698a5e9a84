"""The sandbox for Rust: one container compiles the candidate, another one the tests meanwhile."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeVar

from reflexfix.attempt import Candidate, Case, Limits, Result, Suite, UserTests, Verdict
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import (
    ContainerSandbox,
    Found,
    Order,
    Reply,
    as_text,
    plain,
    read_reply,
    read_verdict,
)

T = TypeVar("T")
LIBRARY_BYTES = 16 * 2**20
"""The largest library of tests that is taken from a container."""
KEPT = 8
"""How many libraries of tests are kept for the attempts to come."""


def limits_for(limits: Limits) -> Limits:
    """Give the compiler what it needs, unless the user said otherwise."""
    usual = Limits()
    return replace(
        limits,
        memory_mb=2048 if limits.memory_mb == usual.memory_mb else limits.memory_mb,
        cpus=2.0 if limits.cpus == usual.cpus else limits.cpus,
        tmp_exec=True,
    )


@dataclass(frozen=True)
class Library:
    """The tests of a suite, compiled: bytes that are never run outside a container."""

    data: str = ""
    """In base64, as it goes over the line."""
    names: tuple[str, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    """Cases that do not compile, with the reason."""
    problem: str = ""
    """Why there is no library, for reasons that lie in no single test."""


class RustSandbox(ContainerSandbox):
    """Judges Rust candidates in single-use containers. Use it in a `with` block."""

    def __init__(self, engine: Engine, image: str, limits: Limits, pool: int = 2) -> None:
        self.libraries: OrderedDict[str, Library] = OrderedDict()
        self.here = threading.local()
        super().__init__(engine, image, limits, pool)

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        """Judge the candidate by all of the suite, a user's tests first.

        Raises SandboxTrouble when no verdict could be had, after one retry.
        """
        if suite.user is not None:
            suite = replace(suite, cases=(*suite.user.cases, *suite.cases), user=None)
        return super().run(candidate, suite)

    def _run_user(self, candidate: Candidate, tests: UserTests) -> Verdict:
        raise AssertionError("a user's Rust tests are cases like the others")

    def _run_cases(self, candidate: Candidate, suite: Suite) -> Verdict:
        """Run split cases in two crates, the others in one, each in a container of its own.

        Where the stub itself does not compile, which has nothing to do with the candidate, all
        cases are run in one crate.
        """
        cases = [*suite.cases, *([suite.control] if suite.control else [])]
        split = [case for case in cases if case.mode == "split"]
        apart = [case for case in cases if case.mode == "in-process"]
        replies = []
        if split:
            reply = self._split(candidate, split)
            apart = cases if reply is None else apart
            replies += [reply] if reply is not None else []
        if apart and not any(reply.problem for reply in replies):
            replies.append(self._in_one(candidate, apart))
        problem = next((reply.problem for reply in replies if reply.problem), "")
        found = [one.result for reply in replies for one in reply.results]
        return read_verdict(problem, found, suite)

    # ------------------------------------------------------------ two crates

    def _split(self, candidate: Candidate, cases: list[Case]) -> Reply | None:
        """Let one container compile the candidate while another compiles the tests.

        None when the tests cannot be compiled against the stub.
        """
        order = {**self._order(candidate, candidate.files), "do": "rust", "split": True}

        def tests() -> dict[str, Any]:
            library = self._library(candidate, cases)
            kept = [as_test(case, "split") for case in cases if case.name in library.names]
            names = list(library.names)
            return {"do": "tests", "library": library.data, "names": names, "tests": kept}

        reply = self._ask([order, tests], read_rust_reply)
        library = self._library(candidate, cases)
        return None if library.problem else with_dropped(reply, library)

    def _library(self, candidate: Candidate, cases: list[Case]) -> Library:
        """Give the compiled tests, from memory after the first attempt."""
        key = key_of(candidate, cases)
        found = self.libraries.get(key) or self._build(candidate, cases, check=False)
        with self.lock:
            self.libraries[key] = found
            self.libraries.move_to_end(key)
            while len(self.libraries) > KEPT:
                self.libraries.popitem(last=False)
        return found

    def _build(self, candidate: Candidate, cases: list[Case], check: bool) -> Library:
        order = {
            **self._order(candidate, candidate.stub_files),
            "do": "rust-tests",
            "check": check,
            "tests": [as_test(case, case.mode) for case in cases],
        }
        return self._ask([order], read_library)

    def type_check(self, candidate: Candidate, cases: tuple[Case, ...]) -> dict[str, str]:
        """Name the cases that do not fit the signature, with what the compiler says."""
        if not cases:
            return {}
        return dict(self._build(candidate, list(cases), check=True).dropped)

    def broken(self, candidate: Candidate) -> str:
        """Say what is wrong with a file as it is; not what its unwritten target may be blamed for.

        That is an error in the target's own lines, or one of evaluating a call of it (E0080).
        """
        order = {**self._order(candidate, candidate.files), "do": "rust-tests"}
        errors = self._ask([{**order, "check": True, "tests": []}], read_errors)
        file, first, last = candidate.place
        for text, where, line in errors:
            is_target = where == file and first <= line <= last
            if where in candidate.stub_files and not is_target and "[E0080]" not in text:
                return text
        return ""

    # ------------------------------------------------------------ one crate

    def _in_one(self, candidate: Candidate, cases: list[Case]) -> Reply:
        order = {**self._order(candidate, candidate.files), "do": "rust", "split": False}
        tests = {"do": "tests", "tests": [as_test(case, "in-process") for case in cases]}
        return self._ask([order, tests], read_rust_reply)

    # ------------------------------------------------------------ the line

    def _order(self, candidate: Candidate, files: Any) -> dict[str, Any]:
        return {
            "files": as_text(files),
            "module": candidate.module,
            "edition": candidate.edition,
            "limits": self._limits() | {"compile_seconds": self.limits.compile_seconds},
        }

    def _ask_once(self, orders: list[Order], read: Callable[[dict[str, Any]], T]) -> T:
        """Start the next containers after the answer: the compiler needs the processors now."""
        before, self.here.asks = self._asks(), True
        try:
            return super()._ask_once(orders, read)
        finally:
            self.here.asks = before
            self._refill()

    def _asks(self) -> bool:
        """Whether this thread waits for an answer."""
        return getattr(self.here, "asks", False)

    def _refill(self) -> None:
        if not self._asks():
            super()._refill()

    def _reply_seconds(self) -> float:
        return self.limits.compile_seconds + super()._reply_seconds()


def key_of(candidate: Candidate, cases: list[Case]) -> str:
    """Name a library by all that it is made of."""
    parts = [candidate.edition, candidate.module]
    parts += [f"{name}\0{data!r}" for name, data in sorted(candidate.stub_files.items())]
    parts += [f"{case.name}\0{case.source}" for case in cases]
    return sha256("\1".join(parts).encode("utf-8", "replace")).hexdigest()


def as_test(case: Case, mode: str) -> dict[str, Any]:
    named = {"name": case.name, "source": case.source, "mode": mode}
    return {**named, "may_fall_back": False, "control": case.name == "control"}


def read_library(reply: dict[str, Any]) -> Library:
    """Read the compiled tests. Raises ValueError, TypeError or LookupError."""
    data, problem = str(reply["library"]), reply["problem"]
    if len(base64.b64decode(data, validate=True)) > LIBRARY_BYTES:
        raise ValueError("a library that is too large")
    dropped = tuple((str(name), plain(why)) for name, why in reply["dropped"].items())
    said = plain(problem["message"]) if problem else ""
    return Library(data, tuple(str(name) for name in reply["names"]), dropped, said)


def read_errors(reply: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(plain(text), str(file), int(line)) for text, file, line in reply["errors"]]


def read_rust_reply(reply: dict[str, Any]) -> Reply:
    """Read a verdict; a candidate that does not compile has a problem of its own words."""
    problem = reply["import"]
    found = read_reply({**reply, "import": None})
    if problem is None:
        return found
    words = {"compile-error": "does not compile", "compile-timeout": "takes too long to compile"}
    why = words.get(str(problem["status"]), "cannot be loaded")
    return replace(found, problem=f"the code {why}:\n{plain(problem['message'])}")


def with_dropped(reply: Reply, library: Library) -> Reply:
    """Give the cases that did not compile their result."""
    lost = [Found(Result(name, "compile-error", message=why)) for name, why in library.dropped]
    return replace(reply, results=[*reply.results, *lost])
