"""What a batch says in the end: one object, a file for machines, and a page for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reflexfix.batch import page, scores
from reflexfix.batch.store import PARAMETERS, read_json, read_results, write_whole
from reflexfix.errors import UsageProblem

REPORT, SCORES, PAGE = "report.json", "scores.json", "report.html"


def report(folder: Path, times: bool = True) -> dict[str, Any]:
    """Count what a batch's folder holds. Raises UsageProblem when it holds no results."""
    if not (folder / PARAMETERS).exists():
        raise UsageProblem(f"{folder} holds no batch.", hint="it is what --out named")
    parameters = read_json(folder / PARAMETERS)
    arms = scores.count(read_results(folder))
    order = [name for name in parameters.get("arms", {}) if name in arms]
    told: dict[str, Any] = {
        "parameters": parameters,
        "arms": [arms[name].record(times) for name in order],
        "pairs": [pair.record() for pair in scores.pairs({name: arms[name] for name in order})],
    }
    return told


def verdicts(folder: Path) -> list[dict[str, Any]]:
    """List what came of each task, without anything that differs from run to run."""
    found = [
        {
            "id": result.id,
            "arm": result.arm,
            "label": result.label,
            "passed": result.passed,
            "base": result.score.base if result.score else None,
            "status": result.score.status if result.score else None,
            "trouble": result.trouble,
            "trials": len(result.attempts),
            "tokens": [result.tokens.prompt, result.tokens.answer],
            "answer": result.answer,
            "limited": result.limited,
        }
        for result in read_results(folder)
    ]
    return sorted(found, key=lambda one: (one["arm"], one["id"]))


def write(folder: Path) -> dict[str, Any]:
    """Write report.json, scores.json (the same byte for byte in a replay) and report.html."""
    told = report(folder)
    write_whole(folder / REPORT, as_text(told))
    steady = report(folder, times=False)
    del steady["parameters"]
    write_whole(folder / SCORES, as_text({**steady, "tasks": verdicts(folder)}))
    write_whole(folder / PAGE, page.page(told, read_results(folder)))
    return told


def as_text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, indent=1, sort_keys=False) + "\n"


def compare(first: Path, second: Path) -> dict[str, Any]:
    """Compare two batches arm by arm, on the tasks that both have. Raises UsageProblem."""
    one, two = (counted(folder) for folder in (first, second))
    shared = [name for name in one if name in two]
    if not shared:
        raise UsageProblem(
            f"{first} has {', '.join(one) or 'no arms'}; {second} has {', '.join(two) or 'none'}.",
            hint="two batches are compared arm by arm",
        )
    before, after = (read_json(folder / PARAMETERS) for folder in (first, second))
    differs = {
        name: [before.get(name), after.get(name)]
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }
    pairs = [{"arm": name, **scores.paired(one[name], two[name]).record()} for name in shared]
    return {"first": str(first), "second": str(second), "differs": differs, "pairs": pairs}


def counted(folder: Path) -> dict[str, scores.ArmScores]:
    if not (folder / PARAMETERS).exists():
        raise UsageProblem(f"{folder} holds no batch.", hint="it is what --out named")
    return scores.count(read_results(folder))
