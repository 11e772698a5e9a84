"""What is tested and what comes of it: the whole suite once, and what fails once more."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reflexfix.attempt import Limits, Result
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine
from reflexfix.errors import ReflexfixError, SandboxTrouble
from reflexfix.hook import environment
from reflexfix.hook.environment import Need
from reflexfix.hook.plan import Plan
from reflexfix.hook.runner import ProjectSandbox, Report, Request
from reflexfix.hook.settings import Settings
from reflexfix.hook.tree import Tree

if TYPE_CHECKING:
    from reflexfix.assemble import Say
    from reflexfix.hook.blame import Suspect
    from reflexfix.hook.mend import Fix
    from reflexfix.hook.patch import Patch

QUICK = 0.25
"""The part of the budget that the whole suite may take to be run again for comparison."""


@dataclass(frozen=True)
class Project:
    """What is to be tested, and how."""

    tree: Tree
    top: Path
    home: Path
    settings: Settings
    limits: Limits
    plan: Plan
    need: Need
    only: tuple[str, ...] = ()
    """Files that alone may be mended; any when empty."""


@dataclass
class Outcome:
    """What came of a run."""

    report: Report = field(default_factory=Report)
    tested: bool = False
    seconds: float = 0.0
    """How long the whole suite took."""
    flaky: tuple[str, ...] = ()
    lacking: dict[str, str] = field(default_factory=dict)
    """Tests that want a module that the image does not have."""
    suspects: tuple[Suspect, ...] = ()
    tried: list[Suspect] = field(default_factory=list)
    fixes: tuple[Fix, ...] = ()
    patch: Patch | None = None
    stopped: str = ""
    trouble: ReflexfixError | None = None
    """What kept the run from coming to its end: no engine, no image, no model."""

    @property
    def failing(self) -> tuple[Result, ...]:
        """The tests whose failure is somebody's fault here."""
        others = {*self.flaky, *self.lacking}
        return tuple(r for r in self.report.failures if r.name not in others)

    @property
    def passed(self) -> bool:
        return self.tested and not self.report.failures and not self.report.trouble


def test(project: Project, sandbox: ProjectSandbox, outcome: Outcome) -> None:
    """Run the whole suite once."""
    started = time.monotonic()
    seconds = project.settings.suite_seconds
    outcome.report = sandbox.test(project.tree, project.plan, Request(), seconds)
    outcome.seconds = time.monotonic() - started
    outcome.tested = not outcome.report.trouble or bool(outcome.report.total)
    outcome.lacking = environment.lacking(project.tree, outcome.report.missing)


def look(project: Project, sandbox: ProjectSandbox, outcome: Outcome) -> Report:
    """Run what fails again, seeing what it runs; tests that pass now are flaky."""
    failing = tuple(r.name for r in outcome.failing)
    hung = tuple(r.name for r in outcome.failing if r.status == "timeout")
    seconds = project.settings.suite_seconds
    whole = outcome.seconds < QUICK * project.settings.seconds
    again = Request(failing, rest=whole, trace=True, hung=hung)
    seen = sandbox.test(project.tree, project.plan, again, seconds)
    still = tuple(r.name for r in seen.failures if r.name in failing)
    if still:
        plan = project.plan.only(name.partition("::")[0] for name in still)
        once = sandbox.test(project.tree, plan, Request(still, rest=False, hung=hung), seconds)
        still = tuple(name for name in still if name not in once.passed)
    outcome.flaky = tuple(name for name in failing if name not in still)
    kept = {r.name: r for r in outcome.report.failures}
    return replace(seen, failures=tuple(kept[name] for name in still))


def sweep(engine: Engine) -> None:
    """Remove what dead runs left."""
    containers.sweep(engine)


def say_left_out(tree: Tree, say: Say) -> None:
    for one in tree.left_out:
        say(f"not sent to the tests: {one}")


def nothing_to_run(tree: Tree) -> str:
    """Say that there are no tests, or none that are known here."""
    return "no tests are staged" if tree.staged else "there are no tests"


def untested(error: ReflexfixError) -> str:
    """Say in one line that and why nothing was tested."""
    if isinstance(error, environment.NotPrepared):
        return f"not tested: {error.message} {error.hint}"
    reason = "no engine" if isinstance(error, SandboxTrouble) else "trouble"
    return f"not tested: {reason}: {error.message}"
