"""Tell the artefact of a run as a story."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reflexfix.runlog import Record


def story(records: Iterable[Record]) -> Iterator[str]:
    """Give the lines of the story. A run that was cut short is told as far as it went."""
    every = list(records)
    ends = [record.data for record in every if record.kind == "end"]
    outcomes = {lesson["id"]: lesson for end in ends for lesson in end.get("lessons", [])}
    for record in every:
        yield from TELLERS.get(record.kind, lambda _data, _outcomes: iter(()))(
            record.data, outcomes
        )
    if not ends:
        yield "this run has no end: it was cut short, or it is still going on"


def _run(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    task = data.get("task", {})
    yield f"run {data.get('id')} · {data.get('time')} · reflexfix {data.get('version')}"
    yield f"{task.get('name')} in {task.get('path')} (task {task.get('id')})"
    yield f"model: {data.get('model')} · sandbox: {data.get('sandbox')}"


def _suite(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    for name in data.get("user", []):
        yield f"tests of yours: {name}"
    for case in data.get("cases", []):
        yield f"{case['name']}: {_one_line(case['shown'])} [{case['mode']}]"
    for one in data.get("dropped", []):
        yield f"dropped: {_one_line(one['shown'])} ({one['reason']})"


def _attempt(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    verdict = data["verdict"]
    passed, total = verdict["passed"], verdict["total"]
    yield ""
    yield (
        f"trial {data['number']}: {verdict['label']}, trusted {passed['trusted']} of "
        f"{total['trusted']}, own {passed['own']} of {total['own']}, control: {verdict['control']}"
    )
    if data.get("note"):
        yield f"  {data['note']}"
    yield from (f"    {line}" for line in data.get("code", "").splitlines())
    if verdict["problem"]:
        yield f"  {verdict['problem']}"
    for result in verdict["results"]:
        shown = f"{_one_line(result['shown'])} [{result['mode']}]"
        yield f"  {result['status']:9} {shown}{_why(result)}"


def _why(result: Mapping[str, Any]) -> str:
    if result["status"] == "passed":
        return ""
    unstable = " (unstable)" if result.get("unstable") else ""
    if result.get("actual") is not None:
        return f" got {result['actual']}{unstable}"
    return f" {_one_line(result.get('message', ''))}{unstable}"


def _lesson(data: Mapping[str, Any], outcomes: Mapping[str, Any]) -> Iterator[str]:
    last = outcomes.get(data["id"], data)
    closed = f"; {last['closed']}" if last.get("closed") else ""
    yield f"lesson {data['id']} ({last['outcome']}{closed}): {data['text']}"


def _aside(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    yield f"put aside: {_one_line(data['shown'])} ({data['why']})"


def _gate(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    noticed = "the last was noticed" if data["noticed"] else "none was noticed"
    yield f"mutants: {data['tried']} tried, {noticed}"


def _stopped(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    yield f"stopped: {data['why']}"


def _end(data: Mapping[str, Any], _outcomes: Mapping[str, Any]) -> Iterator[str]:
    tokens = data.get("tokens", {})
    yield ""
    yield (
        f"{data['label']}: trial {data.get('best')} is the answer · {data.get('trials')} trials, "
        f"{tokens.get('in')} tokens in and {tokens.get('out')} out, {data.get('seconds')} s"
    )


TELLERS = {
    "run": _run,
    "suite": _suite,
    "attempt": _attempt,
    "lesson": _lesson,
    "aside": _aside,
    "gate": _gate,
    "stopped": _stopped,
    "end": _end,
}


def _one_line(text: str) -> str:
    short = " ".join(str(text).split())
    return short if len(short) <= 140 else short[:137] + "..."
