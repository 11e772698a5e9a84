"""What a run leaves behind: one JSON Lines file that a crash can cut, but not spoil."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import platformdirs

from reflexfix import __version__
from reflexfix.agreement import Aside
from reflexfix.attempt import Attempt
from reflexfix.errors import UsageProblem
from reflexfix.memory import Lesson
from reflexfix.model import Answer, Request
from reflexfix.suite import SuiteReport

FOLDER = ".reflexfix"
KEPT_RUNS = 50
FILE = "run.jsonl"


def home_of(path: Path) -> Path:
    """Give the `.reflexfix` folder for a file: beside the nearest .git or pyproject.toml above it.

    Where that cannot be written, it is in the user's state folder.
    """
    start = path.resolve().parent
    marked = (f for f in [start, *start.parents] if any((f / m).exists() for m in _MARKS))
    folder = next(marked, start) / FOLDER
    if _can_write(folder):
        return folder
    return Path(platformdirs.user_state_dir("reflexfix"))


_MARKS = (".git", "pyproject.toml")


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
    except OSError:
        return False
    return os.access(folder, os.W_OK)


class RunLog:
    """Writes the records of one run, each on its line, each on the disk before the next."""

    def __init__(self, home: Path) -> None:
        self.id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self.folder = home / "runs" / self.id
        self.lock = threading.Lock()
        self.started = time.monotonic()
        try:
            self.folder.mkdir(parents=True)
            self.file = (self.folder / FILE).open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageProblem(f"{self.folder} cannot be written: {error.strerror}.") from None
        forget_old(home)

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, kind: str, **record: Any) -> None:
        """Append one record. Raises UsageProblem when the disk is full."""
        seconds = round(time.monotonic() - self.started, 3)
        line = json.dumps({"kind": kind, "at": seconds, **record}, default=plain)
        with self.lock:
            try:
                self.file.write(line + "\n")
                self.file.flush()
                os.fsync(self.file.fileno())
            except OSError as error:
                raise UsageProblem(f"{self.folder} cannot be written: {error.strerror}.") from None

    def begin(self, **parameters: Any) -> None:
        self.write(
            "run",
            id=self.id,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            version=__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            **parameters,
        )

    def answer(self, request: Request, answer: Answer) -> None:
        self.write("answer", request=asdict(request), answer=asdict(answer))

    def suite(self, report: SuiteReport) -> None:
        self.write(
            "suite",
            cases=[asdict(case) for case in report.suite.cases],
            user=list(report.suite.user.paths) if report.suite.user else [],
            control=report.suite.control and asdict(report.suite.control),
            written=report.written,
            dropped=[asdict(one) for one in report.dropped],
        )

    def attempt(self, attempt: Attempt) -> None:
        self.write("attempt", **attempt_record(attempt))

    def lesson(self, lesson: Lesson) -> None:
        self.write("lesson", **asdict(lesson))

    def aside(self, aside: Aside) -> None:
        self.write("aside", case=aside.case.name, shown=aside.case.shown, why=aside.why)


def plain(value: Any) -> Any:
    """Give the JSON form of what JSON does not know."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


def attempt_record(attempt: Attempt) -> dict[str, Any]:
    """Give an attempt as the artefact and `--json` show it."""
    verdict = attempt.verdict
    return {
        "number": attempt.number,
        "code": attempt.code,
        "file": attempt.file.decode("utf-8", "surrogateescape"),
        "answer": attempt.answer,
        "note": attempt.note,
        "lessons": list(attempt.lessons),
        "fresh": attempt.fresh,
        "seconds": round(attempt.seconds, 3),
        "verdict": {
            "label": verdict.label(),
            "solved": verdict.solved,
            "problem": verdict.problem,
            "control": verdict.control,
            "seconds": round(verdict.seconds, 3),
            "passed": {
                "trusted": verdict.passed(trusted=True),
                "own": verdict.passed(trusted=False),
            },
            "total": {"trusted": verdict.total(trusted=True), "own": verdict.total(trusted=False)},
            "results": [
                {"origin": j.case.origin, "shown": j.case.shown, **asdict(j.result)}
                for j in verdict.judged
            ],
        },
    }


def masked(url: str) -> str:
    """Give an address without the credentials that may stand in it."""
    parts = urlsplit(url)
    if not parts.username and not parts.password:
        return url
    host = parts.hostname or ""
    return urlunsplit(parts._replace(netloc=f"***@{host}{f':{parts.port}' if parts.port else ''}"))


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Record:
    """One line of an artefact."""

    kind: str
    data: Mapping[str, Any]


def read(path: Path) -> Iterator[Record]:
    """Read an artefact; a last line that a crash cut short is passed over.

    Raises UsageProblem when there is none.
    """
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None
    for line in lines:
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict):
            yield Record(str(data.get("kind")), data)


def runs(home: Path) -> list[Path]:
    """List the runs of a folder, the oldest first."""
    return sorted(path.parent for path in (home / "runs").glob(f"*/{FILE}"))


def find(home: Path, wanted: str | None) -> Path:
    """Find a run by its id or the beginning of it; the newest without one. Raises UsageProblem."""
    every = runs(home)
    if not every:
        raise UsageProblem(f"There is no run in {home}.")
    if wanted is None:
        return every[-1]
    matches = [run for run in every if run.name.startswith(wanted)]
    if len(matches) != 1:
        recent = ", ".join(run.name for run in every[-5:])
        what = "no run" if not matches else f"{len(matches)} runs"
        raise UsageProblem(f"There is {what} {wanted} in {home}.", hint=f"the newest are {recent}")
    return matches[0]


def forget_old(home: Path) -> None:
    """Keep the newest runs, and remove the others."""
    for run in runs(home)[:-KEPT_RUNS]:
        shutil.rmtree(run, ignore_errors=True)
