"""One Python function in one Python file."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from reflexfix.attempt import Candidate, Case, UserTests
from reflexfix.errors import UsageProblem
from reflexfix.python import answer as answers
from reflexfix.python import cases, mutants, scope, splice, syntax, target, usertests
from reflexfix.python.control import control_case
from reflexfix.python.needs import Known, top_names
from reflexfix.python.selftests import Context
from reflexfix.python.surroundings import Surroundings, alone, look_around
from reflexfix.source import MAX_BYTES, Source, read_python
from reflexfix.task import Dropped, Reading, Site, read_file


@dataclass(frozen=True)
class PythonTask:
    """A target in a Python file, with the file's surroundings."""

    path: Path
    original: bytes
    source: Source
    tree: ast.Module
    found: target.Found
    surroundings: Surroundings
    body_only: bool = False
    language: str = "python"

    @property
    def name(self) -> str:
        return self.found.name

    @cached_property
    def docstring(self) -> str:
        return ast.get_docstring(self.found.node) or ""

    @cached_property
    def id(self) -> str:
        text = "\0".join([self.language, self.name, scope.header(self.source, self.found.node)])
        return sha256(f"{text}\0{self.docstring}".encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def unfinished(self) -> bool:
        return target.is_unfinished(self.found, self.source)

    @property
    def packages(self) -> tuple[str, ...]:
        return self.surroundings.packages

    def remedy(self, missing: tuple[str, ...]) -> str:
        names = " ".join(f"--with {name}" for name in missing)
        table = ", ".join(f'"{name}"' for name in missing)
        return f"add {names}, or [tool.reflexfix.sandbox] packages = [{table}] to pyproject.toml"

    @property
    def old_body(self) -> str:
        if self.unfinished:
            return ""
        text = self.source.text.replace("\r\n", "\n").replace("\r", "\n")
        return answers.body_text(text, self.found.node)

    @cached_property
    def known(self) -> Known:
        """What the file has at top level."""
        return Known.of(self.tree)

    @cached_property
    def context(self) -> Context:
        node, around = self.found.node, self.found.around
        decorators = set(map(target.last_name, node.decorator_list))
        name = around[0].name if self.found.is_nested else node.name
        return Context(
            target=name,
            names=self.known.names,
            changeable=frozenset(changeable_names(self.tree)) - {name},
            node=node if not (around or decorators) else None,
            is_method=self.found.is_method,
            is_property=bool({"property", "cached_property"} & decorators),
            is_async=isinstance(node, ast.AsyncFunctionDef),
            own_class=around[-1].name if self.found.is_method else "",
        )

    def scope(self, tokens: int) -> str:
        return scope.described(self.source, self.tree, self.found, tokens)

    def read(self, answer: str) -> Reading:
        reading = answers.read(answer, self.found, self.known, self.body_only)
        if reading.code is None:
            return Reading(why=reading.why)
        try:
            file = splice.spliced(self.source, self.tree, self.found, reading.code)
        except UsageProblem as error:
            return Reading(why=error.message)
        if wrong := syntax.error_in(file[len(self.source.bom) :].decode(self.source.encoding)):
            return Reading(why=f"the answer does not fit into the file: {wrong}")
        return Reading(reading.code.text, file, reading.why)

    def own_tests(self, answer: str, examples: Iterable[Case]) -> tuple[list[Case], list[Dropped]]:
        context = replace(self.context, examples=cases.example_keys(examples))
        return cases.own_cases(answer, context, self.found)

    def examples(self) -> list[Case]:
        return cases.example_cases(self.docstring, self.found, self.context)

    def control(self, some: Iterable[Case]) -> tuple[Case | None, str]:
        return control_case(some, self.context)

    def candidate(self, file: bytes) -> Candidate:
        own = self.surroundings.module.replace(".", "/")
        own += "/__init__.py" if self.path.name == "__init__.py" else ".py"
        around = self.surroundings.files
        return Candidate(
            files={**around, own: file},
            module=self.surroundings.module,
            target=self.name,
            is_async=self.context.is_async,
            stub_files={**around, own: self.original},
        )

    def sites(self, file: bytes) -> list[Site]:
        if self.source.encoding.lower() not in ("utf-8", "ascii") or self.source.bom:
            return []
        tree = syntax.module(file.decode("utf-8", "replace"))
        named = (f for f in target.functions(tree) if f.name == self.name) if tree else iter(())
        found = next(named, None)
        return mutants.sites(file, found) if found else []

    def user_tests(self, path: Path) -> UserTests:
        return usertests.take(path, self.surroundings, self.context)


def open_task(path: Path, function: str | None, body_only: bool) -> PythonTask:
    """Read a Python file and choose its target. Raises UsageProblem."""
    task = task_of(read_file(path, MAX_BYTES), path, function, body_only)
    return replace(task, surroundings=look_around(path, task.tree))


def task_of(data: bytes, path: Path, function: str | None, body_only: bool) -> PythonTask:
    """Choose the target of a Python text that has no neighbours. Raises UsageProblem."""
    if not data.strip():
        raise UsageProblem(f"{path} is empty.")
    source = read_python(data, str(path))
    tree = target.parse(source, str(path))
    found = target.choose(tree, source, function, str(path))
    return PythonTask(path, data, source, tree, found, alone(path, tree), body_only)


def changeable_names(tree: ast.Module) -> set[str]:
    """List classes, and variables that are no plain constants or are declared global somewhere."""
    names = {n for node in ast.walk(tree) if isinstance(node, ast.Global) for n in node.names}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not _is_constant(node.value):
            names |= top_names(node)
    return names


def _is_constant(value: ast.expr | None) -> bool:
    """Whether a value is a literal that nothing can change in place."""
    if isinstance(value, ast.Tuple):
        return all(map(_is_constant, value.elts))
    if isinstance(value, ast.UnaryOp):
        return _is_constant(value.operand)
    return isinstance(value, ast.Constant)
