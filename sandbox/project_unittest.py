"""Run a project's tests with unittest, and tell what each does."""

from __future__ import annotations

import importlib
import traceback
import unittest
from typing import Any, cast

from sandbox import tracebacks
from sandbox.teller import Teller


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


def run(order: dict[str, Any], teller: Teller) -> None:
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
