"""A user's own test file: what has to be beside it, and how it is run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from reflexfix.attempt import Case, UserTests
from reflexfix.errors import UsageProblem
from reflexfix.python import cases, selftests, syntax
from reflexfix.python.selftests import Context, Unit
from reflexfix.python.surroundings import Surroundings, look_around
from reflexfix.python.target import Function
from reflexfix.source import MAX_BYTES, read_python
from reflexfix.task import read_file


def take(path: Path, around: Surroundings, context: Context) -> UserTests:
    """Take a test file along with its conftest files and the modules that it reaches.

    Raises UsageProblem for a file that is missing, unreadable or not Python.
    """
    if not path.is_file():
        raise UsageProblem(f"The tests file {path} does not exist.")
    data = read_file(path, MAX_BYTES)
    text = read_python(data, str(path)).text
    tree = syntax.module(text)
    if tree is None:
        raise UsageProblem(f"The tests file {path} is not Python: {syntax.error_in(text)}.")
    path = path.resolve()
    base = Path(os.path.commonpath([path.parent, around.root]))
    reached = look_around(path, tree)
    files = {_below(base, reached.root / name): data for name, data in reached.files.items()}
    files |= {_below(base, conf): conf.read_bytes() for conf in conftests(path, base)}
    files[_below(base, path)] = data
    roots = [around.root, reached.root, path.parent, base]
    return UserTests(
        files=files,
        paths=(_below(base, path),),
        prefix=_below(base, around.root),
        roots=tuple(dict.fromkeys(_below(base, root) for root in roots)),
        script=not is_pytest_file(tree),
        control=control_file(tree, context),
        packages=tuple(p for p in reached.packages if p not in around_names(around)),
    )


def around_names(around: Surroundings) -> set[str]:
    """Top-level modules that lie beside the user's file."""
    return {around.module.split(".")[0], *(name.split("/")[0] for name in around.files), "pytest"}


def _below(base: Path, path: Path) -> str:
    relative = path.relative_to(base).as_posix()
    return "" if relative == "." else relative


def conftests(path: Path, base: Path) -> Iterator[Path]:
    for folder in path.parents:
        if (folder / "conftest.py").is_file():
            yield folder / "conftest.py"
        if folder == base:
            return


def is_pytest_file(tree: ast.Module) -> bool:
    """Whether there is anything for pytest to collect; else the file is run as a script."""
    return any(
        (isinstance(node, Function) and node.name.startswith("test"))
        or (isinstance(node, ast.ClassDef) and any(isinstance(n, Function) for n in node.body))
        for node in tree.body
    )


def control_file(tree: ast.Module, context: Context) -> str:
    """Write a test file with one test that must fail, made of a call in the user's tests."""
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    body = [n for n in tree.body if n not in imports]
    found = [u for u in selftests.units(body, []) if isinstance(u, Unit) and not u.fixtures]
    usable = [u for u in found if not u.entry and selftests.depends_on_target(u, context)]
    some = [Case("user", unit.source, "", "user", "in-process") for unit in usable]
    control, _ = cases.control_case(some, context)
    if control is None:
        return ""
    lines = [*(ast.unparse(n) for n in imports), "", "", "def test_control():"]
    return "\n".join([*lines, *("    " + line for line in control.source.splitlines())]) + "\n"
