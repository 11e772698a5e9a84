"""How a batch is run: what is chosen, who works, what ends it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reflexfix.cli.answers import answering
from reflexfix.cli.options import limits_of, model_choice
from reflexfix.errors import BudgetSpent, UsageProblem

if TYPE_CHECKING:
    from reflexfix import scoring
    from reflexfix.assemble import ModelChoice
    from reflexfix.attempt import Limits
    from reflexfix.batch.arms import Arm
    from reflexfix.batch.cluster import Cluster
    from reflexfix.batch.run import Known, Workers
    from reflexfix.batch.store import Store
    from reflexfix.batch.work import After
    from reflexfix.benchmarks.problem import BadRow, Problem, Wishes
    from reflexfix.model import Budget
    from reflexfix.progress import BatchDisplay

DRAINED = 130


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
    from reflexfix.benchmarks.problem import Problem
    from reflexfix.model import Budget

    wishes, after = wishes_of(options), after_of(options)
    known = store.finished()
    total = sum(isinstance(one, Problem) for one in chosen(files, wishes, options))
    budget = Budget(options["max_tokens"], options["max_seconds"])
    if options["cluster"]:
        return run_on_cluster(files, arms, store, options, display, budget, total, known)
    with (
        scoring.Sandboxes(opener(options, display.say), limits_of(options)) as sandboxes,
        answering(store, budget, options, display.say) as models,
    ):
        names = [models.actor.name, models.tester.name, models.reflector.name]
        store.begin(parameters(files, arms, names, wishes, after, options))
        display.say(f"model: {models.where} · {total} tasks · {len(known)} results kept")
        workers = run.Workers(
            Bench(models, sandboxes, budget, after), arms, known,
            chosen(files, wishes, options), options["workers"],
        )  # fmt: skip
        with display.running(total * len(arms) - len(known)), draining(workers, display.say):
            return drive(workers, store, display)


def run_on_cluster(
    files: tuple[Path, ...],
    arms: tuple[Arm, ...],
    store: Store,
    options: Mapping[str, Any],
    display: BatchDisplay,
    budget: Budget,
    total: int,
    known: Known,
) -> int:
    """Run on the workers of a Dask cluster; give the exit code."""
    try:
        from reflexfix.batch.cluster import Cluster, Spec
    except ModuleNotFoundError as error:
        raise UsageProblem(
            f"The package {error.name} is not installed.", hint="pip install 'reflexfix[cluster]'"
        ) from None
    from reflexfix.recording import Recording

    wishes, after = wishes_of(options), after_of(options)
    choice = choice_without_key(options)
    named = choice.model or "embedded"
    store.begin(parameters(files, arms, [named] * 3, wishes, after, options))
    display.say(
        f"model: {named}, on {options['cluster']} · {total} tasks · {len(known)} results kept"
    )
    recording = None if options["no_record"] else Recording(store.answers)
    cluster = Cluster(
        options["cluster"], Spec(choice, limits_of(options), after), arms, known,
        chosen(files, wishes, options), budget, recording,
    )  # fmt: skip
    with display.running(total * len(arms) - len(known)), draining(cluster, display.say):
        return drive(cluster, store, display)


def choice_without_key(options: Mapping[str, Any]) -> ModelChoice:
    """Say which model the workers ask; the key is in the environment of each."""
    return replace(model_choice(options), key="")


def opener(options: Mapping[str, Any], say: Callable[[str], None]) -> scoring.Open:
    """Say how a sandbox is opened when a task first needs it: with a pool for all workers."""
    from reflexfix import assemble

    def opened(language: str, packages: tuple[str, ...], limits: Limits) -> Any:
        return assemble.sandbox(limits, packages, say, options["workers"], language)

    return opened


def drive(workers: Workers | Cluster, store: Store, display: BatchDisplay) -> int:
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
def draining(workers: Workers | Cluster, say: Callable[[str], None]) -> Iterator[None]:
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
    models: list[str],
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
        "models": models,
        "data": [{"name": f.name, "sha256": digest(f.read_bytes()).hexdigest()} for f in files],
        "arms": {arm.name: asdict(arm) for arm in arms},
        "prompts": digest(assets.all_prompts()).hexdigest(),
        "visible_tests": wishes.visible_tests,
        "repair": wishes.repair,
        "after": asdict(after),
    }
