"""Check what a solve needs, and name the remedy for what is missing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reflexfix import assemble, conformance
from reflexfix.assemble import ModelChoice
from reflexfix.attempt import Candidate, Case, Limits, Suite
from reflexfix.containers import image as images
from reflexfix.containers.engine import Engine
from reflexfix.errors import ReflexfixError, SandboxTrouble
from reflexfix.model import only_model
from reflexfix.task import open_task

NEEDED_BYTES = 2 * 10**9


@dataclass(frozen=True)
class Finding:
    """One line of the check-up."""

    what: str
    good: bool
    said: str
    exit_code: int = 0
    """What a solve would end with for this; 0 when it would still work."""


def check_up(
    choice: ModelChoice, packages: tuple[str, ...] = (), language: str = "python"
) -> Iterator[Finding]:
    """Look at engine, image, limits, model and disk, in the order in which a solve needs them."""
    yield from _sandbox(packages, language)
    yield from _model(choice)
    yield from _disk()


def promises(packages: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Try to break the sandbox's promises on this engine, each in a container of its own."""
    limits = Limits(test_seconds=2.0, total_seconds=4.0, memory_mb=128)
    with assemble.sandbox(limits, packages, lambda _line: None) as sandbox:
        for held in conformance.check(sandbox):
            code = 0 if held.kept else SandboxTrouble.exit_code
            yield Finding("promise", held.kept, f"{held.claim}: {held.said}", code)


def _sandbox(packages: tuple[str, ...], language: str) -> Iterator[Finding]:
    try:
        engine = assemble.engine()
        yield Finding("engine", True, f"{engine} at {engine.url}, cgroup v{engine.cgroup}")
        recipe = images.Recipe(language, packages if language == "python" else ())
        image = images.find(engine, recipe)
        if image is None:
            first = "the first solve" if language == "python" else "the first .rs file"
            cost = images.COST[language]
            yield Finding("image", True, f"not built yet: {first} builds it ({cost})")
            return
        yield Finding("image", True, f"{language} {image[7:19]}")
        yield from _walls(engine, image, language)
    except ReflexfixError as error:
        yield Finding("sandbox", False, str(error), error.exit_code)


def _walls(engine: Engine, image: str, language: str) -> Iterator[Finding]:
    """Look at a container's walls from within, and have a right and a wrong body judged."""
    with assemble.opened_for(language, engine, image, Limits(), pool=1) as sandbox:
        python, weak = sandbox.weaknesses()
        held = "; ".join(weak) or "memory, processes, files, no network, read-only, seccomp"
        yield Finding("limits", not weak, f"Python {python}: {held}")
        sample = _sample if language == "python" else _rust_sample
        right, wrong = (sandbox.run(*sample(body)) for body in ("x + 1", "x"))
        if not right.solved or wrong.solved or right.control != "held":
            raise SandboxTrouble("A sample was judged wrongly.", hint="`reflexfix sandbox build`")
        yield Finding("verdict", True, f"a sample is judged rightly in {right.seconds:.2f} s")


_STUB = b"def sample(x):\n    ...\n"
_SUITE = Suite(
    cases=(Case("sample", "assert sample(1) == 2", "", "own"),),
    control=Case("control", "assert sample(1) == 'private'", "", "own"),
    control_value="private",
)


def _sample(body: str) -> tuple[Candidate, Suite]:
    file = f"def sample(x):\n    return {body}\n".encode()
    return Candidate({"m.py": file}, "m", "sample", stub_files={"m.py": _STUB}), _SUITE


def _rust_sample(body: str) -> tuple[Candidate, Suite]:
    """Make a sample as a solve would: from a file, and an answer to read."""
    with tempfile.TemporaryDirectory(prefix="reflexfix-doctor-") as folder:
        file = Path(folder, "sample.rs")
        file.write_text("fn sample(x: i32) -> i32 {\n    todo!()\n}\n")
        task = open_task(file)
    cases, _ = task.own_tests("assert_eq!(sample(1), 2);", [])
    control, value = task.control(cases)
    reading = task.read(f"fn sample(x: i32) -> i32 {{\n    {body}\n}}")
    return task.candidate(reading.file), Suite(tuple(cases), None, control, value)


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
