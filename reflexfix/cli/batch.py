"""`reflexfix batch` and `reflexfix compare`: many problems, honest scores."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import (
    limit_options,
    limits_of,
    loop_options,
    model_choice,
    option,
    settings_of,
)
from reflexfix.errors import BudgetSpent, UsageProblem

if TYPE_CHECKING:
    from reflexfix import scoring
    from reflexfix.assemble import Models
    from reflexfix.attempt import Limits
    from reflexfix.batch.arms import Arm
    from reflexfix.batch.run import Workers
    from reflexfix.batch.store import Store
    from reflexfix.batch.work import After
    from reflexfix.benchmarks.problem import BadRow, Problem, Wishes
    from reflexfix.model import Budget
    from reflexfix.progress import BatchDisplay
    from reflexfix.recording import Recording

DRAINED = 130
ABLATIONS = {
    "tests_file": None, "own_tests": False, "no_tests": False, "no_reflection": False,
    "distrust_examples": False, "hint": "",
}  # fmt: skip
"""What `solve` has and a batch sets by arm."""
STEERING = ("trials", "window", "test_count", "temperature", "seed", "answer_tokens",
            "context_tokens")  # fmt: skip


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
    help="reflexion (default), base, resample, no-tests, no-reflection; again for more.",
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
@option("--quiet", is_flag=True, help="Print nothing on standard error but trouble.")
@loop_options
@limit_options
@click.pass_context
def batch(ctx: click.Context, /, files: tuple[Path, ...], **options: Any) -> None:
    """Solve every task of FILES (HumanEval, MBPP and others), and score the answers."""
    from reflexfix.batch import store as stores
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


# ---------------------------------------------------------------- the run


def run_batch(
    files: tuple[Path, ...],
    arms: tuple[Arm, ...],
    store: Store,
    options: Mapping[str, Any],
    display: BatchDisplay,
) -> int:
    """Run what is not finished; give the exit code."""
    from reflexfix import scoring
    from reflexfix.batch import run
    from reflexfix.batch.work import Bench
    from reflexfix.model import Budget

    wishes, after = wishes_of(options), after_of(options)
    known = store.finished()
    total = sum(1 for _ in chosen(files, wishes, options))
    budget = Budget(options["max_tokens"], options["max_seconds"])
    with (
        scoring.Sandboxes(opener(options, display.say), limits_of(options)) as sandboxes,
        answering(store, budget, options, display.say) as models,
    ):
        store.begin(parameters(files, arms, models, wishes, after, options))
        display.say(f"model: {models.where} · {total} tasks · {len(known)} results kept")
        workers = run.Workers(
            Bench(models, sandboxes, budget, after), arms, known,
            chosen(files, wishes, options), options["workers"],
        )  # fmt: skip
        with display.running(total * len(arms) - len(known)), draining(workers, display.say):
            return drive(workers, store, display)


def opener(options: Mapping[str, Any], say: Callable[[str], None]) -> scoring.Open:
    """Say how a sandbox is opened when a task first needs it: with a pool for all workers."""
    from reflexfix import assemble

    def opened(language: str, packages: tuple[str, ...], limits: Limits) -> Any:
        return assemble.sandbox(limits, packages, say, options["workers"], language)

    return opened


def drive(workers: Workers, store: Store, display: BatchDisplay) -> int:
    """Take in the results; give the exit code."""
    from reflexfix.batch import run
    from reflexfix.benchmarks.problem import BadRow

    try:
        for found in run.kept(workers.results(), store):
            if isinstance(found, BadRow):
                display.say(f"{found.file}:{found.line}: not run: {found.why}", "yellow")
            else:
                display.result(found)
    except BudgetSpent as error:
        display.say(f"{error.message} The same command goes on.", "yellow")
        return BudgetSpent.exit_code
    if workers.interrupted:
        display.say("drained: the same command goes on", "yellow")
        return DRAINED
    return trouble_code(store)


def trouble_code(store: Store) -> int:
    """Say which trouble remains: 3 the model, 4 the sandbox, 0 none."""
    kinds = {result.trouble for result in store.results()}
    return 3 if "model" in kinds else 4 if "sandbox" in kinds else 0


@contextlib.contextmanager
def draining(workers: Workers, say: Callable[[str], None]) -> Iterator[None]:
    """Let the first Ctrl-C finish what is in flight, and the second one end at once."""

    def interrupted(_number: int, _frame: object) -> None:
        if workers.interrupted:
            raise KeyboardInterrupt
        workers.interrupt()
        say("finishing what is in flight; Ctrl-C again stops at once")

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def chosen(
    files: tuple[Path, ...], wishes: Wishes, options: Mapping[str, Any]
) -> Iterator[Problem | BadRow]:
    """Read the tasks that the options name."""
    import random

    from reflexfix.batch import run
    from reflexfix.benchmarks import formats

    rows = formats.read(files, wishes)
    if options["shuffle"] is not None:
        every = list(rows)
        random.Random(options["shuffle"]).shuffle(every)
        rows = iter(every)
    return run.wanted(rows, ids_of(options["ids"]), options["limit"])


def ids_of(text: str) -> frozenset[str]:
    """Read ids from the option itself, or from the file that it names, one a line."""
    if text and Path(text).is_file():
        return frozenset(Path(text).read_text("utf-8").split())
    return frozenset(one.strip() for one in text.split(",") if one.strip())


def wishes_of(options: Mapping[str, Any]) -> Wishes:
    from reflexfix.benchmarks.problem import Wishes

    return Wishes(visible_tests=options["visible_tests"], repair=options["repair"])


def after_of(options: Mapping[str, Any]) -> After:
    from reflexfix.batch.work import After

    return After(
        attempts=options["score_attempts"],
        suites=not options["no_check_suites"],
        samples=options["k"],
    )


def parameters(
    files: tuple[Path, ...],
    arms: tuple[Arm, ...],
    models: Models,
    wishes: Wishes,
    after: After,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Give all that a result depends on: a batch goes on only with the same."""
    import hashlib
    from dataclasses import asdict

    from reflexfix import __version__, assets

    digest = hashlib.sha256
    return {
        "version": __version__,
        "models": [models.actor.name, models.tester.name, models.reflector.name],
        "data": [{"name": f.name, "sha256": digest(f.read_bytes()).hexdigest()} for f in files],
        "arms": {arm.name: asdict(arm) for arm in arms},
        "prompts": digest(assets.all_prompts()).hexdigest(),
        "visible_tests": wishes.visible_tests,
        "repair": wishes.repair,
        "after": asdict(after),
    }


# ---------------------------------------------------------------- who answers


@contextlib.contextmanager
def answering(
    store: Store, budget: Budget, options: Mapping[str, Any], say: Callable[[str], None]
) -> Iterator[Models]:
    """Give the models: recorded as they answer, or replayed."""
    from reflexfix import assemble
    from reflexfix.recording import RecordedModel, Recording

    if options["replay"] and not options["replay_or_ask"]:
        yield replayed(options)
        return
    with assemble.models(model_choice(options), budget, say) as models:
        if options["no_record"]:
            yield models
            return
        kept = recorded(options["replay"]) if options["replay"] else Recording(store.answers)
        yield models.each(lambda model: RecordedModel(kept, model.name, model))


def replayed(options: Mapping[str, Any]) -> Models:
    """Give models that only look answers up. Raises UsageProblem."""
    from reflexfix.assemble import Models
    from reflexfix.recording import RecordedModel

    kept = recorded(options["replay"])
    actor, tester, reflector = names_in(kept, options)
    by_name = {name: RecordedModel(kept, name) for name in (actor, tester, reflector)}
    return Models(by_name[actor], by_name[tester], by_name[reflector], f"{actor} (replayed)")


def recorded(folder: Path) -> Recording:
    """Open the answers in a folder, or those in the folder of a batch."""
    from reflexfix import recording
    from reflexfix.batch import store as stores

    inner = folder / stores.ANSWERS
    return recording.opened(inner if inner.is_dir() else folder)


def names_in(kept: Recording, options: Mapping[str, Any]) -> tuple[str, str, str]:
    """Say which models answered: as the options say, or as the recorded batch says."""
    from reflexfix.batch import store as stores

    beside = kept.folder.parent / stores.PARAMETERS
    told = stores.read_json(beside).get("models", []) if beside.exists() else []
    if not told:
        every = kept.models()
        told = every * 3 if len(every) == 1 else [options["model"]] * 3
    given = (options["model"], options["test_model"], options["reflect_model"])
    actor, tester, reflector = (mine or theirs for mine, theirs in zip(given, told, strict=True))
    if not actor:
        raise UsageProblem(
            f"{kept.folder} holds answers of {', '.join(kept.models())}.",
            hint="choose with --model",
        )
    return actor, tester, reflector


# ---------------------------------------------------------------- what it says


def tell(folder: Path, display: BatchDisplay) -> None:
    """Write the report, and print its tables."""
    from rich.console import Console

    from reflexfix.batch import report
    from reflexfix.progress import pairs_table, scores_table

    told = report.write(folder)
    console = Console(highlight=False, soft_wrap=True)
    if told["arms"]:
        console.print(scores_table(told))
    if told["pairs"]:
        console.print(pairs_table(told["pairs"]))
    display.say(f"report: {folder / report.PAGE}")


@cli.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(first: Path, second: Path, as_json: bool) -> None:
    """Compare two batches arm by arm, on the tasks that both have."""
    from rich.console import Console

    from reflexfix.batch import report
    from reflexfix.progress import pairs_table

    told = report.compare(first, second)
    if as_json:
        click.echo(json.dumps(told, indent=1))
        return
    for name, (before, after) in told["differs"].items():
        click.echo(f"differs: {name}: {brief(before)} then, {brief(after)} now", err=True)
    Console(highlight=False, soft_wrap=True).print(pairs_table(told["pairs"], "arm"))


def brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
