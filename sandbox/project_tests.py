"""Be the process that runs a project's tests: with pytest, with unittest, or as scripts."""

from __future__ import annotations

import contextlib
import os
import runpy
import socket
import sys
import traceback
from types import ModuleType
from typing import Any, NoReturn

from sandbox import process, project_pytest, project_unittest, tracebacks
from sandbox.pytest_plugin import FOLDER
from sandbox.teller import Teller


def run(order: dict[str, Any], done: set[str], verdict: socket.socket, output: int) -> NoReturn:
    """Run what the order names, and end."""
    try:
        process.take_descriptors({verdict.fileno()}, output)
        process.offer_to_the_kernel(1000)
        if order["runner"] == "pytest":
            project_pytest.load()
        verdict.recv(2)  # the files are there
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
    run_with(order, teller)
    sys.stdout.flush()
    teller.say(end=True)


def run_with(order: dict[str, Any], teller: Teller) -> None:
    """Run the tests with the runner that the order names; the others are not even imported."""
    if order["runner"] == "pytest":
        project_pytest.run(order, teller)
    elif order["runner"] == "unittest":
        project_unittest.run(order, teller)
    else:
        run_scripts(order, teller)


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
