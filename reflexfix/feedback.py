"""What a failure looks like to a reader: the test, what was expected, what came, and where."""

from __future__ import annotations

import re

from reflexfix.attempt import Judged, Verdict
from reflexfix.difference import described

MOST_CHARACTERS = 2400
MOST_FAILURES = 4

_NOISE = (
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "0x..."),
    (re.compile(r"\b\d+(\.\d+)? ?(seconds|secs?|ms|s)\b"), "some time"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"), "some date"),
)


def without_noise(text: str) -> str:
    """Remove what differs between two runs of the same failure."""
    for pattern, calm in _NOISE:
        text = pattern.sub(calm, text)
    return text


def explain(one: Judged, *, differences: bool = True, most: int = 700) -> str:
    """Describe one failing test as the model reads it."""
    result = one.result
    lines = [one.case.shown]
    if result.expected is not None:
        lines += [f"expected: {result.expected}", f"actual:   {result.actual}"]
        if differences and (difference := described(result.expected, result.actual)):
            lines.append(f"so {difference}")
    elif result.message:
        lines.append(f"{result.status}: {without_noise(result.message)}")
    lines += [f"  at {frame}" for frame in result.frames]
    if result.values:
        lines.append(f"the call ended {result.values}")
    if result.printed.strip() and result.status != "output":
        lines.append(f"printed: {result.printed.strip()[:200]}")
    text = "\n".join(lines)
    return text if len(text) <= most else text[: most - 4] + "\n..."


def failures(verdict: Verdict, differences: bool = True) -> str:
    """Describe what failed, trusted tests first, in a bounded length."""
    if verdict.problem:
        return without_noise(verdict.problem)[:MOST_CHARACTERS]
    ordered = sorted(verdict.failures, key=lambda j: not j.case.trusted)
    texts: list[str] = []
    for one in ordered[:MOST_FAILURES]:
        text = explain(one, differences=differences)
        if sum(map(len, texts)) + len(text) > MOST_CHARACTERS:
            break
        texts.append(text)
    left = len(ordered) - len(texts)
    return "\n\n".join(texts) + (f"\n\n(and {left} more)" if left else "")


def brief(one: Judged) -> str:
    """Describe one failing test in one line."""
    result = one.result
    lines = one.case.shown.strip().splitlines() or [""]
    what = ("... " if len(lines) > 1 else "") + lines[-1].strip()
    if result.expected is not None and result.actual is not None:
        why = f"got {result.actual}"
    else:
        why = result.message.splitlines()[0] if result.message else result.status
    kind = "" if result.status == "failed" else f"{result.status}: "
    return f"{what[:90]} -> {kind}{why[:120]}"
