"""Find the one function that is to be written, and where its body lies."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix.errors import UsageProblem
from reflexfix.python.layout import comments_in
from reflexfix.python.syntax import UNPARSABLE
from reflexfix.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.ClassDef | Function


@dataclass(frozen=True)
class Found:
    """A function of the file, with the classes and functions around it, outermost first."""

    node: Function
    around: tuple[Scope, ...]
    top: ast.stmt
    """The statement of the file that holds it: the function itself, a class, an `if`."""

    @property
    def name(self) -> str:
        """The dotted name, as `--function` takes it."""
        return ".".join([*(scope.name for scope in self.around), self.node.name])

    @property
    def is_method(self) -> bool:
        return bool(self.around) and isinstance(self.around[-1], ast.ClassDef)

    @property
    def is_conditional(self) -> bool:
        """Whether it is defined only under an `if`, a `try` or the like."""
        return self.top is not (self.around[0] if self.around else self.node)

    @property
    def is_nested(self) -> bool:
        return any(isinstance(scope, Function) for scope in self.around)


def parse(source: Source, name: str) -> ast.Module:
    """Parse the file with this interpreter.

    Raises UsageProblem with line and column; a file for a newer Python is told from a broken one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        where = f"{name}:{error.lineno}:{error.offset}"
        newer = needed_version(source)
        if newer is not None:
            here = "{}.{}".format(*sys.version_info)
            raise UsageProblem(
                f"{where}: this needs Python {newer[0]}.{newer[1]}; reflexfix runs on {here}.",
                hint=f"install reflexfix with Python {newer[0]}.{newer[1]} or newer",
            ) from None
        raise UsageProblem(f"{where}: {error.msg}") from None
    except UNPARSABLE as error:
        why = str(error) or "it is nested too deep"
        raise UsageProblem(f"{name} cannot be parsed: {why}") from None


def needed_version(source: Source) -> tuple[int, int] | None:
    """Guess the newer Python that a file was written for, from syntax that tree-sitter knows."""
    import tree_sitter
    import tree_sitter_python

    language = tree_sitter.Language(tree_sitter_python.language())
    text = source.text.encode("utf-8", "replace")
    root = tree_sitter.Parser(language).parse(text).root_node
    kinds = set(node_kinds(root))
    if "ERROR" in kinds or sys.version_info >= (3, 12):
        return None
    return (3, 12) if kinds & {"type_alias_statement", "type_parameter"} else None


def node_kinds(node: object) -> Iterator[str]:
    """Name the kinds of a tree-sitter node and all below it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one.type  # type: ignore[attr-defined]
        waiting += one.children  # type: ignore[attr-defined]


def functions(tree: ast.Module) -> Iterator[Found]:
    """List every function of the file, in the order of the text."""
    inner = ast.stmt | ast.excepthandler | ast.match_case
    waiting: list[tuple[ast.AST, tuple[Scope, ...], ast.stmt]]
    waiting = [(node, (), node) for node in reversed(tree.body)]
    while waiting:
        node, around, top = waiting.pop()
        if isinstance(node, Function):
            yield Found(node, around, top)
        if isinstance(node, Function | ast.ClassDef):
            around = (*around, node)
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, inner)]
        waiting += [(child, around, top) for child in reversed(children)]


def choose(tree: ast.Module, source: Source, wanted: str | None, file: str) -> Found:
    """Pick the function that was named, or the only unfinished one.

    Raises UsageProblem with the candidates when there is none, or more than one.
    """
    every = list(functions(tree))
    if wanted:
        return _named(every, wanted, file)
    open_ones = [found for found in every if is_unfinished(found, source)]
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise UsageProblem(
            f"{file} has no unfinished function."
            + (f" It has: {_names(every)}." if every else " It has no function at all."),
            hint="name one with --function NAME, and give --tests FILE to repair a finished one",
        )
    raise UsageProblem(
        f"{file} has {len(open_ones)} unfinished functions: {_names(open_ones)}.",
        hint="name one with --function NAME",
    )


def _named(every: list[Found], wanted: str, file: str) -> Found:
    exact = [found for found in every if found.name == wanted and not is_overload(found.node)]
    ending = [found for found in every if found.name.endswith("." + wanted)]
    matches = exact[-1:] or [found for found in ending if not is_overload(found.node)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageProblem(
            f"{file} has {len(matches)} functions called {wanted}: {_names(matches)}.",
            hint="name one with its dots, as they are listed",
        )
    raise UsageProblem(
        f"{file} has no function {wanted}." + (f" It has: {_names(every)}." if every else "")
    )


def _names(some: list[Found]) -> str:
    names = list(dict.fromkeys(found.name for found in some))
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


# ---------------------------------------------------------------- what counts as unfinished


def is_unfinished(found: Found, source: Source) -> bool:
    """Say whether a body only stands in for one: `...`, pass, NotImplementedError, or a TODO."""
    if is_overload(found.node) or is_abstract(found.node) or in_protocol(found):
        return False
    rest = [n for n in body_without_docstring(found.node) if not is_placeholder(n)]
    if not rest:
        return True
    return len(rest) == 1 and is_constant_return(rest[0]) and has_todo(found.node, source)


def body_without_docstring(node: Function) -> list[ast.stmt]:
    return node.body[1:] if docstring_node(node) is not None else node.body


def first_line(node: ast.stmt) -> int:
    """Give the line on which a statement begins, its decorators counted in."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def docstring_node(node: Function) -> ast.Constant | None:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first.value if isinstance(first.value.value, str) else None
    return None


def is_placeholder(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return False


def is_constant_return(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Return):
        return False
    if node.value is None:
        return True
    try:
        ast.literal_eval(node.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def has_todo(node: Function, source: Source) -> bool:
    end = source.after_line(node.end_lineno or node.lineno)
    text = source.text[source.starts[node.lineno - 1] : end]
    above = source.line(node.body[0].lineno - 1).strip()  # of `def f(): return 0` on one line
    comments = [*comments_in(text), above if above.startswith("#") else ""]
    return any("TODO" in comment or "FIXME" in comment for comment in comments)


def is_overload(node: Function) -> bool:
    return bool({"overload"} & set(map(last_name, node.decorator_list)))


def is_abstract(node: Function) -> bool:
    names = {"abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"}
    return bool(names & set(map(last_name, node.decorator_list)))


def in_protocol(found: Found) -> bool:
    classes = [scope for scope in found.around if isinstance(scope, ast.ClassDef)]
    bases = [base for scope in classes[-1:] for base in scope.bases]
    return any(last_name(base) == "Protocol" for base in bases)


def last_name(node: ast.expr) -> str:
    """Give the last part of a dotted name, whatever it is called or subscripted with."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
