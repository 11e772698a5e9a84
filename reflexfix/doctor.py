"""Check what a solve needs, and name the remedy for what is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix import assemble, conformance
from reflexfix.assemble import ModelChoice
from reflexfix.attempt import Candidate, Case, Limits, Suite
from reflexfix.containers import image as images
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import ReflexfixError, SandboxTrouble
from reflexfix.model import only_model

NEEDED_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Finding:
    """One line of the check-up."""

    what: str
    good: bool
    said: str
    exit_code: int = 0
    """What a solve would end with for this; 0 when it would still work."""


def check_up(choice: ModelChoice, packages: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Look at engine, image, limits, model and disk, in the order in which a solve needs them."""
    yield from _sandbox(packages)
    yield from _model(choice)
    yield from _disk()


def promises(packages: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Try to break the sandbox's promises on this engine, each in a container of its own."""
    limits = Limits(test_seconds=2.0, total_seconds=4.0, memory_mb=128)
    with assemble.sandbox(limits, packages, lambda _line: None) as sandbox:
        for held in conformance.check(sandbox):
            code = 0 if held.kept else SandboxTrouble.exit_code
            yield Finding("promise", held.kept, f"{held.claim}: {held.said}", code)


def _sandbox(packages: tuple[str, ...]) -> Iterator[Finding]:
    try:
        engine = assemble.engine()
        yield Finding("engine", True, f"{engine} at {engine.url}, cgroup v{engine.cgroup}")
        image = images.find(engine, images.Recipe(packages=packages))
        if image is None:
            yield Finding("image", True, "not built yet: the first solve builds it")
            return
        yield Finding("image", True, f"{image[7:19]}")
        yield from _walls(engine, image)
    except ReflexfixError as error:
        yield Finding("sandbox", False, str(error), error.exit_code)


def _walls(engine: Engine, image: str) -> Iterator[Finding]:
    """Look at a container's walls from within, and have a right and a wrong body judged."""
    with ContainerSandbox(engine, image, Limits(), pool=1) as sandbox:
        python, weak = sandbox.weaknesses()
        held = "; ".join(weak) or "memory, processes, files, no network, read-only, seccomp"
        yield Finding("limits", not weak, f"Python {python}: {held}")
        right, wrong = (sandbox.run(_sample(body), _SUITE) for body in ("return x + 1", "return x"))
        if not right.solved or wrong.solved or right.control != "held":
            raise SandboxTrouble("A sample was judged wrongly.", hint="`reflexfix sandbox build`")
        yield Finding("verdict", True, f"a sample is judged rightly in {right.seconds:.2f} s")


_STUB = b"def sample(x):\n    ...\n"
_SUITE = Suite(
    cases=(Case("sample", "assert sample(1) == 2", "", "own"),),
    control=Case("control", "assert sample(1) == 'private'", "", "own"),
    control_value="private",
)


def _sample(body: str) -> Candidate:
    file = f"def sample(x):\n    {body}\n".encode()
    return Candidate({"m.py": file}, "m", "sample", stub_files={"m.py": _STUB})


def _model(choice: ModelChoice) -> Iterator[Finding]:
    try:
        yield _embedded() if choice.embedded else _endpoint(choice)
    except ReflexfixError as error:
        yield Finding("model", False, str(error), error.exit_code)


def _endpoint(choice: ModelChoice) -> Finding:
    if choice.base_url and not choice.model:
        name = only_model(choice.base_url, choice.key)
        return Finding("model", True, f"{name} at {choice.base_url}")
    if not choice.model:
        return Finding("model", False, "a key, but no model\nhint: choose one with --model NAME", 2)
    return Finding("model", True, f"{choice.model} at {choice.base_url or 'the default endpoint'}")


def _embedded() -> Finding:
    from reflexfix import local

    try:
        import xllamacpp  # noqa: F401
    except ImportError:
        said = "the package xllamacpp is not installed\nhint: pip install 'reflexfix[local]'"
        return Finding("model", False, said, 3)
    if not local.is_pulled():
        size = local.MODEL_BYTES / 1e9
        return Finding("model", True, f"embedded, not here yet: first use fetches {size:.2f} GB")
    return Finding("model", True, f"{local.MODEL_NAME} (embedded)")


def _disk() -> Iterator[Finding]:
    from reflexfix import local

    folder = local.model_path().parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    good = free > NEEDED_BYTES or local.is_pulled()
    said = f"{free / 1e9:.1f} GB free in {folder}"
    if not good:
        said += f"\nhint: the model needs {NEEDED_BYTES / 1e9:.0f} GB; REFLEXFIX_CACHE moves it"
    yield Finding("disk", good, said, 0 if good else 3)
