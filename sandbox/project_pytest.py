"""Run a project's tests with pytest, as its own configuration says, and tell what each does."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from sandbox import pytest_plugin
from sandbox.pytest_plugin import FOLDER
from sandbox.teller import Teller


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


def load() -> None:
    """Load pytest, which takes a while, before there is anything of the project to be loaded."""
    importlib.import_module("pytest")
    importlib.import_module("_pytest.assertion.rewrite")


def run(order: dict[str, Any], teller: Teller) -> None:
    """Run pytest with the project's own configuration, but to the end and in one process."""
    import pytest  # takes a while, and only this job needs it

    options = ["-q", "--no-header", "--no-summary", "--tb=short", "--maxfail=0"]
    options += ["--rootdir", FOLDER, "-p", "no:randomly"]
    options += ["-n0"] if importlib.util.find_spec("xdist") else []
    options += ["--no-cov"] if importlib.util.find_spec("pytest_cov") else []
    code = pytest.ExitCode(pytest.main([*order["arguments"], *options], plugins=[Reporter(teller)]))
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        teller.say(trouble=f"pytest ended with {code.name.lower().replace('_', ' ')}")
