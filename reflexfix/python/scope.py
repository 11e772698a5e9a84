"""What the model is told of the file: the target, what it names, signatures, in a budget."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix.python.splice import colon
from reflexfix.python.target import (
    Found,
    Function,
    body_without_docstring,
    docstring_node,
    first_line,
)
from reflexfix.source import Source

CHARACTERS_A_TOKEN = 3.2
"""A cautious guess for code; the models' own tokenizers give 3 to 4."""


def tokens_in(text: str) -> int:
    """Estimate how many tokens a text is."""
    return int(len(text) / CHARACTERS_A_TOKEN) + 1


@dataclass(frozen=True)
class Item:
    """A top-level statement of the file."""

    node: ast.stmt
    names: frozenset[str]
    full: str
    brief: str


def described(source: Source, tree: ast.Module, found: Found, tokens: int) -> str:
    """Give the part of the file that matters, in the file's order, in at most `tokens` tokens.

    The target comes without its old body. What was left out is said in a comment.
    """
    items = [_item(source, node, found) for node in tree.body]
    chosen = _chosen(items, found, tokens)
    left_out = [item for item in items if item.node not in chosen]
    parts = [chosen[item.node] for item in items if item.node in chosen]
    if left_out:
        names = sorted({name for item in left_out for name in item.names})
        some = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        parts.append(f"# left out here: {len(left_out)} more definitions ({some})")
    return "\n".join(part for part in parts if part).strip("\n")


def _chosen(items: list[Item], found: Found, tokens: int) -> dict[ast.stmt, str]:
    """Pick items until the budget is spent: the target first, then outwards from it."""
    chosen: dict[ast.stmt, str] = {}
    spent = 0

    def take(item: Item, text: str, always: bool = False) -> None:
        nonlocal spent
        cost = tokens_in(text)
        if item.node not in chosen and (always or spent + cost <= tokens):
            chosen[item.node] = text
            spent += cost

    target = next(item for item in items if item.node is found.top)
    take(target, target.full, always=True)
    for item in items:
        if isinstance(item.node, ast.Import | ast.ImportFrom):
            take(item, item.full)
    for item in _by_distance(items, target):
        take(item, item.full)
    for item in sorted(items, key=lambda i: abs(i.node.lineno - target.node.lineno)):
        take(item, item.full if tokens_in(item.full) <= 60 else item.brief)
    return chosen


def _by_distance(items: list[Item], target: Item) -> Iterator[Item]:
    """List what the target names, then what those name, and so on."""
    by_name = {name: item for item in items for name in item.names}
    seen = {target.node}
    ring = [target]
    while ring:
        words = [w for item in ring for w in re.findall(r"[A-Za-z_]\w*", item.full)]
        ring = []
        for word in dict.fromkeys(words):
            item = by_name.get(word)
            if item is not None and item.node not in seen:
                seen.add(item.node)
                ring.append(item)
                yield item


def _item(source: Source, node: ast.stmt, found: Found) -> Item:
    names = frozenset(_bound(node))
    if node is found.top:
        return Item(node, names, target_text(source, found), "")
    return Item(node, names, text_of(source, node), brief(source, node))


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(
        node, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.If | ast.Try
    ):
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            elif isinstance(child, ast.alias):
                yield child.asname or child.name.split(".")[0]
            elif isinstance(child, Function | ast.ClassDef):
                yield child.name


def text_of(source: Source, node: ast.stmt, last: int | None = None) -> str:
    lines = range(first_line(node), (last or node.end_lineno or node.lineno) + 1)
    return "\n".join(source.line(n).rstrip() for n in lines)


def brief(source: Source, node: ast.stmt) -> str:
    """Give the signature of a function, or a class with the signatures of its methods."""
    if isinstance(node, Function):
        return header(source, node) + " ..."
    if isinstance(node, ast.ClassDef):
        inner = [brief(source, n) for n in node.body if isinstance(n, Function)]
        body = "\n".join(inner) or "    ..."
        return f"{source.line(node.lineno).rstrip()}\n{body}"
    return text_of(source, node) if tokens_in(text_of(source, node)) <= 100 else ""


def header(source: Source, node: Function) -> str:
    """Give a function from its decorators to its colon."""
    start = source.starts[first_line(node) - 1]
    return source.text[start : colon(source, node)[1]].replace("\r\n", "\n").replace("\r", "\n")


def target_text(source: Source, found: Found) -> str:
    """Give the target with its signature and docstring; of a class, what stands around it too."""
    stub = stub_text(source, found.node)
    if not found.around:
        return stub
    outer = found.top
    first, last = first_line(found.node), found.node.end_lineno or found.node.lineno
    before = [source.line(n).rstrip() for n in range(first_line(outer), first)]
    after = [source.line(n).rstrip() for n in range(last + 1, (outer.end_lineno or last) + 1)]
    return "\n".join([*before, stub, *after])


def stub_text(source: Source, node: Function) -> str:
    """Give signature, docstring and a mark where the body belongs."""
    indent = " " * (node.col_offset + 4)
    doc = docstring_node(node)
    lines = [header(source, node)]
    if doc is not None:
        start = source.offset(doc.lineno, doc.col_offset)
        end = source.offset(doc.end_lineno or doc.lineno, doc.end_col_offset or 0)
        lines.append(indent + source.text[start:end].replace("\r\n", "\n").replace("\r", "\n"))
    notes = _comments(source, node, doc)
    return "\n".join([*lines, *notes, f"{indent}..."])


def _comments(source: Source, node: Function, doc: ast.Constant | None) -> list[str]:
    """Keep the comments that the user wrote for whoever fills in the body."""
    first = (doc.end_lineno or 0) + 1 if doc is not None else node.lineno + 1
    rest = body_without_docstring(node)
    last = rest[0].lineno if rest else first
    lines = [source.line(n).rstrip() for n in range(first, last)]
    return [line for line in lines if line.strip().startswith("#")]
