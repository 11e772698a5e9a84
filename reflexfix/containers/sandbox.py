"""The sandbox: containers started ahead, one taken for each evaluation, none used twice."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, get_args

from reflexfix.attempt import (
    Candidate,
    Case,
    Control,
    Judged,
    Limits,
    Mode,
    Result,
    Status,
    Suite,
    UserTests,
    Values,
    Verdict,
)
from reflexfix.containers import container as containers
from reflexfix.containers.container import Container
from reflexfix.containers.engine import Engine
from reflexfix.containers.guard import Guard
from reflexfix.containers.lending import Lenders
from reflexfix.errors import SandboxTrouble

T = TypeVar("T")

GRACE_SECONDS = 10.0
"""How much longer than its own limits an evaluation may take before it counts as trouble."""
MOST_STARTS = 32
"""How many containers are started at once for those that found none started ahead."""
MOST_ENDS = 8
"""How many containers are removed at once at the end."""
TURN_SECONDS = 2.0
"""How long the start of a container waits for others to have started."""
QUICK_SECONDS = 0.1
"""How long an evaluation has the processors to itself before the next container is started.

Not where evaluations follow so closely that this one's container had to be waited for.
"""
ROUNDS = 3
"""How often cases that lost their candidate to an earlier one are judged in a fresh container."""


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
            for one in self.known():
                one.line.beat()

    def add(self, one: Container) -> None:
        with self.lock:
            self.alive.add(one)

    def drop(self, one: Container) -> None:
        with self.lock:
            self.alive.discard(one)

    def known(self) -> list[Container]:
        with self.lock:
            return list(self.alive)

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
        self.starters = ThreadPoolExecutor(max_workers=MOST_STARTS, thread_name_prefix="start")
        self.enders = ThreadPoolExecutor(max_workers=max(2, pool), thread_name_prefix="end")
        self.lock = threading.Lock()
        self.no_start = threading.Condition(self.lock)
        self.starting = 0
        self.turns = threading.Semaphore(max(2, os.cpu_count() or 1))
        self.idle: deque[Future[Container]] = deque()
        self.closed = False
        self.sure = True
        """Whether the engine answered all that was asked of it; else it may keep what we lost."""
        self.guard = Guard(engine.url)
        most = most_lenders(engine, pool)
        self.lenders = Lenders(lambda: self._start_one(None), self._end, self.workers.submit, most)
        try:
            self._refill()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every container of this sandbox; none is left when this returns.

        Also those that somebody waited for, or used, when an interrupt came. Raises SandboxTrouble
        when one stays; then the guard looks after it.
        """
        with self.lock:
            self.closed = True
            idle, self.idle = list(self.idle), deque()
        for future in idle:
            future.cancel()
        self.lenders.close()
        self.starters.shutdown(wait=True)
        self.workers.shutdown(wait=True)
        with self.lock:  # an interrupted executor may have a thread that it does not know of
            self.no_start.wait_for(lambda: not self.starting)
        self.enders.shutdown(wait=True)
        borrowers_first = sorted(self.heart.known(), key=lambda one: one.lender is None)
        with ThreadPoolExecutor(max_workers=MOST_ENDS, thread_name_prefix="end") as enders:
            ends = [enders.submit(self._end, one) for one in borrowers_first]
        self.heart.stop()
        for end in ends:  # each has been tried by now: one that stays does not keep the others
            end.result()
        self.guard.release(nothing_left=self.sure)

    # ------------------------------------------------------------ containers

    def _refill(self) -> None:
        with self.lock:
            while not self.closed and len(self.idle) < self.pool:
                self.idle.append(self.workers.submit(self._start))

    def _start_one(self, lender: Container | None) -> Container:
        """Start one and make it known; `close` waits for it, or nothing is started any more."""
        with self._turn():
            with self.lock:
                if self.closed:
                    raise SandboxTrouble("The sandbox is closed.")
                self.starting += 1
            try:
                started = containers.start(self.engine, self.image, self.limits, lender)
                self.heart.add(started)
                return started
            except SandboxTrouble:
                self.sure = False
                raise
            finally:
                with self.lock:
                    self.starting -= 1
                    self.no_start.notify_all()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait while as many are started as there are processors: more at once are slower in all.

        An engine that hangs does not keep one waiting behind the other for long.
        """
        mine = self.turns.acquire(timeout=TURN_SECONDS)
        try:
            yield
        finally:
            if mine:
                self.turns.release()

    def _start(self) -> Container:
        lender = self.lenders.borrow()
        try:
            started = self._start_one(lender)
        except SandboxTrouble:
            self.lenders.give_back(lender)
            raise
        broken = containers.broken_walls(started)
        if broken:
            self._end(started)
            raise SandboxTrouble(
                f"This engine does not hold what the sandbox promises: {'; '.join(broken)}.",
                hint="nothing was run; `reflexfix doctor` shows what holds",
            )
        return started

    def _take(self) -> tuple[Container, bool]:
        """Take a container that was started ahead and still lives, or have one started.

        Says as well whether it had to be waited for. All are started by threads of the sandbox's
        own, where no interrupt comes between the engine's answer and our knowing of it: `close`
        ends what was waited for in vain.
        """
        while True:
            with self.lock:
                if self.closed:
                    raise SandboxTrouble("The sandbox is closed.")
                ahead = self.idle.popleft() if self.idle else None
            if ahead is None:
                return self.starters.submit(self._start).result(), True
            waits = not ahead.done()
            if ahead.exception() is not None:
                continue  # the engine may have been away when it was started ahead
            taken = ahead.result()
            if is_usable(taken):
                return taken, waits
            self._discard(taken)

    def _discard(self, used: Container) -> None:
        self._end(used)
        self.lenders.give_back(used.lender)

    def _end(self, used: Container) -> None:
        used.discard()
        self.heart.drop(used)

    def _leave(self, used: Container) -> None:
        """Discard off the critical path."""
        with self.lock:
            if not self.closed:
                self.enders.submit(self._discard, used)
                return
        self._discard(used)

    def weaknesses(self) -> tuple[str, list[str]]:
        """Give the image's Python version and what the engine does not hold; costs a start."""
        used, _ = self._take()
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
        """Run all cases in one container; those that lost their candidate again in others.

        A test can bring down the process that answers to all of them. Whatever it is that does,
        it can do so ROUNDS times, within the one time limit.
        """
        cases = [*suite.cases, *([suite.control] if suite.control else [])]
        until = time.monotonic() + self.limits.total_seconds
        reply = self._judge(candidate, suite, cases, self.limits.total_seconds)
        found = reply.results
        for _ in range(ROUNDS):
            lost = {result.name for result in found if result.lost}
            left = until - time.monotonic()
            if not lost or left <= 0:
                break
            again = self._judge(candidate, suite, [c for c in cases if c.name in lost], left)
            found = [r for r in found if not r.lost] + again.results
        return read_verdict(reply.problem, [r.result for r in found], suite)

    def _judge(
        self, candidate: Candidate, suite: Suite, cases: list[Case], seconds: float
    ) -> Reply:
        """Run these cases in one container."""
        order: dict[str, Any] = {
            "do": "judge",
            "split": any(case.mode == "split" for case in cases),
            "watch": suite.watch,
            "module": candidate.module,
            "target": {"name": candidate.target, "is_async": candidate.is_async},
            "files": as_text(candidate.files),
            "limits": self._limits() | {"total_seconds": seconds},
        }
        tests: dict[str, Any] = {"do": "tests", "files": as_text(candidate.stub_files)}
        tests |= {"tests": [as_test(case, candidate, suite) for case in cases]}
        return self._ask([order, tests], read_reply)

    def _run_user(self, candidate: Candidate, tests: UserTests) -> Verdict:
        prefix = tests.prefix + "/" if tests.prefix else ""
        files = {**tests.files, **{prefix + k: v for k, v in candidate.files.items()}}
        paths = [*tests.paths]
        if tests.control:
            paths.append(CONTROL_FILE)
            files[CONTROL_FILE] = tests.control.encode()
        order: dict[str, Any] = {"do": "pytest", "files": as_text(files), "paths": paths}
        order |= {"roots": list(tests.roots), "script": tests.script, "limits": self._limits()}
        return read_user_verdict(self._ask([order], read_reply), tests)

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        """Say which of these modules the image does not have."""
        if not modules:
            return ()
        return self._ask([{"do": "probe", "modules": list(modules)}], read_missing)

    def values(self, candidate: Candidate, source: str) -> Values:
        """Run a program in the names of a reference solution's module, and give what it leaves."""
        order = {
            "do": "values",
            "module": candidate.module,
            "target": {"name": candidate.target, "is_async": candidate.is_async},
            "files": as_text(candidate.files),
            "source": source,
            "limits": self._limits(),
        }
        return self._ask([order], read_values)

    def _limits(self) -> dict[str, Any]:
        return {
            "test_seconds": self.limits.test_seconds,
            "total_seconds": self.limits.total_seconds,
            "output_bytes": self.limits.output_bytes,
        }

    def _ask(self, orders: list[Order], read: Callable[[dict[str, Any]], T]) -> T:
        """Give the orders to a container of their own; once more when the engine failed.

        Only the last order says the nonce: the candidate's process is older than that.
        """
        try:
            return self._ask_once(orders, read)
        except SandboxTrouble:
            return self._ask_once(orders, read)

    def _ask_once(self, orders: list[Order], read: Callable[[dict[str, Any]], T]) -> T:
        nonce = secrets.token_hex(16)
        used, waited = self._take()
        try:
            for order in orders[:-1]:
                used.line.send(made(order))
            used.line.send({**made(orders[-1]), "nonce": nonce})
            if waited or not used.line.speaks_within(QUICK_SECONDS):
                self._refill()
            reply = used.line.receive(self._reply_seconds())
            if reply.get("nonce") != nonce:
                raise SandboxTrouble("The container answered another question.")
            return readable(reply, read)
        finally:
            self._refill()
            self._leave(used)

    def _reply_seconds(self) -> float:
        return self.limits.total_seconds + GRACE_SECONDS


def most_lenders(engine: Engine, pool: int) -> int:
    """Say how many lenders are worth their keep.

    Podman makes a network namespace for nothing, and does not let a lender go before its borrower.
    """
    return pool + 2 if pool and engine.name == "docker" else 0


Order = dict[str, Any] | Callable[[], dict[str, Any]]
"""An order to a container, or what makes it when it is its turn."""


def made(order: Order) -> dict[str, Any]:
    return order() if callable(order) else order


def is_usable(taken: Container) -> bool:
    """Whether a container that was started ahead is still there."""
    try:
        return taken.line.alive()
    except SandboxTrouble:
        return False


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


# ---------------------------------------------------------------- replies


@dataclass(frozen=True)
class Found:
    """A result as it came, and whether its test lost the candidate before it began."""

    result: Result
    lost: bool = False

    @property
    def name(self) -> str:
        return self.result.name


@dataclass(frozen=True)
class Reply:
    """What a container said of one candidate."""

    results: list[Found]
    problem: str = ""
    """Why the candidate could not be imported."""


SHOWN = 4000
"""The longest single text that is taken over into a result, in characters."""


def plain(value: Any, limit: int = SHOWN) -> str:
    """Make a text fit for terminals and prompts: what cannot be printed is escaped as repr does.

    Colours, bells, titles and lone surrogates end here, whoever wrote them.
    """
    text = str(value)[:limit]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else escaped(c) for c in text)


def escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def readable(reply: dict[str, Any], read: Callable[[dict[str, Any]], T]) -> T:
    """Read a reply. Raises SandboxTrouble on one that no supervisor of ours has written."""
    try:
        return read(reply)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SandboxTrouble(f"The container sent a reply that is none: {error}") from error


def read_missing(reply: dict[str, Any]) -> tuple[str, ...]:
    return tuple(plain(name) for name in reply["missing"])


def read_values(reply: dict[str, Any]) -> Values:
    text, problem = str(reply["text"]), plain(reply["problem"])
    return Values(text, problem, float(reply["seconds"]))


def read_reply(reply: dict[str, Any]) -> Reply:
    results = [Found(read_result(found), found.get("lost") is True) for found in reply["results"]]
    return Reply(results, import_problem(reply["import"]))


def read_result(found: dict[str, Any]) -> Result:
    """Read one result from the wire. Raises ValueError, TypeError or LookupError."""
    if found["status"] not in get_args(Status) or found["mode"] not in get_args(Mode):
        raise ValueError(f"status {found['status']!r}, mode {found['mode']!r}")
    expected, actual = (
        None if found[name] is None else plain(found[name]) for name in ("expected", "actual")
    )
    return Result(
        name=str(found["name"]),
        status=found["status"],
        mode=found["mode"],
        seconds=float(found["seconds"]),
        expected=expected,
        actual=actual,
        compared=found["compared"] is True,
        message=plain(found["message"]),
        printed=plain(found["printed"]),
        unstable=found["unstable"] is True,
        values=plain(found.get("values", ""), 600),
        frames=tuple(plain(frame, 500) for frame in found["frames"]),
    )


def read_verdict(problem: str, found: list[Result], suite: Suite) -> Verdict:
    """Match results to cases. A case without exactly one result has no verdict."""
    results: dict[str, list[Result]] = {}
    for result in found:
        results.setdefault(result.name, []).append(result)
    judged = []
    for case in suite.cases:
        mine = results.get(case.name, [])
        nothing = Result(case.name, "no-verdict", case.mode, message="no result for this test")
        judged.append(Judged(case, mine[0] if len(mine) == 1 else nothing))
    return Verdict(judged=tuple(judged), problem=problem, control=read_control(results, suite))


def import_problem(problem: dict[str, Any] | None) -> str:
    if problem is None:
        return ""
    lines = [f"the module does not load: {problem['message']}", *problem.get("frames", [])]
    return "\n  ".join(plain(line) for line in lines)


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


def read_user_verdict(reply: Reply, tests: UserTests) -> Verdict:
    """Make cases of what pytest found in the user's files."""
    results = [found.result for found in reply.results]
    judged = [
        Judged(Case(result.name, "", result.name, "user", mode="in-process"), result)
        for result in results
        if not result.name.startswith(CONTROL_FILE)
    ]
    control = [result for result in results if result.name.startswith(CONTROL_FILE)]
    return Verdict(judged=tuple(judged), control=user_control(control, tests.control))


def user_control(results: list[Result], source: str) -> Control:
    """Say whether the test that was added beside the user's failed by its own comparison."""
    if any(result.passed for result in results):
        return "forged"
    private = re.findall("reflexfix-[0-9a-f]+", source)
    held = any(r.status == "failed" and any(p in r.message for p in private) for r in results)
    return "held" if held else "none"
