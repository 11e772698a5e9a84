"""Results as the supervisor tells them: only what is expected, of bounded length."""

from __future__ import annotations

from typing import Any

SHOWN = 4000
"""The longest single text of a result, in characters."""
BUDGET = 2**20
"""All texts of one verdict together, in characters; at most twelve bytes each on the line."""
MOST = 4000
"""How many results one verdict may hold."""
SAID = ("passed", "failed", "error", "no-verdict")
"""What a test's own process may say of it; the other statuses are for the supervisor to give."""
FLAGS = ("died", "refused", "argument_refused")
BLANK: dict[str, Any] = {
    "expected": None,
    "actual": None,
    "compared": False,
    "message": "",
    "frames": [],
    "seconds": 0.0,
    "printed": "",
    "unstable": False,
    "values": "",
}


def text(value: Any, limit: int = SHOWN) -> str:
    """Give a text that an untrusted process wrote, cut; "" for anything else."""
    return value[:limit] if isinstance(value, str) else ""


def problem(found: Any) -> dict[str, Any]:
    """Read a problem that an untrusted process wrote."""
    if not isinstance(found, dict) or not isinstance(found.get("message"), str):
        return {"message": "the candidate's process answered nonsense", "frames": []}
    frames = found.get("frames")
    shown = [text(frame, 500) for frame in frames[:5]] if isinstance(frames, list) else []
    return {"message": text(found["message"]), "frames": shown}


def told(frame: Any, statuses: tuple[str, ...] = SAID) -> dict[str, Any]:
    """Read what a test's process said of its test; anything odd is no verdict."""
    if not isinstance(frame, dict) or frame.get("status") not in statuses:
        return {"status": "no-verdict", "message": "the test's process answered nonsense"}
    seen = {
        name: text(frame[name]) for name in ("expected", "actual") if frame.get(name) is not None
    }
    flags = {name: True for name in FLAGS if frame.get(name) is True}
    compared = frame.get("compared") is True
    shown = problem({"message": "", **frame})
    return {"status": frame["status"], "compared": compared, **seen, **shown, **flags}


def within_budget(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cut texts, then results, so that the verdict is one that the outside takes."""
    left, kept = BUDGET, []
    for result in results[:MOST]:
        left -= sum(map(_length, result.values()))
        if left < 0:
            result = {**result, "expected": None, "actual": None, "frames": [], "printed": "",
                      "values": ""}  # fmt: skip
            result = {**result, "message": text(result["message"], 100)}
        kept.append(result)
    if len(results) > MOST:
        kept.append({**kept[-1], "name": "results", "status": "no-verdict"} | TOO_MANY)
    return kept


TOO_MANY = {"message": f"more than {MOST} results", "compared": False}


def _length(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(len, value))
    return len(value) if isinstance(value, str) else 0
