"""The model's own tests: read out of an answer and taken apart, one assertion each."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from reflexfix.python import pieces, syntax
from reflexfix.python.asserts import checks, converted, is_assertion
from reflexfix.python.fences import MAX_CODE, blocks, stretched
from reflexfix.python.layout import dedented
from reflexfix.python.target import Function, last_name
from reflexfix.task import Dropped

FIXTURES = ("tmp_path", "capsys")
MAX_BLOCKS = 100
"""How many fenced blocks are read."""
MAX_ROWS = 50
"""How many rows of parameters are unrolled."""
_NOISE = {"print", "main", "run"}


@dataclass(frozen=True)
class Unit:
    """One assertion with what it needs before it."""

    setup: tuple[ast.stmt, ...]
    body: ast.stmt
    entry: str = ""
    fixtures: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        parts = [*self.setup, self.body]
        return "\n".join(ast.unparse(ast.fix_missing_locations(p)) for p in parts)

    @property
    def key(self) -> str:
        """What makes two tests the same: their code, however it was written."""
        return key_of([*self.setup, self.body])


def key_of(nodes: Iterable[ast.stmt]) -> str:
    """Give code without what is said when it fails."""
    bare = [_Unsaid().visit(deepcopy(node)) for node in nodes]
    return "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in bare)


class _Unsaid(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        return ast.Assert(node.test, None)


@dataclass
class Context:
    """What a test may refer to: the target, the file around it, and how the target is called."""

    target: str
    names: frozenset[str]
    """All top-level names of the user's file."""
    changeable: frozenset[str] = frozenset()
    """Those of them that are classes, or variables that the module can change."""
    node: Function | None = None
    is_method: bool = False
    is_property: bool = False
    is_async: bool = False
    own_class: str = ""
    examples: set[str] = field(default_factory=set)
    """Keys of the tests that the docstring's examples already make."""
    checkers: set[str] = field(default_factory=set)
    """Functions of the tests that check what they are given."""


def parse(answer: str) -> tuple[list[ast.stmt], list[Dropped]]:
    """Read all the test code of an answer; what does not parse is dropped piece by piece."""
    answer = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    statements: list[ast.stmt] = []
    dropped: list[Dropped] = []
    for block in blocks(answer)[:MAX_BLOCKS]:
        found, lost = _parsed(block.text)
        statements += found
        dropped += lost
    if dropped:
        longer = (tree for tree in map(_tree, stretched(answer)) if tree is not None)
        whole = next((tree for tree in longer if any(map(checks, tree.body))), None)
        if whole is not None and len(whole.body) > len(statements):
            statements, dropped = whole.body, []
    kept, deep = _shallow(statements)
    return kept, [*dropped, *deep]


def _parsed(text: str) -> tuple[list[ast.stmt], list[Dropped]]:
    """Parse a block as a whole, else as many whole statements of it as there are."""
    tree = _tree(text) if len(text) <= MAX_CODE else None
    if tree is not None:
        return tree.body, []
    taken, lost = pieces.statements(dedented(text))
    trees = [tree for tree in map(_tree, taken) if tree is not None]
    tests = [line for line in lost if line.startswith(("assert", "def test", "self.assert", "@"))]
    dropped = [Dropped(line[:120], "does not parse") for line in tests]
    return [node for tree in trees for node in tree.body], dropped


def _tree(text: str) -> ast.Module | None:
    return syntax.module(dedented(text))


def _shallow(statements: list[ast.stmt]) -> tuple[list[ast.stmt], list[Dropped]]:
    kept = [node for node in statements if syntax.is_shallow(node)]
    deep = [Dropped(f"line {n.lineno}", "is nested too deep") for n in statements if n not in kept]
    return kept, deep


# ---------------------------------------------------------------- unrolling


def units(statements: list[ast.stmt], context: list[ast.stmt]) -> Iterator[Unit | Dropped]:
    """Take test code apart: one unit an assertion, with the statements that it builds on."""
    checkers = checkers_in([*context, *statements])
    called = {last_name(n.func) for s in statements for n in ast.walk(s) if isinstance(n, ast.Call)}
    for node in statements:
        if isinstance(node, Function) and _is_test_function(node, checkers - called):
            yield from function_units(node, context)
        elif isinstance(node, ast.ClassDef) and _is_test_class(node):
            yield from class_units(node, context)
        elif is_assertion(node, checkers):
            yield Unit(needed(context, node), node)
        elif not _is_noise(node):
            context.append(node)


def checkers_in(statements: list[ast.stmt]) -> set[str]:
    """List the functions that are no tests themselves, but check something when they are called."""
    functions = [n for n in statements if isinstance(n, Function) and not _is_named_test(n)]
    return {node.name for node in functions if checks(node)}


def _is_named_test(node: ast.stmt) -> bool:
    return isinstance(node, Function) and node.name.startswith("test")


def _is_test_function(node: Function, uncalled: set[str]) -> bool:
    """Whether a function is a test: by its name, or because it checks and nobody calls it."""
    args = node.args
    plain = not (args.args or args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg)
    return _is_named_test(node) or (node.name in uncalled and plain)


def _is_noise(node: ast.stmt) -> bool:
    """What a script does besides testing: running itself, printing."""
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return True
        if isinstance(node.value, ast.Call):
            name = last_name(node.value.func)
            return name in _NOISE or name.startswith("test_")
    return False


def _is_test_class(node: ast.ClassDef) -> bool:
    return any(map(_is_named_test, node.body))


def class_units(node: ast.ClassDef, context: list[ast.stmt]) -> Iterator[Unit | Dropped]:
    """Take a test class apart; a method that needs its object is kept whole."""
    helpers = [n for n in node.body if not _is_named_test(n)]
    methods = [n for n in helpers if isinstance(n, Function)]
    for method in node.body:
        if isinstance(method, Function) and _is_named_test(method):
            plain = converted(method)
            if plain is not None and not methods:
                yield from function_units(plain, [*context, *_class_values(helpers)])
            elif strange := _strange_in_class(method, methods):
                yield Dropped(shown(method), strange)
            else:
                whole = deepcopy(node)
                whole.body = [*helpers, method]
                yield Unit(needed(context, whole), whole, f"{node.name}.{method.name}")


def _strange_in_class(method: Function, helpers: list[Function]) -> str:
    """Say what a class does that only a test runner does for it."""
    if len(method.args.args) > 1 or method.decorator_list:
        return "has a decorator or parameters that cannot be unrolled"
    runners = {"setUpClass", "tearDownClass", "setup_method", "setup_class", "teardown_method"}
    found = sorted(runners & {helper.name for helper in helpers})
    return f"uses {found[0]}, which is not called here" if found else ""


def _class_values(helpers: list[ast.stmt]) -> list[ast.stmt]:
    return [h for h in helpers if isinstance(h, ast.Assign)]


def function_units(node: Function, context: list[ast.stmt]) -> Iterator[Unit | Dropped]:
    """Take a test function apart, once for each row of its parameters."""
    rows = parameter_rows(node)
    wanted = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    if rows is None:
        yield Dropped(shown(node), "has a decorator or parameters that cannot be unrolled")
        return
    for row in rows:
        left = [name for name in wanted if name not in row]
        strange = [name for name in left if name not in FIXTURES]
        if strange:
            yield Dropped(shown(node), f"uses the fixture {strange[0]}, which is not there")
            return
        yield from _row_units(node, row, tuple(left), context)


def _row_units(
    node: Function, row: dict[str, ast.expr], fixtures: tuple[str, ...], context: list[ast.stmt]
) -> Iterator[Unit | Dropped]:
    assigned = [_assign(name, value) for name, value in row.items()]
    whole = fixtures or isinstance(node, ast.AsyncFunctionDef) or _must_stay_whole(node)
    if not whole:
        yield from units(node.body, [*context, *assigned])
        return
    bare = deepcopy(node)
    bare.decorator_list = []
    bare.args = ast.arguments([], [ast.arg(name) for name in fixtures], None, [], [], None, [])
    bare.body = [*assigned, *bare.body]
    yield Unit(needed(context, bare), bare, node.name, fixtures)


def _must_stay_whole(node: Function) -> bool:
    kinds = ast.Return | ast.Yield | ast.YieldFrom | ast.Nonlocal | ast.Global
    return any(isinstance(n, kinds) for n in ast.walk(node))


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=1)


def parameter_rows(node: Function) -> list[dict[str, ast.expr]] | None:
    """Expand `pytest.mark.parametrize`; None for decorators that mean something else."""
    rows: list[dict[str, ast.expr]] = [{}]
    for decorator in node.decorator_list:
        if last_name(decorator) in ("asyncio", "anyio", "staticmethod"):
            continue
        if last_name(decorator) != "parametrize" or not isinstance(decorator, ast.Call):
            return None
        expanded = _expanded(decorator)
        if expanded is None:
            return None
        rows = [{**row, **new} for row in rows for new in expanded][:MAX_ROWS]
    return rows


def _expanded(call: ast.Call) -> list[dict[str, ast.expr]] | None:
    if len(call.args) < 2 or not isinstance(call.args[1], ast.List | ast.Tuple):
        return None
    names = _parameter_names(call.args[0])
    rows = []
    for value in call.args[1].elts[:MAX_ROWS]:
        if isinstance(value, ast.Call) and last_name(value) == "param":
            parts: list[ast.expr] = value.args
        elif len(names) == 1:
            parts = [value]
        elif isinstance(value, ast.Tuple | ast.List):
            parts = value.elts
        else:
            return None
        if len(parts) != len(names):
            return None
        rows.append(dict(zip(names, parts, strict=True)))
    return rows if names else None


def _parameter_names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.Tuple | ast.List):
        return [str(e.value) for e in node.elts if isinstance(e, ast.Constant)]
    return []


def needed(context: list[ast.stmt], node: ast.stmt) -> tuple[ast.stmt, ...]:
    """List the earlier statements that share a variable with this one, directly or through others.

    Functions and classes are taken along with what mentions them, but tie nothing else to it: two
    calls of one function do not depend on each other.
    """
    defined = [earlier for earlier in context if isinstance(earlier, Function | ast.ClassDef)]
    tools = {earlier.name for earlier in defined}
    variables = {name for earlier in context for name in bound_names(earlier)} - tools
    names = mentioned(node)
    chosen: list[ast.stmt] = []
    for earlier in reversed(context):
        bound = bound_names(earlier)
        touches = bound if _only_binds(earlier) else bound | (mentioned(earlier) & variables)
        if touches & names:
            chosen.append(earlier)
            names |= mentioned(earlier)
    return tuple(reversed(chosen))


def _only_binds(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom | Function | ast.ClassDef)


def mentioned(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def bound_names(node: ast.AST) -> set[str]:
    """List the names that a statement binds, at any depth."""
    names: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store | ast.Del):
            names.add(n.id)
        elif isinstance(n, Function | ast.ClassDef):
            names.add(n.name)
        elif isinstance(n, ast.alias):
            names.add(n.asname or n.name.split(".")[0])
        elif isinstance(n, ast.arg):
            names.add(n.arg)
        elif (isinstance(n, ast.ExceptHandler) and n.name) or (
            isinstance(n, ast.MatchAs | ast.MatchStar) and n.name
        ):
            names.add(n.name)
    return names


def shown(node: ast.stmt) -> str:
    """Give a test in one line, for people."""
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 120 else text[:117] + "..."


def unknown_names(nodes: list[ast.stmt], context: Context) -> set[str]:
    """List names that neither the test nor the file nor Python has."""
    bound = set().union(*(bound_names(n) for n in nodes))
    used = {
        n.id
        for node in nodes
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    }
    return used - bound - context.names - set(dir(builtins)) - {context.target, "__name__"}


# ---------------------------------------------------------------- imports of the tests


def usable_imports(statements: list[ast.stmt], context: Context) -> list[ast.stmt]:
    """Keep imports of the standard library; the names of the file are there anyway."""
    kept: list[ast.stmt] = []
    for node in statements:
        if isinstance(node, ast.Import):
            names = [a for a in node.names if is_known_module(a.name)]
            if names:
                kept.append(ast.Import(names))
        elif isinstance(node, ast.ImportFrom):
            known = node.level == 0 and is_known_module(node.module or "")
            if known and not any(a.name == "*" for a in node.names):
                kept.append(node)
        elif isinstance(node, Function | ast.ClassDef) and node.name == context.target:
            continue  # the model repeated the function that it was to test
        else:
            kept.append(node)
    return kept


def is_known_module(name: str) -> bool:
    top = name.split(".")[0]
    return top in sys.stdlib_module_names or top == "pytest"


def missing_imports(unit: Unit, context: Context) -> tuple[ast.stmt, ...]:
    """Import the standard modules that a test uses without saying so."""
    names = unknown_names([*unit.setup, unit.body], context)
    modules = sorted(n for n in names if n in _OFTEN_FORGOTTEN)
    return tuple(ast.Import([ast.alias(name)]) for name in modules)


_OFTEN_FORGOTTEN = frozenset(
    [
        "asyncio",
        "collections",
        "copy",
        "datetime",
        "decimal",
        "fractions",
        "functools",
        "io",
        "itertools",
        "json",
        "math",
        "operator",
        "os",
        "pathlib",
        "pytest",
        "random",
        "re",
        "string",
        "sys",
        "tempfile",
        "time",
        "typing",
        "unittest",
    ]
)
