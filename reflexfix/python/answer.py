"""Read a model's answer: find the code in it, whatever is written around it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import tree_sitter
import tree_sitter_python

from reflexfix.python import syntax
from reflexfix.python.splice import Code, lines_inside_strings
from reflexfix.python.target import Found, Function, body_without_docstring, functions

MAX_FENCES = 40


@dataclass(frozen=True)
class Reading:
    """What an answer turned out to hold: code, or why there is none."""

    code: Code | None = None
    why: str = ""


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))


def read(answer: str, found: Found, taken: frozenset[str], body_only: bool = False) -> Reading:
    """Find the target's new body in an answer, with the helpers and imports that it needs.

    `taken` are the names that the file has at top level. Never raises: an answer without usable
    code says why.
    """
    answer = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    for text in candidates(answer, found.node.name):
        tree = syntax.module(textwrap.dedent(text))
        node = _target(tree, found) if tree is not None else None
        if tree is not None and node is not None:
            return _reading(text, tree, node, taken, body_only)
    for text in blocks(answer):
        body = bare_body(text)
        if body is not None:
            return Reading(Code(body))
    return Reading(why=_why_not(answer, found.node.name))


def _why_not(answer: str, name: str) -> str:
    if not answer.strip():
        return "the answer is empty"
    if f"def {name}" not in answer:
        return f"the answer does not define {name}"
    for text in blocks(answer):
        if error := syntax.error_in(textwrap.dedent(text)):
            return f"the answer is not valid Python: {error}"
    return f"the answer has no usable definition of {name}"


# ---------------------------------------------------------------- where code may be


def candidates(answer: str, name: str) -> Iterator[str]:
    """List texts that may hold the target's definition, the likeliest first.

    Later blocks come first (models correct themselves downwards), then a fence is allowed to
    close further down (for a fence inside a docstring), then the bare text is searched.
    """
    whole = list(blocks(answer))
    yield from (text for text in reversed(whole) if f"def {name}" in text)
    yield from (text for text in stretched_blocks(answer) if f"def {name}" in text)
    if f"def {name}" in answer:
        yield answer
        yield from definitions(answer, name)


def blocks(answer: str) -> Iterator[str]:
    """List the fenced blocks of an answer, or all of it where there is no fence."""
    lines = answer.split("\n")
    fences = fence_lines(lines)
    if not fences:
        yield answer
    for begin, end in zip(fences[::2], [*fences[1::2], len(lines)], strict=False):
        yield "\n".join(lines[begin + 1 : end]) + "\n"


def stretched_blocks(answer: str) -> Iterator[str]:
    """List what lies between any two fences, and what an unclosed fence opens."""
    lines = answer.split("\n")
    fences = fence_lines(lines)[:MAX_FENCES]
    for position, begin in enumerate(fences):
        for end in [*fences[position + 2 :], len(lines)]:
            yield "\n".join(lines[begin + 1 : end]) + "\n"


def fence_lines(lines: list[str]) -> list[int]:
    return [n for n, line in enumerate(lines) if line.strip().startswith(("```", "~~~"))]


def definitions(answer: str, name: str) -> Iterator[str]:
    """Let tree-sitter find whole definitions of this name in text that is not all Python."""
    lines = answer.split("\n")
    starts = [n for n, line in enumerate(lines) if f"def {name}" in line]
    for start in reversed(starts):
        data = textwrap.dedent("\n".join(lines[start:])).encode("utf-8", "replace")
        for node in _parser().parse(data).root_node.children:
            if node.type in ("function_definition", "decorated_definition") and not node.has_error:
                yield data[node.start_byte : node.end_byte].decode("utf-8") + "\n"
                break


def bare_body(text: str) -> str | None:
    """Read statements without their `def`; at least one of them must return or raise."""
    body = textwrap.dedent(text).strip("\n")
    for shape in (body, _first_line_indented(body)):
        tree = syntax.module("def _():\n" + textwrap.indent(shape, "    "))
        kinds = {type(node) for node in ast.walk(tree)} if tree else set()
        if kinds & {ast.Return, ast.Yield, ast.Raise, ast.YieldFrom}:
            return normal(shape)
    return None


def _first_line_indented(body: str) -> str:
    """Mend an answer whose first line lost the indent that the others kept."""
    lines = body.split("\n")
    rest = textwrap.dedent("\n".join(lines[1:]))
    return lines[0].lstrip() + "\n" + rest


# ---------------------------------------------------------------- what is taken from it


def _target(tree: ast.Module, found: Found) -> Function | None:
    """Find the definition that matches the target best: by its dotted name, then by its own."""
    every = [f for f in functions(tree) if f.node.name == found.node.name]
    exact = [f for f in every if f.name == found.name]
    top = [f for f in every if not f.around]
    matches = exact or top or every
    real = [f.node for f in matches if not _is_empty(f.node)]
    return real[-1] if real else None


def _is_empty(node: Function) -> bool:
    """An answer that repeats the stub is no answer."""
    rest = body_without_docstring(node)
    return not rest or all(
        isinstance(n, ast.Pass) or (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
        for n in rest
    )


def _reading(
    text: str, tree: ast.Module, node: Function, taken: frozenset[str], body_only: bool
) -> Reading:
    source = textwrap.dedent(text)
    body = body_text(source, node)
    if body_only:
        return Reading(Code(body))
    helpers = needed_helpers(source, tree, node, taken)
    used = names_in(node).union(*(names_in(h) for h in helpers))
    imports = tuple(needed_imports(tree, used, taken))
    texts = tuple(normal(_segment(source, helper)) for helper in helpers)
    return Reading(Code(body, imports, texts))


def body_text(source: str, node: Function) -> str:
    """Cut the body out of a definition, without its docstring, in normal form."""
    statements = body_without_docstring(node) or node.body
    lines = source.split("\n")
    first = min([statements[0].lineno, *(_decorator_lines(statements[0]))])
    if first == node.lineno or _shares_line(node, statements[0]):
        cut = ast.get_source_segment(source, statements[0]) or "pass"
        if len(statements) > 1:
            cut = "\n".join(ast.get_source_segment(source, s) or "pass" for s in statements)
        return normal(cut)
    docstring_end = node.body[0].end_lineno if statements[0] is not node.body[0] else None
    floor = docstring_end or _header_end(node)
    while first - 1 > floor and lines[first - 2].strip().startswith("#"):
        first -= 1
    return normal("\n".join(lines[first - 1 : node.end_lineno]))


def _decorator_lines(node: ast.stmt) -> list[int]:
    return [d.lineno for d in getattr(node, "decorator_list", [])]


def _shares_line(node: Function, statement: ast.stmt) -> bool:
    """Whether a statement stands on the line where its header or docstring ends."""
    before = [n for n in ast.iter_child_nodes(node.args) if hasattr(n, "end_lineno")]
    ends = [node.lineno, *(getattr(n, "end_lineno", 0) or 0 for n in before)]
    if node.returns is not None:
        ends.append(node.returns.end_lineno or 0)
    if statement is not node.body[0]:
        ends.append(node.body[0].end_lineno or 0)
    return statement.lineno <= max(ends)


def _header_end(node: Function) -> int:
    return node.body[0].lineno - 1 if node.body[0].lineno > node.lineno else node.lineno


def normal(text: str) -> str:
    """Give code its normal form: not indented, four spaces a level, no trailing blank lines."""
    inside = lines_inside_strings(textwrap.dedent(text))
    lines = textwrap.dedent(text).expandtabs(4).split("\n")
    raw = textwrap.dedent(text).split("\n")
    unit = _unit([line for n, line in enumerate(lines, 1) if n not in inside])
    shaped = [raw[n - 1] if n in inside else _scaled(line, unit) for n, line in enumerate(lines, 1)]
    return "\n".join(shaped).strip("\n").rstrip()


def _unit(lines: list[str]) -> int:
    """Find how far one level is indented: two spaces only when nothing fits better."""
    widths = {len(line) - len(line.lstrip(" ")) for line in lines if line.strip()} - {0}
    if not widths or min(widths) != 2 or any(width % 2 for width in widths):
        return 4
    return 2


def _scaled(line: str, unit: int) -> str:
    text = line.lstrip(" ")
    width = len(line) - len(text)
    return " " * (width * 4 // unit) + text.rstrip() if text.strip() else ""


def _segment(source: str, node: ast.stmt) -> str:
    lines = source.split("\n")
    first = min([node.lineno, *_decorator_lines(node)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])


def names_in(node: ast.AST) -> set[str]:
    """List every name that a piece of code mentions."""
    nodes = list(ast.walk(node))
    quoted = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    return names | {text for text in quoted if text.isidentifier()}  # a quoted annotation


def needed_helpers(
    source: str, tree: ast.Module, node: Function, taken: frozenset[str]
) -> list[ast.stmt]:
    """List the top-level definitions that the body needs and the file lacks, in their order."""
    offered: dict[str, ast.stmt] = {}
    for item in tree.body:
        for name in defined_names(item):
            if name not in taken and name != node.name:
                offered[name] = item
    wanted: list[ast.stmt] = []
    waiting = [offered[n] for n in names_in(node) if n in offered]
    while waiting:
        item = waiting.pop()
        if item not in wanted and not _holds(item, node):
            wanted.append(item)
            waiting += [offered[n] for n in names_in(item) if n in offered]
    return sorted(wanted, key=lambda item: item.lineno)


def _holds(item: ast.stmt, node: Function) -> bool:
    return any(child is node for child in ast.walk(item))


def defined_names(item: ast.stmt) -> list[str]:
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [item.name]
    if isinstance(item, ast.Assign):
        return [t.id for t in item.targets if isinstance(t, ast.Name)]
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value:
        return [item.target.id]
    return []


def needed_imports(tree: ast.Module, used: set[str], taken: frozenset[str]) -> Iterator[str]:
    """List imports for names that the new code uses and the file does not have."""
    seen: set[str] = set()
    for item in tree.body:
        if not isinstance(item, ast.Import | ast.ImportFrom):
            continue
        names = [a for a in item.names if _bound(a) in used - taken - seen and a.name != "*"]
        future = isinstance(item, ast.ImportFrom) and item.module == "__future__"
        if names and not future:
            seen |= {_bound(a) for a in names}
            yield ast.unparse(replace_names(item, names))


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def replace_names(item: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    if isinstance(item, ast.Import):
        return ast.Import(names=names)
    return ast.ImportFrom(module=item.module, names=names, level=item.level)


def cut_off(reading: Reading) -> Reading:
    """Say of an answer that its end is missing."""
    note = "the answer was cut off at its length limit"
    if reading.code is None:
        return replace(reading, why=f"{note}; {reading.why}")
    return replace(reading, why=note)
