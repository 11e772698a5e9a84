"""MultiPL-E's form, and that of Reflexion's files: a prompt, its language, tests as a program."""

from __future__ import annotations

import ast
import typing

from reflexfix.benchmarks import rust_text
from reflexfix.benchmarks.problem import Problem, Program, Wishes
from reflexfix.benchmarks.python_text import called, parsed, stub_of
from reflexfix.benchmarks.rows import NoProblem, Row
from reflexfix.python.target import functions

LANGUAGES = {"py": "python", "python": "python", "rs": "rust", "rust": "rust"}


def problem(row: Row, wishes: Wishes) -> Problem:
    """Read a row of MultiPL-E (BSD with the term: no training on it) or of Reflexion's files."""
    language = LANGUAGES.get(row.text("language").lower(), "")
    if language == "python":
        return _python(row)
    if language == "rust":
        return _rust(row)
    raise NoProblem(f"the language {row.text('language')} is not known here")


def _id(row: Row) -> str:
    name = row.text("task_id", "") or row.text("name", "")
    if not name:
        raise NoProblem("has neither task_id nor name")
    return name


def _tests(row: Row) -> tuple[str, str, tuple[str, ...]]:
    """Give hidden and visible tests, and what has to be said of them.

    A row may show tests (`visible_tests`) and hide none: it is scored by what it shows.
    """
    hidden = row.text("test", "") or row.text("tests", "")
    visible = "\n".join(row.texts("visible_tests"))
    if hidden.strip():
        return hidden, visible, ()
    if not visible.strip():
        raise NoProblem("has no tests")
    return visible, visible, ("no hidden tests: scored by the visible ones",)


def _python(row: Row) -> Problem:
    prompt = row.text("prompt")
    function = row.text("entry_point", "") or _last_function(prompt)
    source, notes = stub_of(prompt, function)
    hidden, visible, said = _tests(row)
    missing = typing_names(source)
    head = f"from typing import {', '.join(missing)}\n\n" if missing else ""
    if missing:
        notes = (*notes, f"the prompt does not import {', '.join(missing)} of typing: imported")
    return Problem(
        id=_id(row),
        language="python",
        source=head + source,
        function=function,
        hidden=Program(called(hidden, function)),
        visible=called(visible, function) if visible.strip() else "",
        notes=(*notes, *said),
    )


def _last_function(prompt: str) -> str:
    tree = parsed(stubbed(prompt), "the prompt")
    names = [found.name for found in functions(tree)]
    if not names:
        raise NoProblem("the prompt has no function")
    return names[-1]


def stubbed(prompt: str) -> str:
    return prompt.rstrip() + "\n    ...\n"


def typing_names(source: str) -> list[str]:
    """List names of `typing` that the file's annotations use and nothing defines."""
    tree = parsed(source, "the prompt")
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    used = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    known = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            known.add(node.name)
    if "*" in known:
        return []
    return sorted((used - known) & set(typing.__all__))


def _rust(row: Row) -> Problem:
    source = rust_text.completed(row.text("prompt"))
    some = rust_text.functions(source)
    if not some:
        raise NoProblem("the prompt has no function")
    hidden, visible, said = _tests(row)
    tests = rust_text.laid_open(hidden)
    needed = rust_text.crates_in(tests, source)
    return Problem(
        id=_id(row),
        language="rust",
        source=rust_text.cleaned(source, needed),
        function=row.text("entry_point", "") or some[-1].name,
        hidden=Program(tests),
        visible=rust_text.laid_open(visible) if visible.strip() else "",
        packages=needed,
        notes=(*(f"needs crate {crate}" for crate in needed), *said),
    )
