"""The sandbox: containers started ahead, one taken for each evaluation, none used twice."""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, get_args

from reflexfix.attempt import (
    Candidate,
    Case,
    Control,
    Judged,
    Limits,
    Result,
    Status,
    Suite,
    UserTests,
    Verdict,
)
from reflexfix.containers import container as containers
from reflexfix.containers.container import Container
from reflexfix.containers.engine import Engine
from reflexfix.errors import SandboxTrouble

GRACE_SECONDS = 10.0
"""How much longer than its own limits an evaluation may take before it counts as trouble."""


class Heart:
    """Tells every live container, several times a second, that this process is there."""

    def __init__(self) -> None:
        self.alive: set[Container] = set()
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, name="heart", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped.wait(containers.BEAT_SECONDS):
            with self.lock:
                alive = list(self.alive)
            for one in alive:
                one.line.beat()

    def add(self, one: Container) -> None:
        with self.lock:
            self.alive.add(one)

    def drop(self, one: Container) -> None:
        with self.lock:
            self.alive.discard(one)

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()


class ContainerSandbox:
    """Judges candidates in single-use containers. Use it in a `with` block."""

    def __init__(self, engine: Engine, image: str, limits: Limits, pool: int = 1) -> None:
        self.engine = engine
        self.image = image
        self.limits = limits
        self.pool = pool
        self.heart = Heart()
        self.workers = ThreadPoolExecutor(max_workers=max(2, pool), thread_name_prefix="container")
        self.lock = threading.Lock()
        self.idle: deque[Future[Container]] = deque()
        self.leaving: list[Future[None]] = []
        self.closed = False
        self._refill()

    def __enter__(self) -> ContainerSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every container of this sandbox; none is left when this returns."""
        with self.lock:
            self.closed = True
            idle, self.idle = list(self.idle), deque()
        for future in idle:
            if not future.cancel() and future.exception() is None:
                self._discard(future.result())
        for leaving in self.leaving:
            leaving.exception()
        self.workers.shutdown(wait=True)
        self.heart.stop()

    # ------------------------------------------------------------ containers

    def _refill(self) -> None:
        with self.lock:
            while not self.closed and len(self.idle) < self.pool:
                self.idle.append(self.workers.submit(self._start))

    def _start(self) -> Container:
        started = containers.start(self.engine, self.image, self.limits)
        broken = containers.broken_walls(started)
        if broken:
            started.discard()
            raise SandboxTrouble(
                f"This engine does not hold what the sandbox promises: {'; '.join(broken)}.",
                hint="nothing was run; `reflexfix doctor` shows what holds",
            )
        self.heart.add(started)
        return started

    def _take(self) -> Container:
        """Take a container that was started ahead and still lives, or start one."""
        while True:
            with self.lock:
                future = self.idle.popleft() if self.idle else None
            if future is None:
                return self._start()
            taken = future.result()
            if taken.line.alive():
                return taken
            self._discard(taken)

    def _discard(self, used: Container) -> None:
        self.heart.drop(used)
        used.discard()

    def _leave(self, used: Container) -> None:
        """Discard off the critical path."""
        with self.lock:
            self.leaving = [f for f in self.leaving if not f.done()]
            if not self.closed:
                self.leaving.append(self.workers.submit(self._discard, used))
                return
        self._discard(used)

    def weaknesses(self) -> tuple[str, list[str]]:
        """Give the image's Python version and what the engine does not hold; costs a start."""
        used = self._take()
        try:
            return used.python, containers.weaknesses(used, self.limits)
        finally:
            self._give_back(used)

    def _give_back(self, unused: Container) -> None:
        """A container that was only looked at is still unused."""
        future: Future[Container] = Future()
        future.set_result(unused)
        with self.lock:
            if not self.closed:
                self.idle.appendleft(future)
                return
        self._discard(unused)

    # ------------------------------------------------------------ jobs

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        """Judge the candidate by all of the suite.

        Raises SandboxTrouble when no verdict could be had, after one retry.
        """
        started = time.monotonic()
        verdict = Verdict()
        if suite.user is not None:
            verdict = self._run_user(candidate, suite.user)
        if suite.cases:
            verdict = joined(verdict, self._run_cases(candidate, suite))
        return replace(verdict, seconds=time.monotonic() - started)

    def _run_cases(self, candidate: Candidate, suite: Suite) -> Verdict:
        cases = [*suite.cases, *([suite.control] if suite.control else [])]
        split = any(case.mode == "split" for case in cases)
        target = {"name": candidate.target, "is_async": candidate.is_async}
        order: dict[str, Any] = {
            "do": "judge",
            "split": split,
            "module": candidate.module,
            "target": target,
        }
        order |= {"files": as_text(candidate.files), "limits": self._limits()}
        tests: dict[str, Any] = {"do": "tests", "files": as_text(candidate.stub_files)}
        tests |= {"tests": [as_test(case, candidate, suite) for case in cases]}
        reply = self._ask([order, tests])
        return read_verdict(reply, suite)

    def _run_user(self, candidate: Candidate, tests: UserTests) -> Verdict:
        prefix = tests.prefix + "/" if tests.prefix else ""
        files = {**tests.files, **{prefix + k: v for k, v in candidate.files.items()}}
        paths = [*tests.paths]
        if tests.control:
            paths.append(CONTROL_FILE)
            files[CONTROL_FILE] = tests.control.encode()
        order: dict[str, Any] = {"do": "pytest", "files": as_text(files), "paths": paths}
        order |= {"roots": list(tests.roots), "script": tests.script, "limits": self._limits()}
        return read_user_verdict(self._ask([order]), tests)

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        """Say which of these modules the image does not have."""
        if not modules:
            return ()
        reply = self._ask([{"do": "probe", "modules": list(modules), "limits": self._limits()}])
        return tuple(str(name) for name in reply["missing"])

    def _limits(self) -> dict[str, Any]:
        return {
            "test_seconds": self.limits.test_seconds,
            "total_seconds": self.limits.total_seconds,
            "output_bytes": self.limits.output_bytes,
        }

    def _ask(self, orders: list[dict[str, Any]]) -> dict[str, Any]:
        """Give the orders to a container of their own; once more when the engine failed."""
        try:
            return self._ask_once(orders)
        except SandboxTrouble:
            return self._ask_once(orders)

    def _ask_once(self, orders: list[dict[str, Any]]) -> dict[str, Any]:
        nonce = secrets.token_hex(16)
        used = self._take()
        try:
            self._refill()
            for order in orders:
                used.line.send({**order, "nonce": nonce})
            reply = used.line.receive(self.limits.total_seconds + GRACE_SECONDS)
            if not secrets.compare_digest(str(reply.get("nonce", "")), nonce):
                raise SandboxTrouble("The container answered another question.")
            return reply
        finally:
            self._leave(used)


CONTROL_FILE = "test_reflexfix_control.py"


def as_text(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(data).decode("ascii") for name, data in files.items()}


def as_test(case: Case, candidate: Candidate, suite: Suite) -> dict[str, Any]:
    return {
        "name": case.name,
        "source": case.source,
        "entry": case.entry,
        "fixtures": list(case.fixtures),
        "mode": case.mode,
        "may_fall_back": case.may_fall_back,
        "target": candidate.target.rpartition(".")[2],
        "control": case is suite.control,
    }


def joined(first: Verdict, second: Verdict) -> Verdict:
    """Put the verdicts of two evaluations of one candidate together."""
    controls = {first.control, second.control}
    control: Control = "forged" if "forged" in controls else second.control
    return replace(
        second,
        judged=first.judged + second.judged,
        problem=first.problem or second.problem,
        control=control if control != "none" else first.control,
    )


_RESULT_FIELDS: dict[str, Callable[[Any], Any]] = {
    "seconds": float,
    "expected": lambda text: None if text is None else str(text),
    "actual": lambda text: None if text is None else str(text),
    "message": str,
    "printed": str,
    "compared": bool,
    "unstable": bool,
    "frames": lambda frames: tuple(str(frame) for frame in frames),
}


def read_result(found: dict[str, Any]) -> Result:
    """Read one result from the wire. Raises SandboxTrouble on anything else."""
    try:
        fields = {name: read(found[name]) for name, read in _RESULT_FIELDS.items()}
        status: Status = found["status"]
        if status not in get_args(Status):
            raise ValueError(f"status {status!r}")
        return Result(str(found["name"]), status, found["mode"], **fields)
    except (LookupError, TypeError, ValueError) as error:
        raise SandboxTrouble(f"The container sent a result that is none: {error}") from error


def read_verdict(reply: dict[str, Any], suite: Suite) -> Verdict:
    """Match results to cases. A case without exactly one result has no verdict."""
    results: dict[str, list[Result]] = {}
    for found in reply["results"]:
        result = read_result(found)
        results.setdefault(result.name, []).append(result)
    judged = []
    for case in suite.cases:
        mine = results.get(case.name, [])
        nothing = Result(case.name, "no-verdict", case.mode, message="no result for this test")
        judged.append(Judged(case, mine[0] if len(mine) == 1 else nothing))
    problem = reply.get("import") or {}
    return Verdict(
        judged=tuple(judged),
        problem=import_problem(problem),
        control=read_control(results, suite),
    )


def import_problem(problem: dict[str, Any]) -> str:
    if not problem:
        return ""
    lines = [f"the module does not load: {problem.get('message', '')}", *problem.get("frames", [])]
    return "\n  ".join(str(line) for line in lines)


def read_control(results: dict[str, list[Result]], suite: Suite) -> Control:
    """Say whether the test that must fail did fail, and by its own comparison."""
    if suite.control is None:
        return "none"
    mine = results.get(suite.control.name, [])
    if any(result.passed for result in mine):
        return "forged"
    held = any(
        result.compared and suite.control_value in (result.expected or "") for result in mine
    )
    return "held" if held else "none"


def read_user_verdict(reply: dict[str, Any], tests: UserTests) -> Verdict:
    """Make cases of what pytest found in the user's files."""
    judged, control = [], "none" if not tests.control else "held"
    for found in reply["results"]:
        result = read_result(found)
        if result.name.startswith(CONTROL_FILE):
            control = "forged" if result.passed else "held" if result.status == "failed" else "none"
            continue
        case = Case(result.name, "", result.name, "user", mode="in-process")
        judged.append(Judged(case, result))
    kind: Control = control  # type: ignore[assignment]
    return Verdict(judged=tuple(judged), control=kind)
