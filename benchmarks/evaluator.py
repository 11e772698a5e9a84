"""Does the loop pay? The tables of the experiment, made from one line a task and arm.

    python benchmarks/evaluator.py --compact OUT > benchmarks/results/evaluator/NAME.jsonl
    python benchmarks/evaluator.py --from benchmarks/results/evaluator/NAME.jsonl ...
    python benchmarks/evaluator.py --left benchmarks/results/evaluator/NAME.jsonl \
        --set humaneval.report
    python benchmarks/evaluator.py --replay ANSWERS --file BENCHMARK --set humaneval.report \
        --arm base --arm reflexion

`--compact` takes what is needed for the tables out of a batch's folder, and leaves all text of
the benchmark and of the model behind. `--from` makes the tables of such files, a section a file.
`--left` lists the ids of a set that are not in a file with every arm: what a run has to go on with.
`--replay` runs the batch from recorded answers, without a model, and makes the same tables.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import table

from reflexfix.batch import scores, store
from reflexfix.batch.result import Result, read_result

SETS = Path(__file__).with_name("results") / "sets.json"
PAIRS = (
    ("base", "reflexion"),
    ("plain", "reflexion"),
    ("resample", "reflexion"),
    ("paper", "reflexion"),
    ("base", "resample"),
    ("base", "paper"),
    ("base", "plain"),
)


# ---------------------------------------------------------------- one line a task and arm


def compact(result: Result) -> dict[str, Any]:
    """Keep ids, verdicts, tokens, seconds and hashes; drop every text.

    What a run went on from is compact already, and stays as it is.
    """
    record = result.record()
    if result.is_bare:
        return record
    cases = record["suite"].get("cases", [])
    record["suite"] = {
        "own": sum(case["origin"] == "own" for case in cases),
        "trusted": sum(case["origin"] != "own" for case in cases),
        "dropped": len(record["suite"].get("dropped", [])),
        "aside": len(record["suite"].get("aside", [])),
        "gate": record["suite"].get("gate"),
    }
    record["attempts"] = [brief(attempt) for attempt in record["attempts"]]
    record["lessons"] = [
        {name: lesson[name] for name in ("attempt", "outcome", "closed")}
        for lesson in record["lessons"]
    ]
    if record["score"]:
        record["score"]["message"] = ""
    record["stopped"] = "stopped" if record["stopped"] else ""
    record["message"] = ""
    return record


def brief(attempt: Mapping[str, Any]) -> dict[str, Any]:
    verdict = attempt["verdict"]
    kept = {name: verdict[name] for name in ("label", "solved", "control", "passed", "total")}
    code = hashlib.sha256(attempt["code"].encode()).hexdigest()[:16] if attempt["code"] else ""
    return {
        "number": attempt["number"],
        "fresh": attempt["fresh"],
        "code": code,
        "verdict": {**kept, "problem": "problem" if verdict["problem"] else "", "results": []},
    }


def lines_of(file: Path) -> Iterator[Result]:
    for line in file.read_text("utf-8").splitlines():
        if line.strip():
            yield read_result(json.loads(line))


# ---------------------------------------------------------------- tables


def section(title: str, results: Iterable[Result]) -> str:
    """Make the tables of one set of tasks."""
    results = list(results)
    arms = scores.count(results)
    pairs = [
        scores.paired(arms[first], arms[second]).record()
        for first, second in PAIRS
        if first in arms and second in arms
    ]
    told = {"arms": [arm.record(times=True) for arm in arms.values()], "pairs": pairs}
    parts = [table.arms(told), table.pairs(told), table.labels(told), table.curves(told)]
    return "\n".join([f"## {title}\n", *parts, lost_and_won(pairs), trust(results)])


def lost_and_won(pairs: Iterable[Mapping[str, Any]]) -> str:
    """Name the tasks in which two arms differ."""
    lines = []
    for pair in pairs:
        won, lost = (", ".join(pair[name]) or "none" for name in ("won", "lost"))
        lines.append(f"- {pair['second']} against {pair['first']}: won {won}; lost {lost}")
    return "\n".join(lines) + "\n"


def trust(results: Iterable[Result]) -> str:
    """Say what each class of tests, votes, mutants and fresh tries were worth to the loop."""
    some = [one for one in results if one.arm == "reflexion" and one.score]
    stand = [
        a["verdict"] for one in some if one.passed for a in one.attempts if a["number"] == one.best
    ]
    lines = []
    for kind, name in (("own", "own tests"), ("trusted", "examples")):
        total = sum(verdict["total"][kind] for verdict in stand)
        failed = total - sum(verdict["passed"][kind] for verdict in stand)
        lines.append(f"- {name} that a right answer fails: {failed} of {total}")
    outvoted = [one.passed for one in some if one.suite.get("aside")]
    lines.append(f"- tasks with outvoted own tests: {len(outvoted)}, right: {sum(outvoted)}")
    gates = [one.suite["gate"] for one in some if one.suite.get("gate")]
    first = sum(gate["noticed"] and gate["tried"] == 1 for gate in gates)
    later = sum(gate["noticed"] and gate["tried"] > 1 for gate in gates)
    none = sum(not gate["noticed"] and gate["tried"] > 0 for gate in gates)
    idle = sum(not gate["tried"] for gate in gates)
    lines.append(
        f"- answers whose first mutant was noticed: {first}; a later one: {later}; none: {none}; "
        f"without a mutant: {idle}"
    )
    after = [
        is_met(new["verdict"])
        for one in some
        for old, new in pairwise(sorted(one.attempts, key=lambda a: int(a["number"])))
        if not (old["verdict"]["problem"] or is_met(old["verdict"]))
    ]
    lines.append(f"- tries after a failed example: {len(after)}, pass all examples: {sum(after)}")
    return "\n".join(lines) + "\n"


def is_met(verdict: Mapping[str, Any]) -> bool:
    """Whether an answer could be run and fails no example."""
    met: bool = verdict["passed"]["trusted"] == verdict["total"]["trusted"]
    return met and not verdict["problem"]


# ---------------------------------------------------------------- again, from recorded answers


def ids_of(name: str) -> list[str]:
    """Give the ids of a set, such as humaneval.report."""
    benchmark, kind = name.split(".")
    ids: list[str] = json.loads(SETS.read_text())[benchmark][kind]
    return ids


def left(file: Path, name: str) -> list[str]:
    """List the tasks of a set that some arm of the file has no verdict on."""
    arms = scores.count(lines_of(file)).values()
    return [task for task in ids_of(name) if not all(task in arm.passed for arm in arms)]


def replayed(given: argparse.Namespace, out: Path) -> list[Result]:
    """Run the batch from recorded answers. Ends the program when that fails."""
    command = [sys.executable, "-m", "reflexfix", "batch", str(given.file), "--out", str(out)]
    command += ["--replay", str(given.replay), "--score-attempts", "--quiet"]
    if given.set:
        command += ["--ids", ",".join(ids_of(given.set))]
    for arm in given.arm:
        command += ["--arm", arm]
    if given.arm_file:
        command += ["--arm-file", str(given.arm_file)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return list(store.read_results(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--compact", type=Path, metavar="OUT")
    what.add_argument("--from", dest="files", type=Path, nargs="+", metavar="FILE")
    what.add_argument("--left", type=Path, metavar="FILE")
    what.add_argument("--replay", type=Path, metavar="ANSWERS")
    parser.add_argument("--file", type=Path, help="the benchmark, with --replay")
    parser.add_argument("--set", default="", help="such as humaneval.report")
    parser.add_argument("--arm", action="append", default=[], help="with --replay")
    parser.add_argument("--arm-file", type=Path, help="with --replay")
    given = parser.parse_args()
    if given.compact:
        for result in sorted(store.read_results(given.compact), key=lambda r: (r.id, r.arm)):
            print(json.dumps(compact(result), sort_keys=True))
    elif given.files:
        print("\n".join(section(file.stem, lines_of(file)) for file in given.files))
    elif given.left and given.set:
        print(",".join(left(given.left, given.set)))
    elif given.left:
        parser.error("--left needs --set")
    elif not given.file:
        parser.error("--replay needs --file")
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(section(given.set or given.file.stem, replayed(given, Path(folder))))


if __name__ == "__main__":
    main()
