"""`reflexfix solve`: one function of one file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import (
    limit_options,
    loop_options,
    model_choice,
    option,
    public,
    settings_of,
    table_of,
)
from reflexfix.errors import UsageProblem

if TYPE_CHECKING:
    from reflexfix.solving import Outcome, Settings


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@option("--function", metavar="NAME", help="Function to write, dotted for methods.")
@option(
    "--tests",
    "tests_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your own pytest or plain-assert file: trusted, never edited.",
)
@option("--own-tests", is_flag=True, help="Own tests of the model beside --tests.")
@option("--write", is_flag=True, help="Edit the file in place, if solved.")
@option("--write-unsolved", is_flag=True, help="Edit the file in place with the best attempt.")
@option("--diff", "as_diff", is_flag=True, help="Print a unified diff instead of the file.")
@option("--json", "as_json", is_flag=True, help="Print the result with all attempts as JSON.")
@loop_options
@option("--hint", default="", metavar="TEXT", help="A lesson of your own.")
@option("--continue", "continued", metavar="RUN", help="Go on from an earlier run of this task.")
@option("--with", "with_", multiple=True, metavar="PACKAGE", help="Package that the file imports.")
@option("--body-only", is_flag=True, help="Add no helpers; imports go inside.")
@option("--distrust-examples", is_flag=True, help="Count docstring examples like own tests.")
@option("--no-tests", is_flag=True, help="Ablation: no tests, only reflection.")
@option("--no-reflection", is_flag=True, help="Ablation: no lessons, only failures.")
@option("--strict", is_flag=True, help="A weak result is not solved.")
@option("--quiet", is_flag=True, help="Print nothing on standard error but trouble.")
@limit_options
@option(
    "--pool",
    type=click.IntRange(0, 16),
    default=1,
    show_default=True,
    help="Containers started ahead; 0 starts each when it is needed.",
)
@click.pass_context
def solve(ctx: click.Context, /, file: Path, **options: Any) -> None:
    """Complete the unfinished function in FILE, and print the file."""
    from reflexfix.display import Display

    exclusive(options)
    display = Display(options["quiet"])
    outcome, folder, home = run_solve(file, options, table_of(ctx), display)
    write_result(outcome, file, folder, home, options)
    weak = options["strict"] and outcome.label == "weak"
    ctx.exit(0 if outcome.solved and not weak else 1)


def exclusive(options: Mapping[str, Any]) -> None:
    """Hold that options which contradict each other do not come together."""
    for first, second in (
        ("as_diff", "as_json"),
        ("no_tests", "tests_file"),
        ("no_tests", "own_tests"),
        ("no_tests", "no_reflection"),
    ):
        if options[first] and options[second]:
            names = [n.removeprefix("as_").removesuffix("_file") for n in (first, second)]
            raise UsageProblem("--{} and --{} exclude each other.".format(*names).replace("_", "-"))
    if options["no_reflection"] and options["memory"] in ("none", "lesson"):
        raise UsageProblem(
            f"--no-reflection and --memory {options['memory']} exclude each other.",
            hint="--no-reflection is --memory transcript",
        )


def run_solve(
    file: Path, options: Mapping[str, Any], table: Mapping[str, Any], display: Any
) -> tuple[Outcome, Path, Path]:
    """Prepare and run; give the outcome, the run's folder and the project's one."""
    from reflexfix import assemble, config, runlog, solving
    from reflexfix.model import Budget
    from reflexfix.task import open_task

    settings = settings_of(options)
    task = open_task(file, options["function"], options["body_only"])
    user = task.user_tests(options["tests_file"]) if options["tests_file"] else None
    home = runlog.home_of(file)
    continued = runlog.find(home, options["continued"]) if options["continued"] else None
    packages = tuple(dict.fromkeys([*config.packages(table), *options["with_"]]))
    budget = Budget(options["max_tokens"], options["max_seconds"])
    with assemble.sandbox(
        settings.limits, packages, display.say, options["pool"], task.language, file
    ) as sandbox:
        solving.need_packages(task, user, sandbox)
        standing = solving.as_it_stands(task, user, sandbox, settings.rules)
        if not task.unfinished and user is not None and standing.solved:
            display.say("nothing to do: your tests pass", "green")
            return solving.Outcome("verified", idle_run(task, sandbox, settings)), home, home
        choice = model_choice(options)
        with (
            assemble.models(choice, budget, display.say) as models,
            runlog.RunLog(home) as log,
        ):
            named = solving.say_first_line(models, sandbox, display.say)
            log.begin(
                **named,
                task={
                    "id": task.id,
                    "name": task.name,
                    "path": str(file),
                    "language": task.language,
                },
                parameters=public(options),
                original=task.original,
            )
            run = solving.prepare(task, settings, models, sandbox, log, user, continued)
            outcome = solving.Outcome("failed", run)
            with display.live(models.received):
                display.doing("asking for a body and for tests")
                for event in solving.solve(run, log, budget, outcome):
                    display.event(event, run)
            from reflexfix.display import last_line

            line = last_line(outcome.label, run, outcome.trials, outcome.tokens, outcome.seconds)
            display.say(line, "bold green" if outcome.solved else "bold")
            if log.folder.parent.parent.name != runlog.FOLDER:
                display.say(f"run kept in {log.folder}")
            return outcome, log.folder, home


def idle_run(task: Any, sandbox: Any, settings: Settings) -> Any:
    """A run in which nothing had to be asked."""
    from reflexfix.ask import Ask
    from reflexfix.loop import Run
    from reflexfix.memory import Memory
    from reflexfix.model import ScriptedModel

    nobody = ScriptedModel([])
    return Run(Ask(task, nobody, nobody, nobody), sandbox, Memory(), settings.rules)


def write_result(
    outcome: Outcome, file: Path, folder: Path, home: Path, options: Mapping[str, Any]
) -> None:
    """Write the file if that was asked for, and print what was asked for."""
    from reflexfix import edit

    before, after = outcome.run.ask.task.original, outcome.file
    asked = options["write"] or options["write_unsolved"]
    if (options["write"] and outcome.solved) or options["write_unsolved"]:
        edit.write(file, before, after, home)
    if options["as_json"]:
        click.echo(json.dumps(outcome.as_json(folder), indent=2))
    elif options["as_diff"]:
        data = edit.diff(before, after, file.name).encode("utf-8", "surrogateescape")
        sys.stdout.buffer.write(data)
    elif not asked:
        sys.stdout.buffer.write(after)
    sys.stdout.flush()
