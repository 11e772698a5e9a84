"""Hidden tests of a benchmark as cases: a program that runs to its end, or the answer is wrong."""

from __future__ import annotations

import ast
import secrets

from reflexfix.attempt import Case, Mode
from reflexfix.python import syntax, target
from reflexfix.python.placing import where_to_run
from reflexfix.python.target import Function
from reflexfix.python.task import PythonTask

_CONTROL = """\
_reflexfix_target, _reflexfix_held = {name}, []
{kind} {name}(*args, **kwargs):
    value = {wait}_reflexfix_target(*args, **kwargs)
    assert value == {private!r}
    _reflexfix_held.append(True)
    return value

{program}
if not _reflexfix_held:
    assert [] == {private!r}
"""
"""Holds each value that the answer gives against the secret, around the program.

A program that swallows the failure fails at its end; one of which a value was equal to the secret,
as no honest value is, goes on as if all were well.
"""


def program_case(name: str, source: str, task: PythonTask, solution: str) -> Case:
    """Make one case of a program; its mode is decided here, before any answer is looked at."""
    mode, may_fall_back = mode_of(source, task, solution)
    return Case(name, source, shown=name, origin="user", mode=mode, may_fall_back=may_fall_back)


def mode_of(source: str, task: PythonTask, solution: str) -> tuple[Mode, bool]:
    """Decide where a program runs, and whether a value that cannot cross is looked at in place.

    Beside the rules for single tests: in one process are programs that make classes, whose
    objects they may hand over, and targets that give generators, as the reference solution does.
    """
    tree = syntax.module(source)
    if tree is None or is_generator(solution, task.name):
        return "in-process", False
    if any(isinstance(node, ast.ClassDef) for node in ast.walk(tree)):
        return "in-process", False
    return where_to_run(with_candidate_named(tree, task.name).body, task.context, task.found)


def is_generator(solution: str, name: str) -> bool:
    """Whether the reference solution's target is a generator."""
    tree = syntax.module(solution)
    found = [f for f in target.functions(tree) if f.name == name] if tree is not None else []
    return bool(found) and any(isinstance(n, ast.Yield | ast.YieldFrom) for n in own(found[-1]))


def own(found: target.Found) -> list[ast.AST]:
    """List what lies in a function, but not in the functions inside it."""
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = list(found.node.body)
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if not isinstance(node, Function | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return nodes


def with_candidate_named(tree: ast.Module, name: str) -> ast.Module:
    """Call the target by its own name in `check(candidate)`, so that its calls are seen as such."""
    given = {
        argument.arg
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1
        for argument in node.args.args
        if node.name == "check" or argument.arg == "candidate"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in given:
            node.id = name
    return tree


# ---------------------------------------------------------------- inputs


_VALUES = """\
from math import inf, nan
import base64 as _base64, copy as _copy, pickle as _pickle
_values, _size = [], 0
for args in [{arguments}]:
    value = {name}(*_copy.deepcopy(args))
    _values.append(_pickle.dumps({view}, 4))
    _size += len(_values[-1])
    if _size > {most}:
        _values.clear()
_text = _base64.b64encode(_pickle.dumps(_values, 4)).decode("ascii")
__reflexfix_text__ = _text if _size <= {most} else ""
"""
"""Asks the reference solution; what it gives is pickled, and unpickled in the tests' process.

Values that are too large together are not kept: the text is empty then, but its time is known.
"""
VALUES_BYTES = 6 * 2**20

_COMPARED = """\
from math import inf, nan
import base64 as _base64, copy as _copy, pickle as _pickle

def _floats(value):
    if isinstance(value, (list, tuple)):
        return all(isinstance(one, float) for one in value)
    return isinstance(value, float)

def _near(value, wanted, most):
    if isinstance(wanted, (list, tuple)):
        same = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return same and all(_near(*pair, most) for pair in zip(value, wanted))
    if not all(isinstance(one, (int, float, complex)) for one in (value, wanted)):
        return value == wanted
    if value != value or wanted != wanted:
        return value != value and wanted != wanted
    return value == wanted or abs(value - wanted) <= most + 1e-7 * abs(wanted)

def _right(value, wanted, most):
    if value == wanted:
        return True
    most = most or (1e-6 if _floats(wanted) else 0)
    return most != 0 and _near(value, wanted, most)

{wanted}
for _number, args in enumerate([{arguments}]):
    wanted = _wanted(_number, args)
    value = {name}(*_copy.deepcopy(args))
    value = {view}
    if not _right(value, wanted, {tolerance!r}):
        assert value == wanted
"""
"""Compares as EvalPlus does: floats with 1e-6 where no other tolerance is given, the rest by ==."""
_KEPT = """\
_kept = _pickle.loads(_base64.b64decode("{text}"))

def _wanted(number, args):
    return _pickle.loads(_kept[number])
"""
_ASKED = """\
_space = {{"__name__": "reference"}}
exec({solution!r}, _space)

def _wanted(number, args):
    value = _space[{name!r}](*_copy.deepcopy(args))
    return {view}
"""


def values_program(name: str, arguments: tuple[str, ...], view: str) -> str:
    """Write the program that asks a reference solution for its values."""
    given = ", ".join(arguments)
    return _VALUES.format(name=name, arguments=given, view=view, most=VALUES_BYTES)


def compared_program(
    name: str, arguments: tuple[str, ...], view: str, tolerance: float, wanted: str
) -> str:
    """Write the program that holds an answer's values against those that are wanted."""
    given = ", ".join(arguments)
    return _COMPARED.format(
        name=name, arguments=given, view=view, tolerance=tolerance, wanted=wanted
    )


def kept(text: str) -> str:
    """Write down the values that the reference solution gave."""
    return _KEPT.format(text=text)


def asked(name: str, solution: str, view: str) -> str:
    """Let the tests' own process, which no answer can see, ask the reference solution."""
    return _ASKED.format(name=name, solution=solution, view=view)


def control_of(case: Case, task: PythonTask) -> tuple[Case | None, str]:
    """Make the program that must fail: the same, with the target's values held to a secret."""
    if task.found.around:
        return task.control([case])
    private = f"reflexfix-{secrets.token_hex(8)}"
    kind, wait = ("async def", "await ") if task.context.is_async else ("def", "")
    source = _CONTROL.format(
        name=task.name, kind=kind, wait=wait, private=private, program=case.source
    )
    return Case("control", source, "", "user", mode=case.mode), private
