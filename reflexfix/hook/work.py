"""One run of the hook, from a tree to an outcome: test, look, mend, keep the patch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from reflexfix import solving
from reflexfix.assemble import Models, Say
from reflexfix.attempt import Limits, Result
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine
from reflexfix.errors import ReflexfixError, SandboxTrouble
from reflexfix.hook import environment, mend, patch
from reflexfix.hook import settings as setting
from reflexfix.hook.blame import Suspect
from reflexfix.hook.environment import Need
from reflexfix.hook.mend import Fix, Mending, Step
from reflexfix.hook.patch import Change, Patch
from reflexfix.hook.runner import Plan, ProjectSandbox, Report, Request
from reflexfix.hook.settings import Settings
from reflexfix.hook.tree import LINK, Tree
from reflexfix.loop import Run
from reflexfix.model import Budget

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


OpenModels = Callable[[Budget], contextlib.AbstractContextManager[Models]]


@contextlib.contextmanager
def opened(project: Project, engine: Engine) -> Iterator[ProjectSandbox]:
    """Open the sandbox with what the tests need; one container starts at once.

    Raises SandboxTrouble; NotPrepared when an image would have to be built first.
    """
    image = environment.ready(engine, project.need)
    limits = setting.room_for(project.limits, project.tree)
    with ProjectSandbox(engine, image, limits, pool=0) as sandbox:
        sandbox.start_ahead()
        yield sandbox


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


def repair(
    project: Project,
    sandbox: ProjectSandbox,
    seen: Report,
    settings: solving.Settings,
    budget: Budget,
    open_models: OpenModels,
    outcome: Outcome,
    watch: Callable[[Run], None],
) -> Iterator[Step]:
    """Mend what fails, yielding what happens; `outcome` has what there is at every moment.

    Raises ModelTrouble and SandboxTrouble.
    """
    outcome.suspects = tuple(mend.suspects(project.tree, project.plan, seen, project.only))
    if not outcome.suspects:
        outcome.stopped = "no function of the project is at fault for certain"
        return
    sandbox.keep_ahead(1)
    with open_models(budget) as models:
        mending = Mending(
            sandbox, project.tree, project.plan, settings, models, budget, project.home,
            project.settings.suite_seconds, project.settings.own_tests, project.only,
            frozenset({*outcome.flaky, *outcome.lacking}), watch=watch,
        )  # fmt: skip
        try:
            for step in mending.steps(seen):
                if isinstance(step, mend.Trying):
                    outcome.tried.append(step.suspect)
                yield step
        finally:
            outcome.stopped = mending.stopped
            outcome.fixes = tuple(mending.fixes)
            outcome.patch = patch_of(project, outcome)


def patch_of(project: Project, outcome: Outcome) -> Patch | None:
    """Put the fixes together into one patch against what was tested."""
    after = {fix.path: fix.after for fix in outcome.fixes}  # later ones hold the earlier
    changes = [
        Change(path, project.tree.files[path].data, data, project.tree.files[path].mode)
        for path, data in after.items()
        if project.tree.files[path].mode != LINK
    ]
    fixed = tuple(dict.fromkeys(name for fix in outcome.fixes for name in fix.fixes))
    left = tuple(r.name for r in outcome.failing if r.name not in fixed)
    functions = tuple(f"{fix.path}: {fix.suspect.name}" for fix in outcome.fixes)
    verified = all(fix.verified for fix in outcome.fixes)
    return patch.made(changes, fixed, left, verified, functions)


def sweep(engine: Engine) -> None:
    """Remove what dead runs left."""
    containers.sweep(engine)


def say_left_out(tree: Tree, say: Say) -> None:
    for one in tree.left_out:
        say(f"not sent to the tests: {one}")


def untested(error: ReflexfixError) -> str:
    """Say in one line that and why nothing was tested."""
    if isinstance(error, environment.NotPrepared):
        return f"not tested: {error.message} {error.hint}"
    reason = "no engine" if isinstance(error, SandboxTrouble) else "trouble"
    return f"not tested: {reason}: {error.message}"
