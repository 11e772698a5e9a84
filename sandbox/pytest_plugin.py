"""Run a user's own pytest files in one process and report each test as it begins and ends."""

from __future__ import annotations

import os
import pathlib
import runpy
import socket
import sys
from typing import Any

from sandbox import process, tracebacks, wire
from sandbox.modules import FOLDER


class Reporter:
    """A pytest plugin that says on a pipe what pytest says to its terminal."""

    def __init__(self, verdict: socket.socket, done: set[str]) -> None:
        self.verdict = verdict
        self.done = done

    def say(self, **what: Any) -> None:
        wire.send(self.verdict, what)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.done]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.say(collect=report.nodeid, message=last_lines(report.longreprtext))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say(begin=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.say(report=report.nodeid, status="skipped", message="", frames=[])
        elif report.when == "call" or report.failed:
            self.say(report=report.nodeid, **outcome(report))


def outcome(report: Any) -> dict[str, Any]:
    """Translate pytest's report of one phase of one test."""
    if report.passed or hasattr(report, "wasxfail"):
        return {"status": "passed", "message": "", "frames": []}
    crash = getattr(report.longrepr, "reprcrash", None)
    message = crash.message if crash is not None else last_lines(report.longreprtext)
    asserted = message.startswith(("AssertionError", "assert ", "Failed: "))
    status = "failed" if asserted and report.when == "call" else "error"
    return {"status": status, "message": tracebacks.short(message), "frames": frames(report)}


def frames(report: Any) -> list[str]:
    """List where the failure went through the user's files."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    places = [getattr(entry, "reprfileloc", None) for entry in entries]
    return [f"{p.path}:{p.lineno}: {p.message}" for p in places if p is not None][-3:]


def last_lines(text: str) -> str:
    return tracebacks.short("\n".join(text.strip().splitlines()[-12:]))


def write_files(files: dict[str, bytes]) -> None:
    """Put the project's files where pytest looks for them."""
    for name, data in files.items():
        path = pathlib.Path(FOLDER, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def run(
    job: dict[str, Any],
    done: set[str],
    verdict: socket.socket,
    output: int,
) -> None:
    """Be the process that runs pytest, or a plain script of asserts."""
    process.take_descriptors({verdict.fileno()}, output)
    process.ordinary_signals()
    process.be_killed_first()
    os.chdir(FOLDER)
    sys.path[:0] = [FOLDER, *(f"{FOLDER}/{folder}" for folder in job["roots"])]
    for name in [n for n in sys.modules if n.split(".")[0] == "sandbox"]:
        del sys.modules[name]  # the user may have a module of that name
    reporter = Reporter(verdict, done)
    if job["script"]:
        run_script(job["paths"][0], reporter)
    else:
        run_pytest(job["paths"], reporter)
    sys.stdout.flush()
    reporter.say(end=True)
    os._exit(0)


def run_script(path: str, reporter: Reporter) -> None:
    """Run a file of plain asserts as a user runs it; it is one test."""
    reporter.say(begin=path)
    try:
        runpy.run_path(f"{FOLDER}/{path}", run_name="__main__")
    except BaseException as error:  # the script's own end is its verdict
        if not (isinstance(error, SystemExit) and not error.code):
            status = "failed" if isinstance(error, AssertionError) else "error"
            reporter.say(report=path, status=status, **tracebacks.problem(error))
            return
    reporter.say(report=path, status="passed", message="", frames=[])


def run_pytest(paths: list[str], reporter: Reporter) -> None:
    """Run pytest on these files, without what the user's configuration would add."""
    import pytest  # takes a while, and only this job needs it

    options = ["-q", "--no-header", "-p", "no:cacheprovider", "--rootdir", FOLDER, "-c", os.devnull]
    pytest.main([*options, *paths], plugins=[reporter])
