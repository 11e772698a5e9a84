"""Which of the model's own tests are worth running: those that any program might fail."""

from __future__ import annotations

import ast

from reflexfix.python import syntax
from reflexfix.python.asserts import checks, target_calls
from reflexfix.python.forbidden import forbidden_use
from reflexfix.python.selftests import Context, Unit, bound_names, mentioned, unknown_names
from reflexfix.python.target import Function, last_name


def why_not(unit: Unit, context: Context) -> str:
    """Say why a test is not worth running; "" when it is."""
    everything = [*unit.setup, unit.body]
    if use := forbidden_use(everything, context.target):
        return use
    if not depends_on_target(unit, context):
        return f"does not call {context.target}"
    if is_true_by_itself(unit.body) or swallows_failures(unit.body):
        return "is true by itself"
    if context.is_async and not _awaits(everything, context):
        return f"never awaits {context.target}"
    if bad := wrong_call(everything, context):
        return bad
    if error := syntax.error_in(unit.source, whole=True):
        return f"does not run: {error}"
    missing = unknown_names(everything, context)
    return f"uses {sorted(missing)[0]}, which is not there" if missing else ""


def depends_on_target(unit: Unit, context: Context) -> bool:
    """Say whether what is asserted depends on a call of the target."""
    tainted: set[str] = set()
    for node in unit.setup:
        spread(node, context, tainted)
    return _asserts_about(unit.body, context, tainted)


def spread(node: ast.AST, context: Context, tainted: set[str]) -> None:
    """Mark the names that hold a result of the target, or were handed to it and may be changed."""
    if isinstance(node, Function | ast.ClassDef):
        if target_calls(node, context) or mentioned(node) & tainted:
            tainted.add(node.name)
        return
    for child in ast.walk(node):
        for call in target_calls(child, context, deep=False):
            tainted |= {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            tainted -= {context.target}
    if target_calls(node, context) or mentioned(node) & tainted:
        tainted |= bound_names(node)


def is_about(node: ast.AST, context: Context, tainted: set[str]) -> bool:
    """Say whether a piece of code calls the target or mentions what came of a call."""
    return bool(target_calls(node, context)) or bool(mentioned(node) & tainted)


def _asserts_about(node: ast.AST, context: Context, tainted: set[str]) -> bool:
    if isinstance(node, ast.Assert):
        return is_about(node.test, context, tainted)
    whole = isinstance(node, Function | ast.ClassDef | ast.Expr | ast.Raise)
    if whole or _is_about_raising(node):
        return is_about(node, context, tainted)
    is_checked = isinstance(node, ast.If) and is_about(node.test, context, tainted)
    if is_checked and any(isinstance(child, ast.Raise) for child in ast.walk(node)):
        return True
    spread(node, context, tainted)
    inner = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))
    return any(_asserts_about(child, context, tainted) for child in inner)


def _is_about_raising(node: ast.AST) -> bool:
    if isinstance(node, ast.Try):
        return bool(node.handlers)
    items = getattr(node, "items", [])
    return any(last_name(item.context_expr) in _RAISES for item in items)


_RAISES = {"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns"}


def is_true_by_itself(node: ast.AST) -> bool:
    """Recognise tests that no program can fail: all that they check is always true."""
    found = checks(node)
    return bool(found) and all(isinstance(n, ast.Assert) and _always_true(n.test) for n in found)


def swallows_failures(node: ast.AST) -> bool:
    """Recognise tests whose own failures are caught on the way."""
    for child in ast.walk(node):
        if isinstance(child, ast.Try) and any(map(checks, child.body)):
            catching = [h for h in child.handlers if h.type is None or _catches(h.type)]
            if any(not any(map(_complains, handler.body)) for handler in catching):
                return True
        if isinstance(child, ast.With | ast.AsyncWith) and any(map(checks, child.body)):
            calls = [i.context_expr for i in child.items if isinstance(i.context_expr, ast.Call)]
            if any(last_name(c) == "suppress" and any(map(_catches, c.args)) for c in calls):
                return True
    return False


def _catches(kind: ast.expr) -> bool:
    """Whether an `except` of this kind takes a failed assertion."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return bool({"AssertionError", "Exception", "BaseException"} & set(map(last_name, kinds)))


def _complains(node: ast.stmt) -> bool:
    return any(isinstance(n, ast.Raise) for n in ast.walk(node)) or (
        bool(checks(node)) and not is_true_by_itself(node)
    )


def _always_true(test: ast.expr) -> bool:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts) and not all(isinstance(e, ast.Starred) for e in test.elts)
    if isinstance(test, ast.Lambda | ast.GeneratorExp):
        return True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, ast.Constant) and not test.operand.value
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(map(_always_true, test.values)) or _contradicts(test.values)
    if isinstance(test, ast.BoolOp):
        return all(map(_always_true, test.values))
    if isinstance(test, ast.Call) and last_name(test.func) == "isinstance" and len(test.args) == 2:
        return last_name(test.args[1]) == "object"
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        same = ast.dump(test.left) == ast.dump(test.comparators[0])
        if same and isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE):
            return True
        return _is_length_check(test)
    return False


def _contradicts(values: list[ast.expr]) -> bool:
    """Whether one of `a or not a` is the other's opposite."""
    dumps = {ast.dump(value) for value in values}
    return any(
        isinstance(v, ast.UnaryOp) and isinstance(v.op, ast.Not) and ast.dump(v.operand) in dumps
        for v in values
    )


def _is_length_check(test: ast.Compare) -> bool:
    """`len(...) >= 0` and its kin hold for everything that has a length."""
    sides = (test.left, test.comparators[0])
    kinds = {ast.GtE: 0, ast.Gt: -1}
    if isinstance(test.ops[0], ast.LtE | ast.Lt):
        sides, kinds = sides[::-1], {ast.LtE: 0, ast.Lt: -1}
    if not (isinstance(sides[0], ast.Call) and last_name(sides[0].func) == "len"):
        return False
    least = kinds.get(type(test.ops[0]))
    return least is not None and ast.unparse(sides[1]) == str(least)


def _awaits(nodes: list[ast.stmt], context: Context) -> bool:
    """Say whether every use of a coroutine function is driven to its end somehow."""
    for node in nodes:
        for child in ast.walk(node):
            if isinstance(child, ast.Await):
                return True
            if isinstance(child, ast.Call) and last_name(child.func) in _DRIVERS:
                return True
    return False


_DRIVERS = {"run", "run_until_complete", "gather", "create_task", "wait_for", "Runner"}


def wrong_call(nodes: list[ast.stmt], context: Context) -> str:
    """Say how a call does not fit the signature, unless the test is about that."""
    if context.node is None or context.is_method or any(_expects(n, "TypeError") for n in nodes):
        return ""
    calls = [call for node in nodes for call in target_calls(node, context)]
    direct = [call for call in calls if last_name(call.func) == context.target]  # no `map(f, xs)`
    found = (_misfit(call, context.node.args) for call in direct)
    return next((f"calls {context.target} {why}" for why in found if why), "")


def _misfit(call: ast.Call, args: ast.arguments) -> str:
    """Say what is wrong with the arguments of a call, as far as they stand there."""
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    if starred or any(keyword.arg is None for keyword in call.keywords):
        return ""
    most, given = len(args.posonlyargs) + len(args.args), len(call.args)
    if given > most and args.vararg is None:
        return f"with {given} arguments; it takes {most}"
    names = {a.arg for a in [*args.args, *args.kwonlyargs]}
    strange = [keyword.arg for keyword in call.keywords if keyword.arg not in names]
    if strange and args.kwarg is None:
        return f"with {strange[0]}=, which it does not take"
    least = most - len(args.defaults)
    return "with too few arguments" if given + len(call.keywords) < least else ""


def _expects(node: ast.stmt, error: str) -> bool:
    return error in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
