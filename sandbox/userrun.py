"""Run a user's own test files; a test that hangs is ended, and the others go on without it."""

from __future__ import annotations

import socket
import time
from typing import Any

from sandbox import process, pytest_plugin, results, wire
from sandbox.job import Host, Inbox, Job, TooMuchOutput
from sandbox.results import BLANK

STATUSES = (*results.SAID, "skipped")


def run_pytest(host: Host, order: dict[str, Any]) -> None:
    """Run pytest until every test has a result or time is up, and say the verdict."""
    job = Job(host, order)
    found: dict[str, dict[str, Any]] = {}
    pytest_plugin.write_files(job.files)
    while pytest_round(job, found):
        pass
    job.end_all_but(set())
    told = {"import": None, "results": results.within_budget(list(found.values()))}
    host.say(say="verdict", nonce=order["nonce"], **told)


def pytest_round(job: Job, found: dict[str, dict[str, Any]]) -> bool:
    """Run pytest until it ends or a test must be ended; True when there may be more to run."""
    ours, theirs = socket.socketpair()
    kills = process.out_of_memory_kills()
    job.output.start()
    pid = job.fork()
    if pid == 0:
        pytest_plugin.run(job.order, set(found), theirs, job.output.write_end)
    theirs.close()
    story = Story(job, Inbox(ours.fileno()), pid, found)
    ended = story.follow()
    job.end_all_but(set())
    ours.close()
    if not ended and process.out_of_memory_kills() > max(kills, 0):
        story.blame("memory", "killed by the kernel: out of memory")
    return not ended and not job.is_over and len(found) <= results.MOST


class Story:
    """What one pytest process tells, and which test it was in when it fell silent."""

    most = results.MOST

    def __init__(self, job: Job, inbox: Inbox, pid: int, found: dict[str, dict[str, Any]]) -> None:
        self.job, self.inbox, self.pid, self.found = job, inbox, pid, found
        self.current = ""
        self.began = time.monotonic()
        self.frames: list[dict[str, Any]] = []

    def follow(self) -> bool:
        """Take in reports until pytest says that it is done; False when it was cut short."""
        while len(self.found) <= self.most:
            try:
                in_time = self.job.wait(self.inbox, self.until(), self._heard, self.pid)
            except TooMuchOutput:
                limit = self.job.limits["output_bytes"]
                self.blame("output", f"printed more than the limit of {limit} bytes")
                return False
            if not in_time:
                self.blame("timeout", self.job.which_limit())
                return False
            if not self.frames:
                self.blame("error", f"the process {self.job.how_ended(self.pid)} during the test")
                return self.current == ""
            frames, self.frames = self.frames, []
            for frame in frames:
                self._take(frame)
            if any("end" in frame for frame in frames):
                return True
        return False

    def until(self) -> float:
        """Say when what is going on has taken too long."""
        return self.job.until()

    def _heard(self) -> bool:
        try:
            self.frames += [f for f in self.inbox.frames() if isinstance(f, dict)]
        except wire.Malformed:
            self.inbox.closed = True
        return bool(self.frames)

    def _take(self, frame: dict[str, Any]) -> None:
        if "begin" in frame:
            self.current, self.began = results.text(frame["begin"], 500), time.monotonic()
        elif "report" in frame:
            self._report(results.text(frame["report"], 500), results.told(frame, STATUSES))
        elif "collect" in frame:
            error = results.told({**frame, "status": "error"})
            self._report(results.text(frame["collect"], 500), error)

    def _report(self, name: str, result: dict[str, Any]) -> None:
        if self.found.get(name, {}).get("status", "passed") in ("passed", "skipped"):
            self._keep(name, result)
        self.current = "" if self.current == name else self.current

    def blame(self, status: str, message: str) -> None:
        """Lay what ended the process to the test that was running."""
        self._keep(self.current or "pytest", {"status": status, "message": message})

    def _keep(self, name: str, result: dict[str, Any]) -> None:
        self.found[name] = {
            **BLANK,
            **result,
            "name": name,
            "mode": "in-process",
            "seconds": round(time.monotonic() - self.began, 4),
            "printed": self.job.output.text(),
        }
