"""Results of batches, made by hand for tests of what counts and shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reflexfix.batch.result import PostHoc, Result, Tokens
from reflexfix.scoring import Score


def verdict(own: tuple[int, int] = (0, 0), trusted: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    """So many of so many tests passed; the failing ones are there by name."""
    solved = own[0] == own[1] and trusted[0] == trusted[1] and bool(own[1] or trusted[1])
    failing = own[1] - own[0] + trusted[1] - trusted[0]
    return {
        "label": "likely" if solved else "failed",
        "solved": solved,
        "problem": "",
        "control": "held",
        "seconds": 0.1,
        "passed": {"own": own[0], "trusted": trusted[0]},
        "total": {"own": own[1], "trusted": trusted[1]},
        "results": [
            {
                "origin": "own", "shown": f"assert f({n}) == 1", "name": f"own {n}",
                "status": "failed", "expected": "1", "actual": "<2>", "message": "",
            }
            for n in range(failing)
        ],
    }  # fmt: skip


def attempt(number: int, said: Mapping[str, Any], code: str = "return 1") -> dict[str, Any]:
    return {"number": number, "code": code, "verdict": dict(said), "note": ""}


def score(passed: bool, **more: Any) -> Score:
    given: dict[str, Any] = {
        "passed": passed,
        "base": None,
        "status": "passed" if passed else "failed",
        "mode": "split",
        **more,
    }
    return Score(**given)


def result(task: str, arm: str, passed: bool, **more: Any) -> Result:
    """One task in one arm, one attempt, all of its own tests passed."""
    given: dict[str, Any] = {
        "label": "likely",
        "score": score(passed),
        "attempts": (attempt(1, verdict((3, 3))),),
        "best": 1,
        "answer": "abc",
        "tokens": Tokens(100, 50),
        "seconds": 2.0,
        **more,
    }
    return Result(task, arm, "python", **given)


__all__ = ["PostHoc", "Tokens", "attempt", "result", "score", "verdict"]
