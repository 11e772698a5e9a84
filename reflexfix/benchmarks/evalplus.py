"""EvalPlus: HumanEval and MBPP with many more inputs, and a reference that says what is right."""

from __future__ import annotations

import ast
from typing import Any

from reflexfix.benchmarks import mbpp
from reflexfix.benchmarks.humaneval import PROGRAM_SECONDS, packages_in
from reflexfix.benchmarks.problem import Inputs, Problem, Program, Wishes
from reflexfix.benchmarks.python_text import parsed, stub_of
from reflexfix.benchmarks.rows import NoProblem, Row
from reflexfix.benchmarks.shapes import Shape, argument, shape_of
from reflexfix.python.target import Function, last_name

SETS = {"Mbpp/579", "Mbpp/769"}
"""Rows whose values are compared as sets though the assert in the prompt does not say so."""
DEEP = {"Mbpp/580", "Mbpp/791"}
"""Rows whose tuples hold tuples all the way down, deeper than their asserts go."""
ROOT = "abs(sum(c * value**i for i, c in enumerate(args[0]))) <= 1e-4"
VIEWS = {"HumanEval/32": ROOT}
"""Any root of the polynomial is right; the reference finds one of them."""
PLAIN = "value if isinstance(value, (bool, int)) else value is not None"
"""What an assert without a comparison looks at, where a match object is as good as True."""


def humaneval(row: Row, wishes: Wishes) -> Problem:
    """Read a row of HumanEval+ (Apache-2.0, EvalPlus): base and plus inputs are two scores."""
    prompt, function = row.text("prompt"), row.text("entry_point")
    source, notes = stub_of(prompt, function)
    name = row.text("task_id")
    return Problem(
        id=name,
        language="python",
        source=source,
        function=function,
        hidden=_inputs(row, "plus_input", VIEWS.get(name, "value"), {}),
        base=_inputs(row, "base_input", VIEWS.get(name, "value"), {}),
        solution=prompt + row.text("canonical_solution"),
        notes=notes,
    )


def mbpp_plus(row: Row, wishes: Wishes) -> Problem:
    """Read a row of MBPP+: the prompt is taken as given, and shows one of the hidden tests."""
    prompt, code = row.text("prompt"), row.text("canonical_solution")
    asserts = parsed(row.text("assertion"), "the assertion")
    node = _target(parsed(code, "the reference solution"), row.text("entry_point"))
    shown = shown_asserts(prompt)
    shapes = shapes_of(asserts, node.name, row.text("task_id") in DEEP)
    view = view_of(row.text("task_id"), shown)
    text = prompt.strip().removeprefix('"""').removesuffix('"""')
    return Problem(
        id=row.text("task_id"),
        language="python",
        source=mbpp.stub_from(parsed(code, "the reference solution"), node, asserts, text),
        function=node.name,
        hidden=_inputs(row, "plus_input", view, shapes),
        base=_inputs(row, "base_input", view, shapes),
        solution=code,
        notes=_shown(len(shown)),
    )


def mbpp_program(row: Row, wishes: Wishes) -> Problem:
    """Read a row of MBPP+ in its OriginFmt: the tests are a program that needs numpy."""
    tests, code = row.text("test"), row.text("code")
    base = "\n".join([*row.texts("test_imports"), *row.texts("test_list"), ""])
    tree, every = parsed(code, "the reference solution"), parsed(base, "the tests")
    node = mbpp.target_of(tree, every)
    return Problem(
        id=f"Mbpp/{row.fields['task_id']}",
        language="python",
        source=mbpp.stub_from(tree, node, every, row.text("prompt")),
        function=node.name,
        hidden=Program(tests),
        base=Program(base),
        solution=code,
        packages=packages_in(tests),
        seconds=PROGRAM_SECONDS,
    )


def _target(code: ast.Module, name: str) -> Function:
    found = [n for n in code.body if isinstance(n, Function) and n.name == name]
    if not found:
        raise NoProblem(f"the reference solution has no function {name}")
    return found[-1]


def _shown(count: int) -> tuple[str, ...]:
    return (f"hidden tests stand in the prompt: {count}",) if count else ()


def shown_asserts(prompt: str) -> list[str]:
    return [line.strip() for line in prompt.split("\n") if line.strip().startswith("assert ")]


def view_of(name: str, shown: list[str]) -> str:
    """Say how values are looked at, as the assert in the prompt does: as a set, or as a truth."""
    if name in SETS or any(line.startswith("assert set(") for line in shown):
        return "set(value)"
    trees = [parsed(line, "the prompt").body[0] for line in shown]
    tests = [node.test for node in trees if isinstance(node, ast.Assert)]
    bare = [t.operand if isinstance(t, ast.UnaryOp) else t for t in tests]
    calls = [t for t in bare if isinstance(t, ast.Call) and last_name(t.func) != "isclose"]
    return PLAIN if calls else "value"


# ---------------------------------------------------------------- inputs


def shapes_of(asserts: ast.Module, name: str, deep: bool) -> dict[int, Shape]:
    """Learn from the asserts' own calls which arguments are tuples or sets, not lists."""
    shapes: dict[int, Shape] = {}
    for node in ast.walk(asserts):
        if isinstance(node, ast.Call) and last_name(node.func) == name:
            for place, given in enumerate(node.args):
                shapes[place] = shape_of(given, shapes.get(place, Shape(deep=deep)))
    return shapes


def _inputs(row: Row, field: str, view: str, shapes: dict[int, Shape]) -> Inputs:
    """Write a row's inputs as sources of tuples. Raises NoProblem."""
    given = row.fields.get(field) or []
    if not isinstance(given, list) or not all(isinstance(one, list) for one in given):
        raise NoProblem(f"{field} is no list of lists of arguments")
    tolerance = row.fields.get("atol") or 0
    if not isinstance(tolerance, int | float):
        raise NoProblem("atol is no number")
    return Inputs(tuple(_tuple(one, shapes) for one in given), view, float(tolerance))


def _tuple(arguments: list[Any], shapes: dict[int, Shape]) -> str:
    parts = [argument(one, shapes.get(place)) for place, one in enumerate(arguments)]
    return f"({', '.join(parts)},)" if parts else "()"
