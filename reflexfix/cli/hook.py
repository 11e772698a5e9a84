"""`reflexfix hook`, `repair` and `apply`: a project's failing tests become a patch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reflexfix.cli.group import cli
from reflexfix.cli.mending import run
from reflexfix.cli.options import loop_options, option
from reflexfix.errors import UsageProblem

if TYPE_CHECKING:
    from reflexfix.hook.git import Repository
    from reflexfix.hook.tree import Tree
    from reflexfix.hook.work import Project

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
    from reflexfix.hook.early import Early

    repository = repository_here()
    if install or prepare:
        ready(repository, install)
        return
    refuse_write(options)
    with Early(lambda: trees.declaring(repository)) as early:
        project = project_of(trees.staged(repository), repository.top, options)
        code = run(project, early, options, "reflexfix hook")
    ctx.exit(code)


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
    from reflexfix.hook.early import Early

    repository = git.find(Path.cwd())
    top = repository.top if repository else folder_of(paths)
    tree = trees.on_disk(top, repository)
    refuse_write(options)
    project = project_of(tree, top, options, paths)
    with Early(lambda: tree) as early:
        code = run(project, early, options, "reflexfix repair")
    ctx.exit(code)


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
        click.echo(f"{path} is mended", err=True)
    if written:
        times = f", run {len(written)} times," if len(written) > 1 else ""
        click.echo(f"`reflexfix undo`{times} takes it back", err=True)
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
    from reflexfix.hook import environment, work
    from reflexfix.hook import plan as plans
    from reflexfix.hook import settings as setting
    from reflexfix.hook import tree as trees

    settings, limits = setting.of_tree(tree)
    if options["own_tests"]:
        settings = replace(settings, own_tests=True)
    tree = trees.excluded(tree, settings.exclude)
    command = options["tests_command"] or settings.tests
    only: tuple[str, ...] = ()
    if paths:
        plan, only = plans.of_paths(tree, [below(top, tree, path) for path in paths])
        plan = plans.plan(tree, command) if command else plan
    else:
        plan = plans.plan(tree, command)
    home = runlog.home_of(top / "x")
    need = environment.need(tree, settings, plan)
    if need.is_rust and settings.own_tests:
        raise UsageProblem(
            "Own tests are for Python: beside `cargo test` none are run.",
            hint="leave out --own-tests, and own_tests in pyproject.toml",
        )
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
    need = environment.need(tree, settings)
    if install:
        click.echo(f"hook: {installing.install(repository)}", err=True)
    with environment.connected() as engine:
        for step in environment.prepare(engine, need, repository.top):
            click.echo(step, err=True)
