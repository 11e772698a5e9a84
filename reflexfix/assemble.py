"""Put together what a command needs: models for the three roles, and a sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reflexfix import runlog
from reflexfix.attempt import Limits
from reflexfix.containers import engine as engines
from reflexfix.containers import image as images
from reflexfix.containers import rust
from reflexfix.containers.crates import Crates
from reflexfix.containers.crates import around as crates_around
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import UsageProblem
from reflexfix.model import Budget, Model, OpenAIModel, only_model

Say = Callable[[str], None]


@dataclass(frozen=True)
class ModelChoice:
    """What the user said of models; empty strings where nothing was said."""

    model: str = ""
    test_model: str = ""
    reflect_model: str = ""
    base_url: str = ""
    key: str = ""

    @property
    def embedded(self) -> bool:
        """Whether the model runs here: nothing points elsewhere, or a GGUF file is named."""
        return self.model.endswith(".gguf") or not (self.base_url or self.key)


@dataclass(frozen=True)
class Models:
    """The models of a run, by role; often one and the same."""

    actor: Model
    tester: Model
    reflector: Model
    where: str
    """What the first line of a run says."""

    def received(self) -> int:
        """Count the pieces of answers that have arrived: shows that one is moving."""
        every = {self.actor, self.tester, self.reflector}
        return sum(getattr(model, "received", 0) for model in every)

    def each(self, change: Callable[[Model], Model]) -> Models:
        """Put something around each model; one that has several roles stays one."""
        changed = {id(m): change(m) for m in {self.actor, self.tester, self.reflector}}
        actor, tester, reflector = (
            changed[id(model)] for model in (self.actor, self.tester, self.reflector)
        )
        return Models(actor, tester, reflector, self.where)


@contextlib.contextmanager
def models(choice: ModelChoice, budget: Budget, say: Say) -> Iterator[Models]:
    """Connect to the endpoint, or start the embedded model for as long as the `with` lasts.

    Raises UsageProblem when the choice is incomplete, ModelTrouble when nothing answers.
    """
    if choice.embedded:
        with embedded(choice, budget, say) as found:
            yield found
        return
    name = choice.model
    if not name and not choice.base_url:
        raise UsageProblem(
            "There is a key, but no model is named.", hint="choose one with --model NAME"
        )
    name = name or only_model(choice.base_url, choice.key)
    actor = OpenAIModel(choice.base_url, choice.key, name, budget)
    where = f"{name} at {runlog.masked(str(actor.client.base_url)).rstrip('/')}"
    yield _by_role(choice, actor, where)


@contextlib.contextmanager
def embedded(choice: ModelChoice, budget: Budget, say: Say) -> Iterator[Models]:
    """Run a model on this machine: by the server that keeps it warm, else by one of our own."""
    from reflexfix import local, warm

    path = gguf(choice, say)
    with contextlib.ExitStack() as open_ones:
        endpoint, how = open_ones.enter_context(warm.kept(path)), "embedded, kept warm"
        if endpoint is None:
            endpoint, how = open_ones.enter_context(local.serve(path)), "embedded"
        actor = OpenAIModel(endpoint.base_url, endpoint.api_key, endpoint.model, budget)
        yield _by_role(choice, actor, f"{endpoint.model} ({how})")


def gguf(choice: ModelChoice, say: Say) -> Path:
    """Give the file of the model that runs here, fetching it if it is the embedded one."""
    from reflexfix import local

    if choice.model.endswith(".gguf"):
        return Path(choice.model).expanduser()
    if choice.model:
        raise UsageProblem(
            f"There is no endpoint for the model {choice.model}.",
            hint="give --base-url (OPENAI_BASE_URL) or OPENAI_API_KEY, or a .gguf file",
        )
    pull(say)
    return local.model_path()


def pull(say: Say) -> None:
    """Fetch the embedded model if it is not here yet, saying first what and how large."""
    from reflexfix import local

    if local.is_pulled():
        return
    size = local.MODEL_BYTES / 1e9
    say(f"fetching {local.MODEL_NAME} ({size:.2f} GB, {local.MODEL_LICENSE}), once")
    shown = 0
    for progress in local.pull():
        percent = progress.done_bytes * 100 // max(1, progress.total_bytes)
        if progress.what:
            say(f"  {progress.what}")
        elif percent >= shown + 10:
            shown = percent - percent % 10
            say(f"  {shown} % from {progress.source}")


def _by_role(choice: ModelChoice, actor: OpenAIModel, where: str) -> Models:
    def other(name: str) -> OpenAIModel:
        if not name or name == actor.name:
            return actor
        if choice.embedded:
            raise UsageProblem(
                f"The embedded model cannot stand beside another one ({name}).",
                hint="--test-model and --reflect-model need an endpoint: --base-url",
            )
        return OpenAIModel(choice.base_url, choice.key, name, actor.budget)

    return Models(actor, other(choice.test_model), other(choice.reflect_model), where)


# ---------------------------------------------------------------- the sandbox


def engine() -> Engine:
    return engines.connect()


def ready_image(
    found: Engine,
    packages: tuple[str, ...],
    say: Say,
    language: str = "python",
    crates: Crates | None = None,
) -> str:
    """Give the id of the image, building it on first use. Raises SandboxTrouble."""
    recipe = images.Recipe(language, packages if language == "python" else (), crates)
    there = images.find(found, recipe)
    if there is None:
        for step in images.build(found, recipe):
            say(step)
        there = images.find(found, recipe)
    assert there is not None
    return there


@contextlib.contextmanager
def sandbox(
    limits: Limits,
    packages: tuple[str, ...],
    say: Say,
    pool: int = 1,
    language: str = "python",
    file: Path | None = None,
) -> Iterator[ContainerSandbox]:
    """Open the sandbox for as long as the `with` lasts; orphans of dead runs are removed first.

    Crates that were built for the crate of `file` are there too; they are not built now.
    """
    from reflexfix.containers import container as containers

    with contextlib.closing(engine()) as found:
        crates = built_crates(found, file) if language == "rust" and file is not None else None
        image = ready_image(found, packages, say, language, crates)
        with engines.speaking(found):
            containers.sweep(found)
        with opened_for(language, found, image, limits, pool) as opened:
            yield opened


def built_crates(found: Engine, file: Path) -> Crates | None:
    """Give the crates that a file's crate asks for, if `sandbox build` has built them."""
    asked = crates_around(file)
    there = asked is not None and images.find(found, images.Recipe("rust", crates=asked))
    return asked if there else None


def opened_for(
    language: str, found: Engine, image: str, limits: Limits, pool: int
) -> ContainerSandbox:
    """Give the sandbox of a language; that for Rust uses two containers at a time."""
    if language == "rust":
        return rust.RustSandbox(found, image, rust.limits_for(limits), pool and max(pool, 2))
    return ContainerSandbox(found, image, limits, pool)
