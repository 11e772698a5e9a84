"""`reflexfix batch` and `reflexfix compare`: many problems, honest scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import limit_options, loop_options, option, settings_of
from reflexfix.errors import UsageProblem

if TYPE_CHECKING:
    from rich.console import Console

    from reflexfix.batch.arms import Arm
    from reflexfix.progress import BatchDisplay

ABLATIONS = {
    "tests_file": None, "own_tests": False, "no_tests": False, "no_reflection": False,
    "distrust_examples": False, "hint": "", "plain": False,
}  # fmt: skip
"""What `solve` has and a batch sets by arm."""
STEERING = ("trials", "window", "memory", "differences", "values", "restart", "agreement",
            "mutants", "more_tests", "last", "test_count", "derive", "temperature", "seed",
            "answer_tokens", "context_tokens")  # fmt: skip


@cli.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for results; the same command goes on where it stopped.",
)
@option(
    "--arm",
    "arms",
    multiple=True,
    metavar="NAME",
    help="reflexion (default), base, plain, resample, paper, no-tests, no-reflection; or "
    "one of --arm-file. Again for more.",
)
@option(
    "--arm-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file with arms of your own: [arms.NAME] and options.",
)
@option(
    "--resample-tokens",
    type=click.IntRange(1),
    help="Tokens a task for resample without reflexion.",
)
@option(
    "--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Tasks at a time."
)
@option("--limit", type=click.IntRange(1), help="Tasks at most.")
@option("--ids", default="", metavar="ID,ID", help="Only these tasks; or a file of ids.")
@option("--shuffle", type=int, metavar="SEED", help="Take the tasks in a random order.")
@option(
    "--visible-tests",
    type=click.IntRange(0),
    default=0,
    help="Show so many of a task's asserts, and score by the others (MBPP).",
)
@option("--repair", is_flag=True, help="Start from the buggy body where a task has one.")
@option(
    "--score-attempts",
    is_flag=True,
    help="Judge each trial's best so far too, after the final answer.",
)
@option(
    "--k", type=click.IntRange(0), default=0, help="Samples a task for pass@k, in the arm base."
)
@option(
    "--no-check-suites",
    is_flag=True,
    help="Do not look whether reference solutions pass the loop's tests.",
)
@option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Take recorded answers; no model is asked.",
)
@option("--replay-or-ask", is_flag=True, help="Ask for what --replay does not have.")
@option("--no-record", is_flag=True, help="Do not keep the answers.")
@option("--cluster", metavar="ADDRESS", help="Dask scheduler, as tcp://host:8786.")
@option("--quiet", is_flag=True, help="Print nothing on standard error but trouble.")
@loop_options
@limit_options
@click.pass_context
def batch(ctx: click.Context, /, files: tuple[Path, ...], **options: Any) -> None:
    """Solve every task of FILES (HumanEval, MBPP and others), and score the answers."""
    from reflexfix.batch import store as stores
    from reflexfix.cli.running import run_batch
    from reflexfix.progress import BatchDisplay

    consistent(options)
    display = BatchDisplay(options["quiet"])
    arms = arms_of(options)
    with stores.opened(options["out"]) as store:
        code = run_batch(files, arms, store, options, display)
        tell(store.folder, display)
    ctx.exit(code)


def consistent(options: Mapping[str, Any]) -> None:
    """Hold that options fit together."""
    if options["replay_or_ask"] and not options["replay"]:
        raise UsageProblem("--replay-or-ask goes with --replay DIR.")
    if options["cluster"] and options["replay"]:
        raise UsageProblem("--cluster and --replay exclude each other.")
    if options["replay"] and options["no_record"]:
        raise UsageProblem("--replay and --no-record exclude each other.")


def arms_of(options: Mapping[str, Any]) -> tuple[Arm, ...]:
    """Make the arms: the options, changed as each arm says. Raises UsageProblem."""
    from reflexfix.batch import arms

    wanted = arms.definitions(options["arms"] or ("reflexion",), options["arm_file"])
    made = []
    for name, changes in wanted.items():
        resamples = bool(changes.get("resample"))
        tokens = changes.get("resample_tokens") or options["resample_tokens"]
        if resamples and tokens is None and "reflexion" not in wanted:
            raise UsageProblem(
                f"The arm {name} has nothing to measure itself by.",
                hint="add --arm reflexion, or --resample-tokens N",
            )
        flags = {k: v for k, v in changes.items() if k not in ("resample", "resample_tokens")}
        refuse_unknown(name, flags)
        settings = settings_of({**ABLATIONS, **options, **flags})
        made.append(arms.Arm(name, settings, resamples, tokens))
    return tuple(made)


def refuse_unknown(name: str, flags: Mapping[str, Any]) -> None:
    for flag in flags:
        if flag not in STEERING and flag not in ABLATIONS:
            spelled = flag.replace("_", "-")
            raise UsageProblem(f"The arm {name} sets {spelled}, which no arm can.")


# ---------------------------------------------------------------- what it says


def tell(folder: Path, display: BatchDisplay) -> None:
    """Write the report, and print its tables."""
    from reflexfix.batch import report
    from reflexfix.progress import pairs_table, scores_tables

    told = report.write(folder)
    console = wide_console()
    for table in scores_tables(told):
        console.print(table)
    if told["pairs"]:
        console.print(pairs_table(told["pairs"]))
    display.say(f"report: {folder / report.PAGE}")


@cli.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(first: Path, second: Path, as_json: bool) -> None:
    """Compare two batches arm by arm, on the tasks that both have."""
    from reflexfix.batch import report
    from reflexfix.progress import pairs_table

    told = report.compare(first, second)
    if as_json:
        click.echo(json.dumps(told, indent=1))
        return
    for name, (before, after) in told["differs"].items():
        click.echo(f"differs: {name}: {brief(before)} then, {brief(after)} now", err=True)
    wide_console().print(pairs_table(told["pairs"], "arm"))


def wide_console() -> Console:
    """Give a console for tables on standard output: as wide as they are where nobody looks."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
