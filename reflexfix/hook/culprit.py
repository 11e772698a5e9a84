"""A suspected function as a task for the loop: in a tree, and shown with little else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reflexfix.attempt import Case
from reflexfix.errors import UsageProblem
from reflexfix.hook.tree import Tree
from reflexfix.python import scope, syntax, target
from reflexfix.python.layout import dedented
from reflexfix.python.surroundings import Surroundings, module_name
from reflexfix.python.target import Found
from reflexfix.python.task import PythonTask
from reflexfix.source import Source, read_python

_DEF = re.compile(r"^(?P<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+(?P<name>\w+)")
_DOCSTRING = re.compile(r'^\s*[rRuU]?("""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\')[ \t]*$', re.MULTILINE)


@dataclass(frozen=True)
class Culprit(PythonTask):
    """A function that is to be repaired against the project's own tests."""

    body: str = ""
    """The body as it stands in the project."""
    real: bytes = b""
    """The file as it stands in the project; `original` differs where that is no Python."""

    @property
    def unfinished(self) -> bool:
        return not self.body

    @property
    def old_body(self) -> str:
        return self.body

    def scope(self, tokens: int) -> str:
        """Show the function and what it names; nothing else of the file reaches a model."""
        return scope.described(self.source, self.tree, self.found, tokens, also=self.body)

    def examples(self) -> list[Case]:
        """The project's tests are what counts; its docstrings may be older than its code."""
        return []

    @property
    def own_file(self) -> str:
        """Where the file lies below its import root."""
        files = self.candidate(self.real).files
        return next(name for name in files if name not in self.surroundings.files)


def open_in(tree: Tree, path: str, name: str, line: int, with_neighbours: bool = False) -> Culprit:
    """Take a function of a tree as a task. Raises UsageProblem when it cannot be read."""
    data = tree.read(path) or b""
    source = read_python(data, path)
    parsed = target.parse(source, path)
    found = _found(parsed, path, name, line)
    around = surroundings(tree, path, with_neighbours)
    task = PythonTask(Path(path), data, source, parsed, found, around)
    return Culprit(Path(path), data, source, parsed, found, around, body=task.old_body, real=data)


def _found(parsed: ast.Module, path: str, name: str, line: int) -> Found:
    for found in target.functions(parsed):
        last = found.node.end_lineno or 0
        if found.name == name and target.first_line(found.node) <= line <= last:
            return found
    raise UsageProblem(f"{path} has no function {name} at line {line}.")


def surroundings(tree: Tree, path: str, with_neighbours: bool) -> Surroundings:
    """Find a file's place in its package; with its neighbours where own tests are to be run."""
    root = PurePosixPath(path).parent
    while str(root) != "." and f"{root}/__init__.py" in tree.files:
        root = root.parent
    prefix = "" if str(root) == "." else f"{root}/"
    relative = PurePosixPath(path.removeprefix(prefix))
    files = {
        name.removeprefix(prefix): file.data
        for name, file in tree.files.items()
        if with_neighbours and name.startswith(prefix) and name.endswith(".py") and name != path
    }
    return Surroundings(Path("/"), module_name(Path(relative)), files)


# ---------------------------------------------------------------- files that are no Python


@dataclass(frozen=True)
class Broken:
    """A function without which a file would be Python."""

    name: str
    line: int
    body: str
    stubbed: str
    """The file's text with `...` in the place of that body."""


def broken(text: str, error_line: int) -> Broken | None:
    """Find the one function that a syntax error lies in; None when it lies in none or in more."""
    for first in _definitions(text, error_line):
        found = _without_body(text.splitlines(keepends=True), first)
        if found is not None and syntax.module(found.stubbed) is not None:
            return found
    return None


def _definitions(text: str, error_line: int) -> Iterator[int]:
    """List lines that open a function, those just above the error first."""
    lines = text.splitlines()
    opening = [n for n, line in enumerate(lines) if _DEF.match(line)]
    yield from sorted(opening, key=lambda n: (n >= error_line, abs(error_line - n)))


def _without_body(lines: list[str], first: int) -> Broken | None:
    """Take the body out of the function that begins in this line."""
    opened = _DEF.match(lines[first])
    head = next((n for n in range(first, len(lines)) if _ends_header(lines[n])), None)
    if opened is None or head is None:
        return None
    indent = len(opened["indent"].expandtabs())
    last = _last_line(lines, head + 1, indent)
    body = "".join(lines[head + 1 : last])
    documented = _DOCSTRING.match(body)
    kept = body[: documented.end()].rstrip("\n") + "\n" if documented else ""
    inner = opened["indent"] + ("\t" if "\t" in opened["indent"] else "    ")
    stubbed = [*lines[: head + 1], kept, f"{inner}...\n", *lines[last:]]
    rest = body[documented.end() :] if documented else body
    return Broken(opened["name"], first + 1, dedented(rest).strip("\n"), "".join(stubbed))


def _ends_header(line: str) -> bool:
    return line.partition("#")[0].rstrip().endswith(":")


def _last_line(lines: list[str], start: int, indent: int) -> int:
    """Find where a body ends: at the next line that is not deeper than its function."""
    end = start
    for n in range(start, len(lines)):
        text = lines[n].expandtabs()
        closes = text.lstrip().startswith((")", "]", "}"))
        if text.strip() and not closes and len(text) - len(text.lstrip()) <= indent:
            break
        if text.strip():
            end = n + 1
    return end


def open_broken(tree: Tree, path: str, with_neighbours: bool = False) -> Culprit | None:
    """Take the one function as a task that keeps a file from being Python."""
    data = tree.read(path) or b""
    source = read_python(data, path)
    error = syntax_error(source.text)
    found = broken(source.text, error.lineno or 1) if error else None
    if found is None:
        return None
    stub = Source(found.stubbed, source.encoding, source.bom)
    parsed = target.parse(stub, path)
    one = next(f for f in target.functions(parsed) if f.node.lineno == found.line)
    around = surroundings(tree, path, with_neighbours)
    return Culprit(Path(path), stub.encode(stub.text), stub, parsed, one, around,
                   body=found.body or "...", real=data)  # fmt: skip


def syntax_error(text: str) -> SyntaxError | None:
    try:
        compile(text, "<file>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def unparsable(tree: Tree, paths: Iterable[str]) -> Iterator[tuple[str, SyntaxError]]:
    """Name the files that are no Python, with the reason."""
    for path in paths:
        try:
            error = syntax_error(read_python(tree.read(path) or b"", path).text)
        except UsageProblem:
            continue
        if error is not None:
            yield path, error
