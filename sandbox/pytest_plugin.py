"""Run a user's own pytest files in one process and report each test as it begins and ends."""

from __future__ import annotations

import os
import pathlib
import runpy
import socket
import sys
from types import ModuleType
from typing import Any, NoReturn

from sandbox import process, tracebacks, wire

FOLDER = "/tmp/work"
"""Where the project's files are put: pytest wants them on disk."""


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
        if report.skipped:
            self.say(report=report.nodeid, **of_skipped(report))
        elif report.when == "call" or report.failed:
            self.say(report=report.nodeid, **outcome(report))


def of_skipped(report: Any) -> dict[str, Any]:
    """A test that was skipped, or failed as it was expected to, says nothing of the candidate.

    Unless the candidate itself raised what skips: then it has kept the test from its verdict.
    """
    if is_marked_xfail(report) or is_the_tests_own(report):
        return {"status": "skipped", "message": "", "frames": []}
    message = f"skipped from {place(report)}, not by the test"
    return {"status": "no-verdict", "message": message, "frames": []}


def is_marked_xfail(report: Any) -> bool:
    reason = getattr(report, "wasxfail", None)
    return reason is not None and not reason.startswith("reason: ")  # that is pytest.xfail()


def place(report: Any) -> str:
    """Say in which file a test was skipped."""
    if isinstance(report.longrepr, tuple):
        return str(pathlib.Path(FOLDER, report.longrepr[0]))
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(pathlib.Path(FOLDER, crash.path)) if crash is not None else "?"


def is_the_tests_own(report: Any) -> bool:
    """Whether the test, its conftest.py or a plugin's fixture has skipped it."""
    where = place(report)
    if report.when != "call" and not where.startswith(FOLDER):
        return True
    own = pathlib.Path(FOLDER, report.nodeid.partition("::")[0])
    return where == str(own) or where.endswith("/conftest.py")


def outcome(report: Any) -> dict[str, Any]:
    """Translate pytest's report of one phase of one test."""
    if report.passed:
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
) -> NoReturn:
    """Be the process that runs pytest, or a plain script of asserts."""
    try:
        process.take_descriptors({verdict.fileno()}, output)
        process.offer_to_the_kernel(1000)
        report(job, Reporter(verdict, done))
        os._exit(0)
    finally:
        os._exit(process.LOST)


def report(job: dict[str, Any], reporter: Reporter) -> None:
    """Run what is to be run, where and as the user would."""
    os.chdir(FOLDER)
    sys.modules["__main__"] = ModuleType("__main__")  # it was the supervisor
    sys.path[:0] = [FOLDER, *(f"{FOLDER}/{folder}" for folder in job["roots"])]
    for name in [n for n in sys.modules if n.split(".")[0] == "sandbox"]:
        del sys.modules[name]  # the user may have a module of that name
    if job["script"]:
        run_script(job["paths"][0], reporter)
    else:
        run_pytest(job["paths"], reporter)
    sys.stdout.flush()
    reporter.say(end=True)


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
