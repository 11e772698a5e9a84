"""How a project's tests are run: found out, or read from a command that no shell ever sees."""

from __future__ import annotations

import ast
import shlex
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from reflexfix.errors import UsageProblem
from reflexfix.hook.tree import Tree

Kind = Literal["pytest", "unittest", "script"]
KNOWN = "pytest ..., python -m pytest ..., python -m unittest ..., python FILE.py"


@dataclass(frozen=True)
class Plan:
    """How a project's tests are run."""

    kind: Kind
    arguments: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """Folders on the import path, beside the project's own."""
    tests: tuple[str, ...] = ()
    """Files that hold tests: they are never edited, and never suspected."""

    def only(self, files: Iterable[str]) -> Plan:
        """Collect no more than these files, where the runner takes files."""
        if self.kind != "pytest":
            return self
        kept = tuple(
            a for a in self.arguments if a.partition("::")[0].rstrip("/") not in self.named
        )
        return replace(self, arguments=(*kept, *dict.fromkeys(files)))

    named: frozenset[str] = frozenset()
    """Arguments that name files or folders of the project."""

    def __str__(self) -> str:
        return " ".join([self.kind, *self.arguments])


def plan(tree: Tree, command: str = "", paths: Iterable[str] = ()) -> Plan:
    """Find out how a project's tests are run. Raises UsageProblem for a command unknown here."""
    named = tuple(paths)
    roots = tuple(root for root in ("src",) if tree.has_folder(root))
    tests = tuple(path for path in tree.files if is_test(path))
    kind, arguments = read_command(command) if command else ("pytest", named)
    inside = frozenset(a.rstrip("/") for a in arguments if is_inside(tree, a))
    if kind == "script":
        tests = (*tests, *arguments)
        missing = [path for path in arguments if tree.read(path) is None]
        if missing:
            raise UsageProblem(f"{missing[0]} is no file of the project.")
    given = [a.partition("::")[0] for a in arguments if a.partition("::")[0] in tree.files]
    return Plan(kind, arguments, roots, tuple(dict.fromkeys([*tests, *given])), inside)


def is_inside(tree: Tree, argument: str) -> bool:
    path = argument.partition("::")[0].rstrip("/")
    return path in tree.files or tree.has_folder(path) or path == "."


def read_command(command: str) -> tuple[Kind, tuple[str, ...]]:
    """Understand a command that runs tests; none is ever handed to a shell."""
    words = shlex.split(command)
    while words and "=" in words[0] and not words[0].startswith("-"):
        raise UsageProblem(f"The tests command sets {words[0]}; set it in a conftest.py instead.")
    program = PurePosixPath(words[0]).name if words else ""
    if program in ("pytest", "py.test"):
        return "pytest", tuple(words[1:])
    if program.startswith("python") and words[1:3] == ["-m", "pytest"]:
        return "pytest", tuple(words[3:])
    if program.startswith("python") and words[1:3] == ["-m", "unittest"]:
        return "unittest", tuple(words[3:])
    if program.startswith("python") and len(words) == 2 and words[1].endswith(".py"):
        return "script", (words[1].removeprefix("./"),)
    raise UsageProblem(f"The tests command {command!r} is not known here.", hint=f"known: {KNOWN}")


def is_test(path: str) -> bool:
    """Whether a file is of the tests: such a file is never edited."""
    parts = PurePosixPath(path)
    name = parts.name
    if name == "conftest.py" or (name.startswith("test_") and name.endswith(".py")):
        return True
    in_folder = any(part in ("tests", "test") for part in parts.parts[:-1])
    return name.endswith("_test.py") or name == "tests.py" or (in_folder and name.endswith(".py"))


def has_tests(tree: Tree, how: Plan) -> bool:
    """Whether there is anything to run at all."""
    if how.arguments:
        return True
    return any(is_test(path) and path.endswith(".py") for path in tree.files)


def of_paths(tree: Tree, paths: Iterable[str]) -> tuple[Plan, tuple[str, ...]]:
    """Tell tests to be run from files to be mended among paths that a user names."""
    named = list(paths)
    tests = [path for path in named if tree.has_folder(path) or holds_tests(tree, path)]
    scripts = [path for path in named if path not in tests and is_test(path)]
    code = tuple(path for path in named if path not in tests and path not in scripts)
    if scripts:
        how = plan(tree)
        every = tuple(dict.fromkeys([*how.tests, *scripts]))
        return replace(how, kind="script", arguments=tuple(scripts), tests=every), code
    return plan(tree, paths=tests), code


def holds_tests(tree: Tree, path: str) -> bool:
    """Whether pytest would find a test in a file."""
    if not is_test(path):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = ast.walk(ast.parse(tree.text(path)))
    except (SyntaxError, ValueError):
        return True
    functions = (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(node.name.startswith("test") for node in functions)
