"""Who answers a batch: a model whose answers are kept, or the answers of another run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reflexfix.cli.options import model_choice
from reflexfix.errors import UsageProblem

if TYPE_CHECKING:
    from reflexfix.assemble import Models
    from reflexfix.batch.store import Store
    from reflexfix.model import Budget
    from reflexfix.recording import Recording


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
