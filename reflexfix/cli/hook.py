"""`reflexfix hook`, `repair` and `apply`: a project's failing tests become a patch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import loop_options, model_choice, option, settings_of
from reflexfix.errors import ModelTrouble, ReflexfixError, SandboxTrouble, UsageProblem

if TYPE_CHECKING:
    from reflexfix.display import Display
    from reflexfix.hook.git import Repository
    from reflexfix.hook.tree import Tree
    from reflexfix.hook.work import Outcome, Project
    from reflexfix.model import Budget

F = Callable[..., Any]


def mend_options(command: F) -> F:
    """Add the options that `hook` and `repair` share."""
    for one in reversed(
        [
            option("--tests", "tests_command", default="", metavar="CMD",
                   help="How the tests are run; found out by itself without."),
            option("--own-tests", is_flag=True, help="Own tests of the model, too."),
            option("--write", is_flag=True, help="Leave the fix unstaged in the work tree."),
            option("--no-fix", is_flag=True, help="Test only."),
            loop_options,
            option("--quiet", is_flag=True, help="Print the result only."),
        ]
    ):  # fmt: skip
        command = one(command)
    return command


@cli.command()
@option("--install", is_flag=True, help="Write .git/hooks/pre-commit, and prepare.")
@option("--prepare", is_flag=True, help="Build the image that the tests need.")
@mend_options
@click.pass_context
def hook(ctx: click.Context, /, install: bool, prepare: bool, **options: Any) -> None:
    """Test what is staged; where tests fail, look for a fix and keep it as a patch."""
    from reflexfix.hook import tree as trees

    repository = repository_here()
    if install or prepare:
        ready(repository, install)
        return
    refuse_write(options)
    project = project_of(trees.staged(repository), repository.top, options)
    ctx.exit(run(project, options, "reflexfix hook"))


@cli.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@mend_options
@click.pass_context
def repair(ctx: click.Context, /, paths: tuple[Path, ...], **options: Any) -> None:
    """Test the project as it lies here; where tests fail, look for a fix.

    PATHS are tests to run, or files that alone may be mended.
    """
    from reflexfix.hook import git
    from reflexfix.hook import tree as trees

    repository = git.find(Path.cwd())
    top = repository.top if repository else folder_of(paths)
    tree = trees.on_disk(top, repository)
    refuse_write(options)
    ctx.exit(run(project_of(tree, top, options, paths), options, "reflexfix repair"))


@cli.command()
@click.argument("patch", required=False)
def apply(patch: str | None) -> None:
    """Merge PATCH, or the newest one, into the work tree; `undo` takes it back."""
    from reflexfix import runlog
    from reflexfix.hook import git
    from reflexfix.hook import patch as patches

    repository = git.find(Path.cwd())
    top = repository.top if repository else folder_of(())
    home = runlog.home_of(top / "x")
    found = patches.load(home, patch)
    written = patches.apply(found, top, home)
    for path in written:
        click.echo(f"{path} is mended; `reflexfix undo` takes it back", err=True)
    if not written:
        click.echo("nothing to do: it is applied already", err=True)


# ---------------------------------------------------------------- what a run is about


def repository_here() -> Repository:
    from reflexfix.hook import git

    found = git.find(Path.cwd())
    if found is None:
        raise UsageProblem(
            f"{Path.cwd()} is in no git repository.", hint="`reflexfix repair` works without one"
        )
    return found


def folder_of(paths: tuple[Path, ...]) -> Path:
    """Give the project's folder where there is no git: that of the nearest pyproject.toml."""
    from reflexfix import config

    start = paths[0].resolve() if paths else Path.cwd()
    nearest = config.nearest(start)
    here = start if start.is_dir() else start.parent
    return nearest.parent if nearest is not None else here


def refuse_write(options: Mapping[str, Any]) -> None:
    """Under pre-commit a written fix would be rolled back where unstaged edits touch the file."""
    if options["write"] and os.environ.get("PRE_COMMIT"):
        raise UsageProblem(
            "--write is refused under pre-commit: take the patch by `reflexfix apply`."
        )


def project_of(
    tree: Tree, top: Path, options: Mapping[str, Any], paths: tuple[Path, ...] = ()
) -> Project:
    """Put together what is to be tested, and how. Raises UsageProblem."""
    from dataclasses import replace

    from reflexfix import runlog
    from reflexfix.hook import environment, runner, work
    from reflexfix.hook import settings as setting
    from reflexfix.hook import tree as trees

    settings, limits = setting.of_tree(tree)
    if options["own_tests"]:
        settings = replace(settings, own_tests=True)
    tree = trees.excluded(tree, settings.exclude)
    command = options["tests_command"] or settings.tests
    only: tuple[str, ...] = ()
    if paths:
        plan, only = runner.of_paths(tree, [below(top, tree, path) for path in paths])
        plan = runner.plan(tree, command) if command else plan
    else:
        plan = runner.plan(tree, command)
    home = runlog.home_of(top / "x")
    need = environment.need(tree, settings)
    return work.Project(tree, top, home, settings, limits, plan, need, only)


def below(top: Path, tree: Tree, path: Path) -> str:
    """Give a path as the tree names it. Raises UsageProblem for what is not in it."""
    name = os.path.relpath(path.resolve(), top.resolve())
    if name == "." or name in tree.files or tree.has_folder(name):
        return name
    raise UsageProblem(f"{path} is no file of the project in {top}.")


def ready(repository: Repository, install: bool) -> None:
    """Write the hook if that is wanted, and build what the tests need."""
    from reflexfix.hook import environment
    from reflexfix.hook import install as installing
    from reflexfix.hook import settings as setting
    from reflexfix.hook import tree as trees

    tree = trees.staged(repository)
    settings, _ = setting.of_tree(tree)
    if install:
        click.echo(f"hook: {installing.install(repository)}", err=True)
    with environment.connected() as engine:
        for step in environment.prepare(engine, environment.need(tree, settings)):
            click.echo(step, err=True)


# ---------------------------------------------------------------- the run


def run(project: Project, options: Mapping[str, Any], name: str) -> int:
    """Test, look and mend; print what came of it, and give the exit code."""
    from reflexfix.hook import runner, work

    with progress(options["quiet"]) as display:
        work.say_left_out(project.tree, display.say)
        if not runner.has_tests(project.tree, project.plan):
            click.echo(
                f"{name}: no tests are staged" if project.tree.staged else f"{name}: no tests"
            )
            return 0
        outcome = work.Outcome()
        try:
            test_and_mend(project, options, outcome, display)
        except (ModelTrouble, SandboxTrouble) as error:
            outcome.trouble = error
    return conclude(project, options, outcome, name)


def test_and_mend(
    project: Project, options: Mapping[str, Any], outcome: Outcome, display: Display
) -> None:
    """Go through the steps as far as they lead. Raises ModelTrouble and SandboxTrouble."""
    from reflexfix.hook import environment, work

    with environment.connected() as engine, work.opened(project, engine) as sandbox:
        display.say(f"running the tests ({project.plan})")
        work.test(project, sandbox, outcome)
        if outcome.passed or not outcome.failing or options["no_fix"]:
            return
        display.say(f"{len(outcome.failing)} failed; looking what they run")
        seen = work.look(project, sandbox, outcome)
        if seen.failures:
            mend(project, options, outcome, display, sandbox, seen)
        work.sweep(engine)


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
    from reflexfix.hook import work
    from reflexfix.loop import Run
    from reflexfix.model import Budget

    budget = Budget(
        options["max_tokens"] or project.settings.tokens,
        options["max_seconds"] or project.settings.seconds,
    )
    runs: list[Run] = []
    steps = work.repair(
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
    fixed |= {"no_tests": False, "hint": "", "test_seconds": 10.0}
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
