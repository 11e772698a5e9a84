"""A batch's folder: one process at a time, a line a result, resumed by the tasks' ids."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reflexfix.batch.result import Result, read_result
from reflexfix.errors import UsageProblem

RESULTS, PARAMETERS, LOCK, ANSWERS = "results.jsonl", "parameters.json", "lock", "answers"


class Store:
    """The results of a batch on disk; each is there, whole, before the next task is begun."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()

    @property
    def answers(self) -> Path:
        return self.folder / ANSWERS

    def begin(self, parameters: Mapping[str, Any]) -> None:
        """Keep what the batch is about, or hold that it is still about the same.

        Raises UsageProblem that names what differs.
        """
        path = self.folder / PARAMETERS
        now = json.loads(json.dumps(parameters))
        if not path.exists():
            write_whole(path, json.dumps(now, indent=2) + "\n")
            return
        before = read_json(path)
        differs = [
            f"{name}: {brief(before.get(name))} then, {brief(now.get(name))} now"
            for name in sorted({*before, *now})
            if before.get(name) != now.get(name)
        ]
        if differs:
            raise UsageProblem(
                f"{self.folder} holds a batch with other parameters: {'; '.join(differs)}.",
                hint="take a new --out, or the same parameters",
            )

    def results(self) -> Iterator[Result]:
        """Read what is kept, the last word on each task and arm; a line cut short is no result."""
        yield from read_results(self.folder)

    def finished(self) -> dict[tuple[str, str], Result]:
        """Give what need not be run again, without its attempts: troubled tasks are not in it."""
        return {(r.id, r.arm): slim(r) for r in self.results() if not r.trouble}

    def add(self, result: Result) -> None:
        """Append a result. Raises UsageProblem when the disk is full."""
        line = json.dumps(result.record(), default=str)
        with self.lock:
            append_line(self.folder / RESULTS, line)


def slim(result: Result) -> Result:
    """Keep of a finished result what later arms need: its tokens."""
    return Result(result.id, result.arm, result.language, tokens=result.tokens)


def read_results(folder: Path) -> Iterator[Result]:
    """Read the results of a folder: of each task and arm the first without trouble, or the last."""
    path = folder / RESULTS
    if not path.exists():
        return
    chosen: dict[tuple[str, str], int] = {}
    settled: set[tuple[str, str]] = set()
    for number, data in enumerate(_lines(path)):
        key = (data["id"], data["arm"])
        if key not in settled:
            chosen[key] = number
        if not data["trouble"]:
            settled.add(key)
    for number, data in enumerate(_lines(path)):
        if chosen[data["id"], data["arm"]] == number:
            yield read_result(data)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                data = json.loads(line)
            except ValueError:
                continue
            if isinstance(data, dict) and {"id", "arm", "trouble"} <= data.keys():
                yield data


def append_line(path: Path, line: str) -> None:
    """Append a whole line, on the disk when this returns; one cut short before is closed first."""
    try:
        with path.open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line.encode("ascii") + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}.") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file that is whole or not there. Raises UsageProblem."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, "utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}.") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read an object. Raises UsageProblem."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}") from None


def brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """Open a batch's folder for this process alone. Raises UsageProblem."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a")
    except OSError as error:
        raise UsageProblem(f"{folder} cannot be written: {error.strerror}.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageProblem(
                f"Another process works on {folder}.", hint="wait for it, or take another --out"
            ) from None
        yield Store(folder)
