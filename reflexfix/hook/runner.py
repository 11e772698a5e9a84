"""Run a project's own tests in a container, and say which fail, where and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reflexfix.attempt import Result
from reflexfix.containers.sandbox import ContainerSandbox, most_lenders, plain, read_result
from reflexfix.hook import cargo
from reflexfix.hook.plan import Plan
from reflexfix.hook.tree import Tree

HUNG_SECONDS = 3.0
"""How long a test that has run out of its time once is looked at."""


@dataclass(frozen=True)
class Function:
    """A function as the container names it."""

    path: str
    line: int
    name: str
    """Its dotted name, with <locals> in it."""

    @classmethod
    def read(cls, text: str) -> Function:
        path, line, name = text.rsplit(":", 2)
        return cls(path, int(line), name)


@dataclass(frozen=True)
class Runs:
    """Which failing tests ran a function, and how many passing ones did."""

    failing: tuple[str, ...]
    passing: int


@dataclass(frozen=True)
class Report:
    """What a run of the tests has told."""

    passed: tuple[str, ...] = ()
    failures: tuple[Result, ...] = ()
    skipped: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)
    """For each test that lacked a module: which."""
    trouble: str = ""
    """Why the runner could not do its part; "" when it did."""
    ran: Mapping[Function, Runs] = field(default_factory=dict)
    """Which tests ran each function that a failing test ran."""
    evidence: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    """For each failing test: the calls that led to its failure, the outermost first."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(result.name for result in self.failures)

    @property
    def total(self) -> int:
        return len(self.passed) + len(self.failures)


@dataclass(frozen=True)
class Request:
    """Which tests are run, and how closely they are watched."""

    first: tuple[str, ...] = ()
    rest: bool = True
    trace: bool = False
    hung: tuple[str, ...] = ()


class ProjectSandbox(ContainerSandbox):
    """Runs whole projects in single-use containers. Use it in a `with` block."""

    def test(self, tree: Tree, plan: Plan, request: Request, seconds: float) -> Report:
        """Run the tests of a tree. Raises SandboxTrouble when the container did not do its part."""
        hung = min(HUNG_SECONDS, self.limits.test_seconds / 2)
        order: dict[str, Any] = {
            "do": "project",
            "runner": plan.kind,
            "arguments": list(plan.arguments),
            "roots": list(plan.roots),
            "tests": list(plan.tests),
            "first": list(request.first),
            "rest": request.rest,
            "trace": request.trace,
            "hung": list(request.hung),
            "limits": self._limits() | {"total_seconds": seconds, "hung_seconds": hung},
        }
        self.whole_seconds = seconds
        if not (request.trace and plan.kind == "cargo"):
            return self._ask([order | tree.packed()], read_report)
        from reflexfix.hook import rust_code

        report = self._ask([order | rust_code.watched(tree).packed()], read_report)
        if cargo.BUILD not in report.names:
            return report
        return self._ask([order | tree.packed()], read_report)  # what watches may not compile here

    whole_seconds: float = 0.0

    def _reply_seconds(self) -> float:
        return max(self.whole_seconds + 20.0, super()._reply_seconds())

    def start_ahead(self) -> None:
        """Start the one container that is needed for certain."""
        with self.lock:
            self.idle.append(self.workers.submit(self._start))

    def keep_ahead(self, number: int) -> None:
        """Start this many containers ahead from now on."""
        self.pool = number
        self.lenders.most = most_lenders(self.engine, number)
        self._refill()


def read_report(reply: dict[str, Any]) -> Report:
    """Read what a container told. Raises ValueError, TypeError or LookupError on nonsense."""
    results = [read_result(found) for found in reply["results"]]
    return Report(
        passed=tuple(plain(name, 500) for name in reply["passed"]),
        failures=tuple(r for r in results if r.status != "skipped"),
        skipped=sum(r.status == "skipped" for r in results),
        missing={plain(k, 500): plain(v, 200) for k, v in dict(reply["missing"]).items()},
        trouble=plain(reply["trouble"]).strip(),
        ran={
            Function.read(plain(name, 500)): Runs(tuple(results[n].name for n in tests), int(good))
            for name, tests, good in reply["functions"]
        },
        evidence={
            plain(test, 500): tuple(Function.read(plain(name, 500)) for name in names)
            for test, names in dict(reply["evidence"]).items()
        },
    )
