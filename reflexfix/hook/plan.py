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
from reflexfix.hook import cargo
from reflexfix.hook.tree import Tree

Kind = Literal["pytest", "unittest", "script", "cargo"]
KNOWN = (
    "pytest ..., python -m pytest ..., python -m unittest ..., python FILE.py, cargo test [OPTIONS]"
)


@dataclass(frozen=True)
class Plan:
    """How a project's tests are run."""

    kind: Kind
    arguments: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """Folders on the import path, beside the project's own; of a Rust project, the workspace."""
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
    kind, arguments = read_command(command) if command else (usual(tree, named), named)
    if kind == "cargo":
        return of_crates(tree, arguments)
    inside = frozenset(a.rstrip("/") for a in arguments if is_inside(tree, a))
    if kind == "script":
        tests = (*tests, *arguments)
        missing = [path for path in arguments if tree.read(path) is None]
        if missing:
            raise UsageProblem(f"{missing[0]} is no file of the project.")
    given = [a.partition("::")[0] for a in arguments if a.partition("::")[0] in tree.files]
    return Plan(kind, arguments, roots, tuple(dict.fromkeys([*tests, *given])), inside)


def usual(tree: Tree, named: tuple[str, ...]) -> Kind:
    """Give the runner of a project that names none: cargo where there are no Python tests."""
    has_python = any(is_test(path) for path in (*tree.files, *named))
    return "cargo" if cargo.is_project(tree) and not has_python else "pytest"


def of_crates(tree: Tree, arguments: tuple[str, ...]) -> Plan:
    """Plan `cargo test`. Raises UsageProblem for what is not known here."""
    tests = tuple(path for path in tree.files if cargo.is_test(path))
    words, root = list(arguments), ""
    if "--manifest-path" in words:
        place = words.index("--manifest-path")
        manifest = words[place + 1] if place + 1 < len(words) else ""
        if manifest not in tree.files:
            raise UsageProblem(f"{manifest or '--manifest-path'} is no file of the project.")
        root = str(PurePosixPath(manifest).parent)
        del words[place : place + 2]
    elif not cargo.is_project(tree):
        raise UsageProblem("There is no Cargo.toml at the top of the project.",
                           hint="cargo test --manifest-path FOLDER/Cargo.toml")  # fmt: skip
    return Plan("cargo", tuple(words), (root,) if root not in ("", ".") else (), tests)


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
    if program == "cargo" and words[1:2] in (["test"], ["t"]):
        return "cargo", options_of(words[2:])
    raise UsageProblem(f"The tests command {command!r} is not known here.", hint=f"known: {KNOWN}")


TAKES_A_VALUE = ("-p", "--package", "--exclude", "-F", "--features", "--test", "--bin", "--profile",
                 "--manifest-path", "-j", "--jobs", "--target")  # fmt: skip


def options_of(words: list[str]) -> tuple[str, ...]:
    """Take cargo's options. Raises UsageProblem for what is meant for the tests themselves."""
    before = ""
    for word in words:
        if word == "--" or not (word.startswith("-") or before in TAKES_A_VALUE):
            raise UsageProblem(
                f"`cargo test` is taken without {word!r}: every test is run, one by one.",
                hint="options of cargo itself, such as -p and --features, are taken",
            )
        before = word
    return tuple(words)


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
    if how.kind == "cargo":
        return cargo.has_tests(tree)
    if how.arguments:
        return True
    return any(is_test(path) and path.endswith(".py") for path in tree.files)


def of_paths(tree: Tree, paths: Iterable[str]) -> tuple[Plan, tuple[str, ...]]:
    """Tell tests to be run from files to be mended among paths that a user names."""
    named = list(paths)
    if usual(tree, tuple(named)) == "cargo":
        return of_rust_paths(tree, named)
    tests = [path for path in named if tree.has_folder(path) or holds_tests(tree, path)]
    scripts = [path for path in named if path not in tests and is_test(path)]
    code = tuple(path for path in named if path not in tests and path not in scripts)
    if scripts:
        how = plan(tree)
        every = tuple(dict.fromkeys([*how.tests, *scripts]))
        return replace(how, kind="script", arguments=tuple(scripts), tests=every), code
    return plan(tree, paths=tests), code


def of_rust_paths(tree: Tree, named: list[str]) -> tuple[Plan, tuple[str, ...]]:
    """Do the same for a Rust project: a file of `tests` is a target, others are mended."""
    targets = [p for p in named if cargo.is_test(p) and PurePosixPath(p).parent.name == "tests"]
    arguments = [word for path in targets for word in ("--test", PurePosixPath(path).stem)]
    code = tuple(p for p in named if p.endswith(".rs") and not cargo.is_test(p))
    return of_crates(tree, tuple(arguments)), code


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
