"""A user's own test file: what has to be beside it, and how it is run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from reflexfix.attempt import Case, UserTests
from reflexfix.errors import UsageProblem
from reflexfix.python import selftests, syntax
from reflexfix.python.control import control_case
from reflexfix.python.layout import reindented
from reflexfix.python.selftests import Context, Unit
from reflexfix.python.surroundings import Surroundings, contents, is_file, look_around, parsed
from reflexfix.python.target import Function
from reflexfix.python.worth import depends_on_target
from reflexfix.source import MAX_BYTES, read_python
from reflexfix.task import read_file


def take(path: Path, around: Surroundings, context: Context) -> UserTests:
    """Take a test file along with its conftest files and the modules that it reaches.

    Raises UsageProblem for a file that is missing, unreadable or not Python.
    """
    data, tree = read_tests(path)
    path = path.resolve()
    reached = look_around(path, tree)
    base = Path(os.path.commonpath([path.parent, around.root, reached.root]))
    confs = dict(conftests(path, base))
    every = [reached, *(look_around(conf, found) for conf, found in trees(confs))]
    files = {
        _below(base, one.root / name): found for one in every for name, found in one.files.items()
    }
    files |= {_below(base, conf): found for conf, found in confs.items()}
    files[_below(base, path)] = data
    roots = [around.root, *(one.root for one in every), path.parent, base]
    packages = {package for one in every for package in one.packages}
    return UserTests(
        files=files,
        paths=(_below(base, path),),
        prefix=_below(base, around.root),
        roots=tuple(dict.fromkeys(_below(base, root) for root in roots)),
        script=not is_pytest_file(tree),
        control=control_file(tree, context),
        packages=tuple(sorted(packages - around_names(around))),
    )


def read_tests(path: Path) -> tuple[bytes, ast.Module]:
    """Read a test file. Raises UsageProblem."""
    if not is_file(path):
        raise UsageProblem(f"The tests file {path} does not exist.")
    data = read_file(path, MAX_BYTES)
    text = read_python(data, str(path)).text
    tree = syntax.module(text)
    if tree is None:
        raise UsageProblem(f"The tests file {path} is not Python: {syntax.error_in(text)}.")
    return data, tree


def trees(confs: dict[Path, bytes]) -> Iterator[tuple[Path, ast.Module]]:
    """Parse the conftest files; what is no Python is left for pytest to say."""
    for conf, data in confs.items():
        tree = parsed(data, str(conf))
        if tree is not None:
            yield conf, tree


def around_names(around: Surroundings) -> set[str]:
    """Top-level modules that lie beside the user's file."""
    return {around.module.split(".")[0], *(name.split("/")[0] for name in around.files), "pytest"}


def _below(base: Path, path: Path) -> str:
    relative = path.relative_to(base).as_posix()
    return "" if relative == "." else relative


def conftests(path: Path, base: Path) -> Iterator[tuple[Path, bytes]]:
    """List the conftest files that pytest would load for a test file, with what is in them."""
    for folder in path.parents:
        data = contents(folder / "conftest.py") if is_file(folder / "conftest.py") else None
        if data is not None:
            yield folder / "conftest.py", data
        if folder == base:
            return


def is_pytest_file(tree: ast.Module) -> bool:
    """Whether there is anything for pytest to collect; else the file is run as a script."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    inner = (node for body in bodies for node in body)
    return any(isinstance(node, Function) and node.name.startswith("test") for node in inner)


def control_file(tree: ast.Module, context: Context) -> str:
    """Write a test file with one test that must fail, made of a call in the user's tests."""
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    if any(isinstance(n, ast.ImportFrom) and n.level for n in imports):
        return ""
    body = [n for n in tree.body if n not in imports and syntax.is_shallow(n)]
    found = [u for u in selftests.units(body, []) if isinstance(u, Unit) and not u.fixtures]
    usable = [u for u in found if not u.entry and _stands_alone(u, imports, context)]
    some = [Case("user", unit.source, "", "user", "in-process") for unit in usable]
    control, _ = control_case(some, context)
    if control is None:
        return ""
    lines = [*(ast.unparse(n) for n in imports), "", "", "def test_control():"]
    return "\n".join([*lines, reindented(control.source, "    ", "    "), ""])


def _stands_alone(unit: Unit, imports: Sequence[ast.stmt], context: Context) -> bool:
    """Whether a test can be run without what only its runner gives it."""
    nodes = [*imports, *unit.setup, unit.body]
    return depends_on_target(unit, context) and not selftests.unknown_names(nodes, context)
