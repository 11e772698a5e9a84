"""Be the process that runs a project's tests: with pytest, with unittest, or as scripts."""

from __future__ import annotations

import _thread
import contextlib
import importlib
import importlib.util
import os
import runpy
import socket
import sys
import time
import traceback
import unittest
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn, cast

from sandbox import process, pytest_plugin, trace, tracebacks, wire
from sandbox.pytest_plugin import FOLDER

MOST_NAMES = 500
"""How many names of functions one frame carries."""


def run(order: dict[str, Any], done: set[str], verdict: socket.socket, output: int) -> NoReturn:
    """Run what the order names, and end."""
    try:
        process.take_descriptors({verdict.fileno()}, output)
        process.offer_to_the_kernel(1000)
        report(order, Teller(verdict, order, done))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(process.LOST)


def report(order: dict[str, Any], teller: Teller) -> None:
    """Run the tests where and as the user would."""
    os.chdir(FOLDER)
    sys.modules["__main__"] = ModuleType("__main__")  # it was the supervisor
    roots = [os.path.join(FOLDER, folder) for folder in order["roots"]]
    sys.path[:0] = [FOLDER, *roots]
    os.environ["PYTHONPATH"] = os.pathsep.join(roots or [FOLDER])  # for what the tests start
    for name in [n for n in sys.modules if n.split(".")[0] == "sandbox"]:
        del sys.modules[name]  # the project may have a module of that name
    RUNNERS[order["runner"]](order, teller)
    sys.stdout.flush()
    teller.say(end=True)


class Teller:
    """Says on a pipe what tests do, and what they run."""

    def __init__(self, verdict: socket.socket, order: dict[str, Any], done: set[str]) -> None:
        self.verdict = verdict
        self.done = done
        self.first = list(order["first"])
        self.rest = bool(order["rest"])
        self.hung = set(order["hung"])
        self.limits = order["limits"]
        self.tracer = trace.Tracer(FOLDER) if order["trace"] else None
        self.numbers: dict[CodeType, int] = {}
        self.tests: set[str] = set(order["tests"])
        """Files that hold tests, not what is tested."""
        self.running = ""
        self.lock = _thread.allocate_lock()

    def say(self, **what: Any) -> None:
        with self.lock:
            wire.send(self.verdict, what)

    def wanted(self, name: str) -> bool:
        """Whether a test is to be run: one that was asked for, in a file that was, or any."""
        if name in self.done or name.partition("::")[0] in self.done:
            return False
        return self.rest or self.asked_for(name)

    def asked_for(self, name: str) -> bool:
        return name in self.first or name.partition("::")[0] in self.first

    def begin(self, name: str) -> None:
        """A test begins; those that failed before are watched closely."""
        self.say(begin=name)
        self.running = name
        if self.tracer is None:
            return
        self.tracer.begin(self.asked_for(name))
        if self.asked_for(name):
            limit = self.limits["hung_seconds" if name in self.hung else "test_seconds"]
            self.tracer.watching += 1
            watch = (_thread.get_ident(), time.monotonic() + limit, self.say_what_hangs)
            _thread.start_new_thread(self.tracer.watch, watch)

    def say_what_hangs(self) -> None:
        """Tell where a test is that is about to be ended."""
        assert self.tracer is not None
        self.say_functions(ran=self.running, functions=list(self.tracer.ran))
        self.say_functions(evidence=self.running, functions=self.tracer.hanging())

    def stop(self) -> None:
        """The test's own code has ended: what follows is not its doing."""
        if self.tracer is not None:
            self.tracer.watching += 1
            self.tracer.end()

    def failed(self, name: str, error: BaseException, at: TracebackType | None) -> None:
        """Tell what led to a failure, and what it lacked if that is a module."""
        for cause in trace.causes(error):
            if isinstance(cause, ModuleNotFoundError) and cause.name:
                self.say(missing=name, module=cause.name)
                break
        if self.tracer is None or name in self.hung:
            return
        passed = [c for c in trace.went_through(self.tracer, at) if not self.is_test(c)]
        for cause in trace.causes(error):
            passed = passed or self.outside_tests(cause.__traceback__)
        self.say_functions(evidence=name, functions=passed or self.tracer.flow(self.is_test))

    def outside_tests(self, at: TracebackType | None) -> list[CodeType]:
        assert self.tracer is not None
        return [c for c in trace.went_through(self.tracer, at) if not self.is_test(c)]

    def ended(self, name: str) -> None:
        """Tell which functions a test has run."""
        self.stop()
        if self.tracer is not None and self.tracer.ran:
            self.say_functions(ran=name, functions=list(self.tracer.ran))
            self.tracer.begin(False)
            self.tracer.end()

    def is_test(self, code: CodeType) -> bool:
        return os.path.relpath(code.co_filename, FOLDER) in self.tests

    def say_functions(self, functions: list[CodeType], **what: Any) -> None:
        """Send functions by number; the names of those that are new go first."""
        new = [code for code in dict.fromkeys(functions) if code not in self.numbers]
        for start in range(0, len(new), MOST_NAMES):
            some = new[start : start + MOST_NAMES]
            self.numbers |= {code: len(self.numbers) + n for n, code in enumerate(some)}
            self.say(names=[name_of(code) for code in some])
        self.say(functions=[self.numbers[code] for code in functions], **what)


def name_of(code: CodeType) -> str:
    """Name a function: file, first line, dotted name."""
    file = os.path.relpath(code.co_filename, FOLDER)
    return f"{file}:{code.co_firstlineno}:{code.co_qualname}"


# ---------------------------------------------------------------- pytest


class Reporter(pytest_plugin.Reporter):
    """A pytest plugin that tells what each test does."""

    def __init__(self, teller: Teller) -> None:
        super().__init__(teller.verdict, teller.done)
        self.teller = teller
        self.errors: dict[str, BaseException] = {}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Pass over a file that could not be collected before."""
        return True if os.path.relpath(collection_path, FOLDER) in self.done else None

    def pytest_collectstart(self, collector: Any) -> None:
        if collector.nodeid.endswith(".py"):
            self.say(begin=collector.nodeid)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Run what was asked for first, in a process as fresh as can be."""
        wanted = [item for item in items if self.teller.wanted(item.nodeid)]
        items[:] = sorted(wanted, key=lambda item: not self.teller.asked_for(item.nodeid))
        self.say(begin="")

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        if report.when == "collect":
            self.errors[report.nodeid] = call.excinfo.value

    def pytest_collectreport(self, report: Any) -> None:
        super().pytest_collectreport(report)
        error = self.errors.pop(report.nodeid, None)
        if report.failed and error is not None:
            self.teller.failed(report.nodeid, error, error.__traceback__)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.teller.begin(nodeid)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Look at a failure while the test's frames are still there."""
        if call.when == "call" or call.excinfo is not None:
            self.teller.stop()
        if call.excinfo is not None and not is_skip(call.excinfo.value):
            self.teller.failed(item.nodeid, call.excinfo.value, call.excinfo.tb)

    def pytest_assertrepr_compare(self, left: Any, right: Any) -> None:
        if self.teller.tracer is not None:
            self.teller.tracer.seen = [value_of(left), value_of(right)]

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.teller.ended(nodeid)


def is_skip(error: BaseException) -> bool:
    return type(error).__name__ in ("Skipped", "XFailed")


def value_of(side: Any) -> Any:
    """Give what `pytest.approx` stands for."""
    return (
        getattr(side, "expected", side) if type(side).__module__ == "_pytest.python_api" else side
    )


def run_pytest(order: dict[str, Any], teller: Teller) -> None:
    """Run pytest with the project's own configuration, but to the end and in one process."""
    import pytest  # takes a while, and only this job needs it

    options = ["-q", "--no-header", "--no-summary", "--tb=short", "--maxfail=0"]
    options += ["--rootdir", FOLDER, "-p", "no:randomly"]
    options += ["-n0"] if importlib.util.find_spec("xdist") else []
    options += ["--no-cov"] if importlib.util.find_spec("pytest_cov") else []
    code = pytest.ExitCode(pytest.main([*order["arguments"], *options], plugins=[Reporter(teller)]))
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        teller.say(trouble=f"pytest ended with {code.name.lower().replace('_', ' ')}")


# ---------------------------------------------------------------- unittest


class Result(unittest.TestResult):
    """Tells what each unittest test does."""

    def __init__(self, teller: Teller) -> None:
        super().__init__()
        self.teller = teller
        self.state = "passed"

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.state = "passed"
        self.teller.begin(test.id())

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.teller.ended(test.id())
        if self.state == "passed":
            self.teller.say(report=test.id(), status="passed", message="", frames=[])

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(test, err, "error")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(test, err, "failed")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            status = "failed" if issubclass(err[0], test.failureException) else "error"
            self._failed(test, err, status)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._other(test, "skipped", "")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._other(test, "skipped", "")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._other(test, "failed", "passed, though it was expected to fail")

    def _failed(self, test: unittest.TestCase, err: Any, status: str) -> None:
        self.teller.stop()
        self.state = status
        name = test.id() if isinstance(test, unittest.TestCase) else str(test)
        err = import_error(test) or err
        what = tracebacks.message_of(err[1])
        frames = [f"{f.filename}:{f.lineno} in {f.name}" for f in traceback.extract_tb(err[2])[-3:]]
        self.teller.failed(name, err[1], err[2])
        self.teller.say(report=name, status=status, message=what, frames=frames)

    def _other(self, test: unittest.TestCase, status: str, message: str) -> None:
        self.state = status
        self.teller.say(report=test.id(), status=status, message=message, frames=[])


def import_error(test: unittest.TestCase) -> Any:
    """Give what kept a test module from being imported; unittest keeps only its text."""
    if type(test).__name__ != "_FailedTest":
        return None
    try:
        importlib.import_module(test._testMethodName)
    except BaseException as error:  # whatever a module raises
        return type(error), error, error.__traceback__
    return None


def run_unittest(order: dict[str, Any], teller: Teller) -> None:
    """Run unittest as `python -m unittest` with these arguments would."""
    argv, runner = ["unittest", *order["arguments"]], cast(Any, Collected)
    program: Any = unittest.TestProgram(module=None, argv=argv, exit=False, testRunner=runner)
    every = list(flat(program.test))
    asked = [test for test in every if teller.asked_for(test.id())]
    others = [test for test in every if not teller.asked_for(test.id())]
    wanted = [test for test in [*asked, *others] if teller.wanted(test.id())]
    unittest.TestSuite(wanted).run(Result(teller))


class Collected:
    """Stands in for a runner, so that the program only collects."""

    def run(self, _test: unittest.TestSuite) -> unittest.TestResult:
        return unittest.TestResult()


def flat(suite: Any) -> Any:
    """List the tests of a suite, however nested."""
    if isinstance(suite, unittest.TestCase):
        yield suite
        return
    for inner in suite:
        yield from flat(inner)


# ---------------------------------------------------------------- scripts


def run_scripts(order: dict[str, Any], teller: Teller) -> None:
    """Run each file as a program of its own; it is one test."""
    for path in filter(teller.wanted, order["arguments"]):
        run_script(path, teller)


def run_script(path: str, teller: Teller) -> None:
    """Run a file of plain asserts as a user runs it."""
    teller.begin(path)
    sys.argv = [path]
    try:
        runpy.run_path(os.path.join(FOLDER, path), run_name="__main__")
    except BaseException as error:  # the script's own end is its verdict
        if not (isinstance(error, SystemExit) and not error.code):
            teller.stop()
            teller.failed(path, error, error.__traceback__)
            teller.ended(path)
            status = "failed" if isinstance(error, AssertionError) else "error"
            teller.say(report=path, status=status, **tracebacks.problem(error))
            return
    teller.ended(path)
    teller.say(report=path, status="passed", message="", frames=[])


RUNNERS = {"pytest": run_pytest, "unittest": run_unittest, "script": run_scripts}
