"""Run a project's own tests as the project does, and say what each did and which code it ran."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import time
import zlib
from typing import Any

from sandbox import process, project_tests, results, userrun
from sandbox.job import Host, Inbox, Job
from sandbox.pytest_plugin import FOLDER
from sandbox.results import BLANK

MOST = 50_000
"""How many tests one run may have."""
MOST_FUNCTIONS = 5_000
"""How many functions are told of in all."""


def run_project(host: Host, order: dict[str, Any]) -> None:
    """Run the tests until each has a result or time is up, and say what came of them."""
    pack = order.pop("pack")
    job = Job(host, {**order, "files": {}})
    record = Record()
    more = project_round(job, record, pack)
    while more:
        more = project_round(job, record)
    job.end_all_but(set())
    host.say(say="ran", nonce=order["nonce"], **record.told())


def lay_out(tree: list[list[Any]], data: bytes) -> None:
    """Put the project's files in their places, each with its mode; links as links."""
    start = 0
    for name, mode, size in tree:
        path, content = os.path.join(FOLDER, name), data[start : start + size]
        start += size
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode == "120000":
            os.symlink(content, os.fsencode(path))
            continue
        with open(path, "wb") as file:
            file.write(content)
        if mode == "100755":
            os.chmod(path, 0o755)


class Record:
    """What all rounds have told so far."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.ran: dict[str, set[str]] = {}
        self.evidence: dict[str, list[str]] = {}
        self.missing: dict[str, str] = {}
        self.trouble = ""

    def told(self) -> dict[str, Any]:
        """Give what the outside wants to know: passed tests by name only."""
        passed = [n for n, r in self.found.items() if r["status"] == "passed"]
        others = [r for r in self.found.values() if r["status"] != "passed"]
        return {
            "passed": passed,
            "results": results.within_budget(others),
            "functions": self.functions([result["name"] for result in others], set(passed)),
            "evidence": self.evidence,
            "missing": self.missing,
            "trouble": self.trouble,
        }

    def functions(self, failing: list[str], passed: set[str]) -> list[list[Any]]:
        """Give for each function which of the failing tests ran it, and how many passing ones."""
        places = {name: n for n, name in enumerate(failing)}
        ran_by: dict[str, list[int]] = {}
        good: dict[str, int] = {}
        for test, functions in self.ran.items():
            for function in functions:
                good[function] = good.get(function, 0) + (test in passed)
                if test in places:
                    ran_by.setdefault(function, []).append(places[test])
        told: list[list[Any]] = [[name, tests, good[name]] for name, tests in ran_by.items()]
        return sorted(told, key=lambda one: -len(one[1]))[:MOST_FUNCTIONS]


def project_round(job: Job, record: Record, pack: str = "") -> bool:
    """Run tests until they end or one must be ended; True when there may be more to run.

    The first time, the files are put in their places while the process loads its runner.
    """
    ours, theirs = socket.socketpair()
    kills = process.out_of_memory_kills()
    before = len(record.found)
    job.output.start()
    pid = job.fork()
    if pid == 0:
        project_tests.run(job.order, set(record.found), theirs, job.output.write_end)
    theirs.close()
    if pack:
        lay_out(job.order["tree"], zlib.decompress(base64.b64decode(pack)))
    with contextlib.suppress(OSError):  # it may have ended already; the story will tell
        ours.sendall(b"go")
    story = ProjectStory(job, Inbox(ours.fileno()), pid, record)
    ended = story.follow()
    job.end_all_but(set())
    ours.close()
    if not ended and process.out_of_memory_kills() > max(kills, 0):
        story.blame("memory", "killed by the kernel: out of memory")
    more = not ended and not job.is_over and before < len(record.found) <= MOST
    if not ended and not more:
        record.trouble = record.trouble or job.which_limit()
    return more


class ProjectStory(userrun.Story):
    """What one process tells, with the functions that its tests ran."""

    most = MOST

    def __init__(self, job: Job, inbox: Inbox, pid: int, record: Record) -> None:
        super().__init__(job, inbox, pid, record.found)
        self.record = record
        self.names: list[str] = []
        self.hung = set(job.order["hung"])

    def until(self) -> float:
        """Give each test its time from its beginning, and no more to those known to hang."""
        if not self.current:
            return float(self.job.ends_at)
        limit = self.job.limits["hung_seconds" if self.current in self.hung else "test_seconds"]
        return float(self.began) + float(limit)

    def _take(self, frame: dict[str, Any]) -> None:
        if "names" in frame and isinstance(frame["names"], list):
            self.names += [results.text(name, 500) for name in frame["names"][:1000]]
        elif "ran" in frame:
            name = results.text(frame["ran"], 500)
            self.record.ran.setdefault(name, set()).update(self._named(frame.get("functions")))
        elif "evidence" in frame:
            name = results.text(frame["evidence"], 500)
            self.record.evidence[name] = list(self._named(frame.get("functions")))
        elif "missing" in frame:
            name = results.text(frame["missing"], 500)
            self.record.missing[name] = results.text(frame.get("module"), 200)
        elif "trouble" in frame:
            self.record.trouble = results.text(frame["trouble"]) + "\n" + self.job.output.text()
        else:
            super()._take(frame)

    def _named(self, numbers: Any) -> list[str]:
        """Translate the numbers under which functions were named; what is odd is passed over."""
        if not isinstance(numbers, list):
            return []
        known = (n for n in numbers[:MOST_FUNCTIONS] if isinstance(n, int))
        return [self.names[n] for n in known if 0 <= n < len(self.names)]

    def _keep(self, name: str, result: dict[str, Any]) -> None:
        seconds = round(time.monotonic() - self.began, 4)
        kept = {**BLANK, **result, "name": name, "mode": "in-process", "seconds": seconds}
        if result["status"] != "passed" and self.job.order["runner"] != "pytest":
            kept["printed"] = self.job.output.text()
        self.found[name] = kept
