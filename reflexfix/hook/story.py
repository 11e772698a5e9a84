"""What a person reads at the end: tests, function and why that one, diff, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reflexfix.attempt import Result
from reflexfix.hook import environment
from reflexfix.hook.work import Outcome, Project

MOST_TESTS = 10


def lines(
    outcome: Outcome, project: Project, kept: Path | None, written: list[Path]
) -> Iterator[str]:
    """Tell what came of a run."""
    yield verdict(outcome)
    if outcome.report.trouble:
        yield from trouble(outcome.report.trouble)
    yield from tests(outcome)
    if outcome.lacking:
        yield from lacking(outcome, project)
    yield from mended(outcome, kept, written)


def verdict(outcome: Outcome) -> str:
    """Say in one line how the tests ended."""
    report = outcome.report
    skipped = f", {report.skipped} skipped" if report.skipped else ""
    if outcome.passed:
        return f"tests: {len(report.passed)} passed{skipped}"
    if not report.total:
        return "tests: they could not be run"
    return f"tests: {len(report.failures)} of {report.total} failed{skipped}"


def trouble(said: str) -> Iterator[str]:
    """Show what kept the runner from its work."""
    first, *more = said.splitlines()
    yield f"environment: {first}"
    yield from (f"  {line}" for line in more[-8:] if line.strip())


def tests(outcome: Outcome) -> Iterator[str]:
    """List what failed, one line each; flaky tests apart."""
    failing = outcome.failing
    yield from (f"  {brief(result)}" for result in failing[:MOST_TESTS])
    if len(failing) > MOST_TESTS:
        yield f"  and {len(failing) - MOST_TESTS} more"
    for name in outcome.flaky:
        yield f"flaky: {name} failed, and passed without a change; not repaired"


def brief(result: Result) -> str:
    """Describe a failure in one line."""
    said = [line.strip() for line in result.message.splitlines() if line.strip()]
    errors = [line.removeprefix("E ").strip() for line in said if line.startswith("E ")]
    why = (errors or said or [result.status])[-1 if errors else 0]
    kind = "" if result.status == "failed" else f"{result.status}: "
    return f"{result.name} -> {kind}{why[:160]}"


def lacking(outcome: Outcome, project: Project) -> Iterator[str]:
    """Say what the image lacks, and the line that brings it."""
    modules = sorted({name.split(".")[0] for name in outcome.lacking.values()})
    line = environment.line_to_add(project.settings, project.need, modules)
    wanted = f"{len(outcome.lacking)} tests want it" if len(modules) == 1 else "tests want them"
    yield f"environment: the image lacks {', '.join(modules)}; {wanted}"
    yield f"  add to pyproject.toml: {line}"
    yield f"  then run: {environment.PREPARE}"


def mended(outcome: Outcome, kept: Path | None, written: list[Path]) -> Iterator[str]:
    """Show the patch and how to take it; or say why there is none."""
    for suspect in outcome.tried:
        yield f"tried: {suspect}: {suspect.why}"
    if outcome.stopped:
        yield f"stopped: {outcome.stopped}"
    patch = outcome.patch
    if patch is None or kept is None:
        if outcome.tried:
            yield "no fix was found"
        return
    for fix in outcome.fixes:
        yield f"mended: {fix.suspect.path}: {fix.suspect.name} ({fix.suspect.why})"
    if patch.partial:
        yield from partial(outcome)
    else:
        yield f"all {len(patch.fixes)} failing tests pass with it, and the whole suite does"
    yield ""
    yield from patch.text.decode("utf-8", "backslashreplace").splitlines()
    yield ""
    yield from taken(patch.id, kept, written)


def partial(outcome: Outcome) -> Iterator[str]:
    """Say what a partial patch does, and what it does not."""
    assert outcome.patch is not None
    yield f"PARTIAL: it mends {', '.join(outcome.patch.fixes)}"
    if outcome.patch.left:
        yield f"  and not {', '.join(outcome.patch.left[:MOST_TESTS])}"
    if not outcome.patch.verified:
        yield "  the whole suite was not run on it: the time was over"


def taken(patch_id: str, kept: Path, written: list[Path]) -> Iterator[str]:
    if written:
        yield f"written to the work tree, unstaged: {', '.join(map(str, written))}"
        yield "  take it back: reflexfix undo"
        return
    yield f"patch: {kept}"
    yield f"  take it: git apply {kept}"
    yield f"  or:      reflexfix apply {patch_id}   (undone by: reflexfix undo)"
