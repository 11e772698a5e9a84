"""One run of `hook` or `repair` as a person sees it: progress, the story, the exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reflexfix.cli.options import model_choice, settings_of
from reflexfix.errors import ModelTrouble, ReflexfixError, SandboxTrouble

if TYPE_CHECKING:
    from reflexfix.display import Display
    from reflexfix.hook.early import Early
    from reflexfix.hook.work import Outcome, Project
    from reflexfix.model import Budget


def run(project: Project, early: Early, options: Mapping[str, Any], name: str) -> int:
    """Test, look and mend; print what came of it, and give the exit code."""
    from reflexfix.hook import plan, work

    with progress(options["quiet"]) as display:
        work.say_left_out(project.tree, display.say)
        if not plan.has_tests(project.tree, project.plan):
            click.echo(f"{name}: {work.nothing_to_run(project.tree)}")
            return 0
        outcome = work.Outcome()
        try:
            test_and_mend(project, early, options, outcome, display)
        except (ModelTrouble, SandboxTrouble) as error:
            outcome.trouble = error
    return conclude(project, options, outcome, name)


def test_and_mend(
    project: Project, early: Early, options: Mapping[str, Any], outcome: Outcome, display: Display
) -> None:
    """Go through the steps as far as they lead. Raises ModelTrouble and SandboxTrouble."""
    from reflexfix.hook import work

    sandbox = early.sandbox(project)
    display.say(f"running the tests ({project.plan})")
    work.test(project, sandbox, outcome)
    if outcome.passed or not outcome.failing or options["no_fix"]:
        return
    display.say(f"{len(outcome.failing)} failed; looking what they run")
    seen = work.look(project, sandbox, outcome)
    if seen.failures:
        mend(project, options, outcome, display, sandbox, seen)
    work.sweep(sandbox.engine)


def mend(
    project: Project,
    options: Mapping[str, Any],
    outcome: Outcome,
    display: Display,
    sandbox: Any,
    seen: Any,
) -> None:
    """Look for a fix, showing what happens."""
    from reflexfix.hook import mend as mending
    from reflexfix.hook import repair
    from reflexfix.loop import Run
    from reflexfix.model import Budget

    budget = Budget(
        options["max_tokens"] or project.settings.tokens,
        options["max_seconds"] or project.settings.seconds,
    )
    runs: list[Run] = []
    steps = repair.repair(
        project, sandbox, seen, loop_settings(options), budget, opener(options, display), outcome,
        runs.append,
    )  # fmt: skip
    for step in steps:
        if isinstance(step, mending.Trying):
            display.say(f"trying {step.suspect}: {step.suspect.why}")
        elif isinstance(step, mending.Broke):
            display.say(f"that breaks {', '.join(step.tests[:5])}: it is no fix", "yellow")
        elif isinstance(step, mending.Fix):
            display.say(f"a new {step.suspect.name} mends {len(step.fixes)} tests", "green")
        else:
            display.event(step, runs[-1])


def loop_settings(options: Mapping[str, Any]) -> Any:
    """Gather what steers the loop; the limits are those of the project."""
    fixed: dict[str, Any] = {"tests_file": True, "distrust_examples": True, "no_reflection": False}
    fixed |= {"no_tests": False, "hint": "", "test_seconds": 10.0, "mutants": 0}
    return settings_of({**options, **fixed})


def opener(options: Mapping[str, Any], display: Display) -> Callable[[Budget], Any]:
    """Open the models only when they are needed; nothing is fetched during a commit."""
    from reflexfix import assemble, local

    choice = model_choice(options)

    def models(budget: Budget) -> contextlib.AbstractContextManager[assemble.Models]:
        if choice.embedded and not choice.model and not local.is_pulled():
            raise ModelTrouble("The embedded model is not here.", hint="run: reflexfix model pull")
        return assemble.models(choice, budget, display.say)

    return models


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Display]:
    """Show progress on the terminal itself where there is one: pre-commit keeps our output back."""
    from rich.console import Console

    from reflexfix.display import Display

    display = Display(quiet)
    try:
        terminal = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError:
        yield display
        return
    with terminal:
        display.console = Console(file=terminal, highlight=False, soft_wrap=True)
        yield display


# ---------------------------------------------------------------- the end


def conclude(project: Project, options: Mapping[str, Any], outcome: Outcome, name: str) -> int:
    """Keep the patch, print the story, and give the exit code."""
    from reflexfix.display import safe
    from reflexfix.hook import patch as patches
    from reflexfix.hook import story

    if outcome.trouble is not None and not outcome.tested:
        return untested(project, outcome, name)
    kept, written = None, []
    if outcome.patch is not None:
        kept = patches.save(project.home, outcome.patch)
        if options["write"] and not outcome.patch.partial:
            written = patches.apply(outcome.patch, project.top, project.home)
    shown = relative(kept, project.top)
    if not (options["quiet"] and outcome.passed):
        for line in story.lines(outcome, project, shown, written):
            click.echo(safe(line))
    return code_of(project, outcome, name)


def relative(path: Path | None, top: Path) -> Path | None:
    if path is None:
        return None
    return path.relative_to(top) if path.is_relative_to(top) else path


def untested(project: Project, outcome: Outcome, name: str) -> int:
    """Say in one line why nothing was tested; what that means is the project's to say."""
    from reflexfix.hook import work

    assert outcome.trouble is not None
    click.echo(f"{name}: {' '.join(work.untested(outcome.trouble).split())}")
    return outcome.trouble.exit_code if project.settings.on_trouble == "fail" else 0


def code_of(project: Project, outcome: Outcome, name: str) -> int:
    """Give the exit code: that of the tests, unless there was trouble and it is to count."""
    if outcome.passed:
        return 0
    trouble: ReflexfixError | None = outcome.trouble
    if trouble is None:
        return 1
    hint = f" {trouble.hint}" if trouble.hint else ""
    click.echo(f"{name}: not repaired: {' '.join(trouble.message.split())}{hint}")
    rule = project.settings.on_trouble
    return {"tests": 1, "fail": trouble.exit_code, "pass": 0}[rule]
