"""What a new body needs besides itself: which helpers and imports of an answer come along."""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix.python.syntax import UNPARSABLE
from reflexfix.python.target import Function

_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Known:
    """What the user's file has at top level."""

    names: frozenset[str]
    imports: frozenset[str] = frozenset()
    """Import statements of one name each."""

    @classmethod
    def of(cls, tree: ast.Module) -> Known:
        names = frozenset(name for node in tree.body for name in top_names(node))
        return cls(names, frozenset(text for node in tree.body for text, _ in singles(node)))


@dataclass(frozen=True)
class Needs:
    """What comes along from the answer."""

    helpers: tuple[ast.stmt, ...] = ()
    imports: tuple[str, ...] = ()
    inner_imports: tuple[str, ...] = ()
    """Imports of names that mean something else in the user's file: they belong into the body."""


def needs_of(text: str, tree: ast.Module, node: Function, known: Known) -> Needs:
    """Find what the definition `node` of an answer needs and the user's file lacks."""
    names = _Names(text)
    helpers = tuple(needed_helpers(tree, node, known, names))
    own = names.of_body(node)
    used = own.union(*(names.of_statement(helper) for helper in helpers))
    offered = [single for item in tree.body for single in singles(item)]
    imports = [text for text, name in offered if name in used - known.names]
    imports += [text for text, name in offered if name in used and _adds_to(text, known)]
    inner = [text for text, name in offered if name in own and _clashes(text, name, known)]
    resolved = known.names.union(_BUILTINS, *(top_names(item) for item in tree.body))
    imports += stars(tree) if used - resolved else []
    return Needs(helpers, tuple(dict.fromkeys(imports)), tuple(dict.fromkeys(inner)))


def _adds_to(text: str, known: Known) -> bool:
    """Whether `import a.b` is new to a file that has `import a.c` only."""
    root, dot, _ = text.removeprefix("import ").partition(".")
    plain = text.startswith("import ") and dot and " as " not in text
    roots = {known.removeprefix("import ").partition(".")[0] for known in known.imports}
    return bool(plain) and text not in known.imports and root in roots


def _clashes(text: str, name: str, known: Known) -> bool:
    """Whether the file means something else by the name of this standard import."""
    words = text.split()
    standard = words[1].partition(".")[0] in sys.stdlib_module_names
    is_new = name in known.names and text not in known.imports
    return standard and is_new and not _adds_to(text, known)


def singles(item: ast.stmt) -> Iterator[tuple[str, str]]:
    """Take an import apart: one statement for each name, and that name."""
    if not isinstance(item, ast.Import | ast.ImportFrom) or _is_future(item):
        return
    for alias in item.names:
        if alias.name != "*":
            one: ast.stmt = ast.Import([alias])
            if isinstance(item, ast.ImportFrom):
                one = ast.ImportFrom(item.module, [alias], item.level)
            yield ast.unparse(one), alias.asname or alias.name.partition(".")[0]


def stars(tree: ast.Module) -> list[str]:
    """List the imports of everything."""
    found = [item for item in tree.body if isinstance(item, ast.ImportFrom)]
    return [ast.unparse(item) for item in found if item.names[0].name == "*"]


def _is_future(item: ast.stmt) -> bool:
    return isinstance(item, ast.ImportFrom) and item.module == "__future__"


def needed_helpers(
    tree: ast.Module, node: Function, known: Known, names: _Names
) -> Iterator[ast.stmt]:
    """List the top-level statements that the body needs and the file lacks, in their order."""
    offered: dict[str, ast.stmt] = {}
    for item in tree.body:
        if _is_helper(item, node):
            offered |= dict.fromkeys(top_names(item) - known.names - {node.name}, item)
    wanted: set[ast.stmt] = set()
    waiting = [offered[n] for n in names.of_body(node) if n in offered]
    while waiting:
        item = waiting.pop()
        if item not in wanted:
            wanted.add(item)
            waiting += [offered[n] for n in names.of_statement(item) if n in offered]
    return iter(sorted(wanted, key=lambda item: item.lineno))


def _is_helper(item: ast.stmt, node: Function) -> bool:
    """Whether a statement may stand above the target: no import, no demonstration of it."""
    if isinstance(item, ast.Import | ast.ImportFrom | ast.Expr | ast.Assert):
        return False
    inner = list(ast.walk(item))
    if any(child is node for child in inner):
        return False
    if isinstance(item, Function | ast.ClassDef):
        return True
    mentioned = {n.id for n in inner if isinstance(n, ast.Name)}
    return not mentioned & {node.name, "__name__"}


def top_names(node: ast.AST) -> set[str]:
    """List the names that a top-level statement binds, at any depth that is still top level."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Function | ast.ClassDef):
            names.add(one.name)
        elif isinstance(one, ast.alias):
            names.add(one.asname or one.name.partition(".")[0])
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
        elif isinstance(one, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and one.name:
            names.add(one.name)
        if not isinstance(one, Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(one)
    return names


class _Names:
    """Which names a piece of code takes from the module around it."""

    def __init__(self, text: str) -> None:
        self.tables = dict(_tables(text))

    def of_body(self, node: Function | ast.ClassDef) -> set[str]:
        table = self.tables.get((node.name, node.lineno))
        return _loaded(node) if table is None else _globals_in(table)

    def of_statement(self, node: ast.stmt) -> set[str]:
        """Give the names that must be there when the statement runs, and later on."""
        if not isinstance(node, Function | ast.ClassDef):
            return _loaded(node)
        outer = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
        return self.of_body(node).union(*(_loaded(child) for child in outer))


def _tables(text: str) -> Iterator[tuple[tuple[str, int], symtable.SymbolTable]]:
    try:
        waiting = [symtable.symtable(text, "<answer>", "exec")]
    except UNPARSABLE:
        return
    while waiting:
        table = waiting.pop()
        yield (table.get_name(), table.get_lineno()), table
        waiting += table.get_children()


def _globals_in(table: symtable.SymbolTable) -> set[str]:
    names: set[str] = set()
    waiting = [table]
    while waiting:
        one = waiting.pop()
        names |= {symbol.get_name() for symbol in one.get_symbols() if symbol.is_global()}
        waiting += one.get_children()
    return names


def _loaded(node: ast.AST) -> set[str]:
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)
    }
