"""What the model is told of the file: the target, what it names, signatures, in a budget."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reflexfix.python.layout import leading
from reflexfix.python.needs import top_names
from reflexfix.python.splice import colon, comment_lines
from reflexfix.python.target import Found, Function, Scope, docstring_node, first_line
from reflexfix.source import Source

CHARACTERS_A_TOKEN = 3.2
"""A cautious guess for code; the models' own tokenizers give 3 to 4."""
SHORT = 60
"""Tokens up to which something is shown in full, though nothing names it."""


NOTE = 60
"""Tokens that are kept for saying what was left out."""


def tokens_in(text: str) -> int:
    """Estimate how many tokens a text is."""
    return int(len(text) / CHARACTERS_A_TOKEN) + 1


@dataclass(frozen=True)
class Item:
    """A statement beside the target, or beside the class or function that holds it."""

    node: ast.stmt
    names: frozenset[str]
    full: str
    brief: str
    is_inner: bool = False
    """Whether it stands in the class or function that holds the target."""


def described(
    source: Source, tree: ast.Module, found: Found, tokens: int, also: str | None = None
) -> str:
    """Give the part of the file that matters, in the file's order, in at most `tokens` tokens.

    The target comes without its old body. What was left out is said in a comment. Where `also` is
    given, only what the target or that text names is shown, and nothing else.
    """
    stub = target_text(source, found)
    items = [_item(source, node) for node in tree.body if node is not found.top]
    items += [_item(source, node, is_inner=True) for node in _neighbours(found)]
    frame = [_frame_line(source, scope) for scope in _frames(found)]
    budget = tokens - tokens_in("\n".join([*frame, stub])) - NOTE
    chosen = _chosen(
        items, stub if also is None else f"{stub}\n{also}", found, budget, also is None
    )
    left_out = [item for item in items if item.node not in chosen]
    outer = [(item.node.lineno, chosen[item.node]) for item in _taken(items, chosen, inner=False)]
    inner = [(item.node.lineno, chosen[item.node]) for item in _taken(items, chosen, inner=True)]
    held = "\n".join([*frame, *_in_order([*inner, (found.node.lineno, stub)])])
    parts = _in_order([*outer, (found.top.lineno, held)])
    note = _note(left_out) if also is None else []
    return "".join(map(_apart, [*parts, *note])).strip("\n")


def _apart(text: str) -> str:
    """Leave a blank line around what has several lines."""
    return f"\n{text}\n\n" if "\n" in text else text + "\n"


def _taken(items: list[Item], chosen: dict[ast.stmt, str], *, inner: bool) -> Iterator[Item]:
    return (item for item in items if item.node in chosen and item.is_inner is inner)


def _in_order(parts: Iterable[tuple[int, str]]) -> list[str]:
    return [text for _, text in sorted(parts) if text]


def _note(left_out: list[Item]) -> list[str]:
    if not left_out:
        return []
    names = sorted({name for item in left_out for name in item.names})
    some = ", ".join(name[:20] for name in names[:6]) + (", ..." if len(names) > 6 else "")
    return [f"# left out here: {len(left_out)} more definitions ({some})"]


# ---------------------------------------------------------------- the target and its frame


def _frames(found: Found) -> list[Scope | ast.stmt]:
    """List what holds the target, outermost first: a condition, classes, functions."""
    condition = [found.top] if found.is_conditional else []
    return [*condition, *found.around]


def _frame_line(source: Source, scope: Scope | ast.stmt) -> str:
    """Give the head of what holds the target: its decorators, its name, its bases."""
    if isinstance(scope, Function):
        return header(source, scope)
    lines = range(first_line(scope), _first_inner_line(scope))
    return "\n".join(source.line(n).rstrip() for n in lines) or source.line(scope.lineno).rstrip()


def _first_inner_line(scope: ast.stmt) -> int:
    body: list[ast.stmt] = getattr(scope, "body", [])
    return first_line(body[0]) if body else scope.lineno + 1


def _neighbours(found: Found) -> list[ast.stmt]:
    """List what stands beside the target in the innermost scope that holds it."""
    inside = [found.node, *found.around]
    beside: list[ast.stmt] = []
    for scope in found.around:
        beside += [node for node in scope.body if node not in inside]
    return beside


def target_text(source: Source, found: Found) -> str:
    """Give the target with its signature, docstring, comments and a mark for its body."""
    node = found.node
    indent = leading(source.line(first_line(node))) + "    "
    doc = docstring_node(node)
    lines = [header(source, node)]
    if doc is not None:
        start = source.offset(doc.lineno, doc.col_offset)
        end = source.offset(doc.end_lineno or doc.lineno, doc.end_col_offset or 0)
        lines.append(indent + _plain(source.text[start:end]))
    lines += [source.line(n).rstrip() for n in comment_lines(source, node)]
    return "\n".join([*lines, f"{indent}..."])


def header(source: Source, node: Function) -> str:
    """Give a function from its decorators to its colon."""
    start = source.starts[first_line(node) - 1]
    return _plain(source.text[start : colon(source, node)[1]])


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


# ---------------------------------------------------------------- what else is shown


def _chosen(
    items: list[Item], stub: str, found: Found, budget: int, outwards: bool
) -> dict[ast.stmt, str]:
    """Pick items until the budget is spent: imports, what the target names, then outwards."""
    chosen: dict[ast.stmt, str] = {}
    spent = 0

    def take(item: Item, text: str) -> None:
        nonlocal spent
        cost = tokens_in(_apart(text))
        if item.node not in chosen and text and spent + cost <= budget:
            chosen[item.node] = text
            spent += cost

    first = [item for item in items if item.names & _words(stub) or _makes_object(item)]
    for item in first:
        take(item, item.full if tokens_in(item.full) <= max(SHORT, budget // 3) else item.brief)
    for item in items:
        if isinstance(item.node, ast.Import | ast.ImportFrom) and (outwards or item in first):
            take(item, item.full)
    for item in _by_distance(items, stub) if outwards else ():
        take(item, item.full if tokens_in(item.full) <= max(SHORT, budget // 3) else item.brief)
    for item in sorted(items if outwards else [], key=lambda i: (not i.is_inner, _gap(i, found))):
        take(item, item.full if tokens_in(item.full) <= SHORT else item.brief)
    return chosen


def _makes_object(item: Item) -> bool:
    """Whether it says what an object of the target's class holds."""
    made = item.names & {"__init__", "__new__", "__post_init__", "__slots__"}
    return item.is_inner and bool(made or isinstance(item.node, ast.AnnAssign))


def _gap(item: Item, found: Found) -> int:
    return abs(item.node.lineno - found.node.lineno)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d]\w*", text))


def _by_distance(items: list[Item], stub: str) -> Iterator[Item]:
    """List what the target names, then what those name, and so on."""
    by_name = {name: item for item in items for name in item.names}
    seen: set[ast.stmt] = set()
    texts = [stub]
    while texts:
        words = dict.fromkeys(w for text in texts for w in re.findall(r"[^\W\d]\w*", text))
        texts = []
        for word in words:
            item = by_name.get(word)
            if item is not None and item.node not in seen:
                seen.add(item.node)
                texts.append(item.full)
                yield item


def _item(source: Source, node: ast.stmt, is_inner: bool = False) -> Item:
    full, names = text_of(source, node), frozenset(top_names(node))
    return Item(node, names, full, brief(source, node, full), is_inner)


def text_of(source: Source, node: ast.stmt) -> str:
    lines = range(first_line(node), (node.end_lineno or node.lineno) + 1)
    return "\n".join(source.line(n).rstrip() for n in lines)


def brief(source: Source, node: ast.stmt, full: str) -> str:
    """Give the signature of a function, or a class with the signatures of its methods."""
    if isinstance(node, Function):
        return header(source, node) + " ..."
    if isinstance(node, ast.ClassDef):
        methods = [header(source, n) + " ..." for n in node.body if isinstance(n, Function)]
        body = "\n".join(methods) or leading(source.line(node.lineno)) + "    ..."
        return f"{_frame_line(source, node)}\n{body}"
    return full if tokens_in(full) <= 2 * SHORT else ""
