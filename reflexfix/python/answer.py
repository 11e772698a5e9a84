"""Read a model's answer: find the code in it, whatever is written around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reflexfix.python import pieces, syntax
from reflexfix.python.fences import Block, blocks, latest, stretched
from reflexfix.python.layout import dedented, normal
from reflexfix.python.needs import Known, needs_of
from reflexfix.python.splice import Code, header_end
from reflexfix.python.target import (
    Found,
    Function,
    body_without_docstring,
    docstring_node,
    first_line,
    functions,
    is_placeholder,
)
from reflexfix.source import Source

MAX_BODY = 100_000
"""Longer bodies are refused, in characters."""

_LEFTOVERS = re.compile(r"<\|[a-z_ |]{1,40}\|>|</?s>|\[/?(?:PYTHON|INST|CODE)\]|</?think>")


@dataclass(frozen=True)
class Reading:
    """What an answer turned out to hold: code, or why there is none."""

    code: Code | None = None
    why: str = ""


@dataclass(frozen=True)
class Text:
    """A part of an answer that parses as a whole, with what is odd about it."""

    text: str
    note: str = ""


def read(answer: str, found: Found, known: Known, body_only: bool = False) -> Reading:
    """Find the target's new body in an answer, with the helpers and imports that it needs.

    `known` is what the file has at top level. Never raises: an answer without usable code says why.
    """
    answer = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    for view in views(answer):
        reading = _definition(view, found, known, body_only) or _bare(view)
        if reading is not None:
            return reading
    return Reading(why=_why_not(answer, found.node.name))


def views(answer: str) -> Iterator[str]:
    """Give the answer behind the model's thoughts, the whole of it, and it without leftovers."""
    _, thought, rest = answer.rpartition("</think>")
    if thought:
        yield rest
    yield answer
    if _LEFTOVERS.search(answer):
        yield _LEFTOVERS.sub("\n", answer)


def _definition(answer: str, found: Found, known: Known, body_only: bool) -> Reading | None:
    for text in candidates(answer, found.node.name):
        code = dedented(text.text)
        tree = syntax.module(code)
        node = _target(tree, found) if tree is not None else None
        if tree is not None and node is not None:
            reading = _reading(code, tree, node, known, body_only)
            return _noted(reading, text.note, _renamed(found.node, node))
    return None


def _noted(reading: Reading, *notes: str) -> Reading:
    return replace(reading, why="; ".join(n for n in (reading.why, *notes) if n))


def _renamed(asked: Function, given: Function) -> str:
    """Say so when the answer has other parameters; the file's signature stands."""
    names = [_parameters(node) for node in (asked, given)]
    if names[0] == names[1]:
        return ""
    return f"the answer changed the parameters to ({', '.join(names[1])}); the file's stand"


def _parameters(node: Function) -> list[str]:
    args = node.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [arg.arg for arg in every if arg is not None]


def _why_not(answer: str, name: str) -> str:
    if not answer.strip():
        return "the answer is empty"
    if not defines(answer, name):
        return f"the answer does not define {name}"
    for block in latest(blocks(answer)):
        if defines(block.text, name) and (error := syntax.error_in(dedented(block.text))):
            cut = "" if block.closed else "; its end is missing"
            return f"the answer is not valid Python: {error}{cut}"
    return f"the answer has no usable definition of {name}"


# ---------------------------------------------------------------- where code may be


def defines(text: str, name: str) -> bool:
    return re.search(rf"\bdef\s+{re.escape(name)}\b", text) is not None


def candidates(answer: str, name: str) -> Iterator[Text]:
    """List texts that may hold the target's definition, the likeliest first.

    Later blocks come first (models correct themselves downwards), then a fence is allowed to
    close further down (for a fence inside a docstring), then whole statements are picked out.
    """
    note = ""
    for block in latest([block for block in blocks(answer) if defines(block.text, name)]):
        yield Text(block.text, note or _unclosed(block))
        note = f"the last definition of {name} in the answer is not complete"
    yield from (Text(text) for text in stretched(answer) if defines(text, name))
    yield from picked(answer, name)


def _unclosed(block: Block) -> str:
    return "" if block.closed else "the answer's code block has no end"


def picked(answer: str, name: str) -> Iterator[Text]:
    """Put the whole statements of an answer together, if the target is among them."""
    if not defines(answer, name):
        return
    lines = [line for line in answer.split("\n") if not line.strip().startswith(("```", "~~~"))]
    taken, lost = pieces.statements("\n".join(lines))
    is_cut = any(defines(line, name) for line in lost)
    note = f"the last definition of {name} in the answer is not complete" if is_cut else ""
    kept = [piece for piece in taken if defines(piece, name) or _is_support(piece)]
    yield Text("\n".join(kept) + "\n", note)


def _is_support(piece: str) -> bool:
    return re.match(r"import |from |@|def |async def |class |[A-Z_]+ *=", piece) is not None


def _bare(answer: str) -> Reading | None:
    for block in latest(blocks(answer)):
        body = bare_body(block.text)
        if body is not None:
            return Reading(Code(body), _unclosed(block))
    return None


def bare_body(text: str) -> str | None:
    """Read statements without their `def`; they must return or raise, and not only say so."""
    if len(text) > MAX_BODY:
        return None
    body = dedented(text).strip("\n")
    for shape in (body, _first_line_indented(body)):
        tree = syntax.module(f"def _():\n if 1:\n{_pushed(shape)}")
        if tree is not None and _ends_something(tree):
            return normal(shape)
    return None


def _pushed(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _ends_something(tree: ast.Module) -> bool:
    """Whether statements return, yield or raise of their own, not only in functions inside."""
    outer = tree.body[0]
    if len(tree.body) != 1 or not isinstance(outer, ast.FunctionDef) or len(outer.body) != 1:
        return False
    waiting: list[ast.AST] = [*ast.iter_child_nodes(outer.body[0])]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Return | ast.Yield | ast.Raise | ast.YieldFrom):
            return not (isinstance(node, ast.Raise) and is_placeholder(node))
        waiting += ast.iter_child_nodes(node)
    return False


def _first_line_indented(body: str) -> str:
    """Mend an answer whose first line lost the indent that the others kept."""
    first, _, rest = body.partition("\n")
    return first.lstrip() + "\n" + dedented(rest)


# ---------------------------------------------------------------- what is taken from it


def _target(tree: ast.Module, found: Found) -> Function | None:
    """Find the definition that matches the target best: by its dotted name, then by its own."""
    every = [f for f in functions(tree) if f.node.name == found.node.name]
    exact = [f for f in every if f.name == found.name]
    top = [f for f in every if not f.around]
    for matches in (exact, top, every):
        real = [f.node for f in matches if not is_empty(f.node)]
        if real:
            return real[-1]
    return None


def is_empty(node: Function) -> bool:
    """An answer that repeats the stub is no answer."""
    return all(is_placeholder(n) or _is_constant(n) for n in body_without_docstring(node))


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _reading(text: str, tree: ast.Module, node: Function, known: Known, body_only: bool) -> Reading:
    body = body_text(text, node)
    if len(body) > MAX_BODY:
        return Reading(why=f"the answer's body has more than {MAX_BODY:,} characters")
    needs = needs_of(text, tree, node, known)
    inner = needs.inner_imports + (needs.imports if body_only else ())
    body = "\n".join([*inner, body])
    if body_only:
        return Reading(Code(body))
    lines = text.split("\n")
    texts = tuple(normal(_segment(lines, helper)) for helper in needs.helpers)
    return Reading(Code(body, needs.imports, texts))


def body_text(text: str, node: Function) -> str:
    """Cut the body out of a definition, without its docstring, in normal form."""
    source = Source(text)
    statements = body_without_docstring(node) or node.body
    first = first_line(statements[0])
    doc = docstring_node(node)
    doc_end = (doc.end_lineno or 0) if doc is not None and statements is not node.body else 0
    floor = max(doc_end, header_end(source, node))
    if first <= floor:
        return normal("\n".join(_padded(text, statement) for statement in statements))
    while first - 1 > floor and source.line(first - 1).strip().startswith("#"):
        first -= 1
    end = source.after_line(node.end_lineno or first)
    return normal(source.text[source.starts[first - 1] : end])


def _padded(text: str, statement: ast.stmt) -> str:
    """Give a statement that shares its line with others, as if it stood on one of its own."""
    lines = statement.end_lineno != statement.lineno
    return dedented(ast.get_source_segment(text, statement, padded=lines) or "pass")


def _segment(lines: list[str], node: ast.stmt) -> str:
    first = first_line(node)
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])
