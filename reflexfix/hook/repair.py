"""From what was seen of failing tests to a patch: mend what can be mended, and put it together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from reflexfix import solving
from reflexfix.assemble import Models
from reflexfix.hook import mend, patch
from reflexfix.hook.mend import Mending, Step
from reflexfix.hook.patch import Change, Patch
from reflexfix.hook.runner import ProjectSandbox, Report
from reflexfix.hook.tree import LINK
from reflexfix.hook.work import Outcome, Project
from reflexfix.loop import Run
from reflexfix.model import Budget

OpenModels = Callable[[Budget], contextlib.AbstractContextManager[Models]]


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
