"""QuixBugs in one file: programs with a bug each, and tests as values or as a module."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from reflexfix.benchmarks.mbpp import docstring
from reflexfix.benchmarks.problem import Problem, Program, Wishes
from reflexfix.benchmarks.python_text import last_function, mentions, parsed
from reflexfix.benchmarks.rows import NoProblem, Row
from reflexfix.python.hidden import is_generator
from reflexfix.python.target import Function

NODE = """\
class Node:
    def __init__(self, value=None, successor=None, successors=(), predecessors=(),
                 incoming_nodes=(), outgoing_nodes=()):
        self.value, self.successor = value, successor
        self.successors, self.predecessors = list(successors), list(predecessors)
        self.incoming_nodes, self.outgoing_nodes = list(incoming_nodes), list(outgoing_nodes)
"""
"""What the tests of graphs and lists make their nodes of, in our own words."""
CLOSE = {"sqrt"}
"""Functions whose last argument says how close their value has to come."""
TUPLES = {"hanoi"}
"""Functions that give a list of pairs, which JSON knows as lists."""
SLOW: dict[str, Callable[[list[Any]], bool]] = {
    "levenshtein": lambda args: min(map(len, args)) > 15,
    "knapsack": lambda args: args[0] > 100_000,
}
"""Cases that take minutes with the right program too, and that QuixBugs's own tests skip."""

SECONDS = {"levenshtein": 60.0}
"""Functions that are slow by their nature, in seconds for all cases that are left."""


def problem(row: Row, wishes: Wishes) -> Problem:
    """Read a row of quixbugs.jsonl (MIT terms, James Koppel)."""
    function, buggy, fixed = row.text("entry_point"), row.text("buggy"), row.text("fixed")
    if not (row.fields.get("json_tests") or row.fields.get("test")):
        raise NoProblem("is a helper of other rows, no task")
    tests, left_out = tests_of(row, function, fixed)
    return Problem(
        id=row.text("task_id"),
        language="python",
        source=documented(buggy, function, wishes.repair),
        function=function,
        hidden=Program(tests),
        solution=fixed,
        seconds=SECONDS.get(function, Problem.seconds),
        notes=(f"slow tests left out: {left_out}",) if left_out else (),
    )


def documented(code: str, function: str, with_body: bool) -> str:
    """Move the text below the function into it as its docstring, with the body or without."""
    tree = parsed(code, "the program")
    node, texts = last_function(tree, function), [n for n in tree.body if _is_text(n)]
    if node is None:
        raise NoProblem(f"the program has no function {function}")
    lines = code.split("\n")
    start, end = node.body[0].lineno - 1, node.end_lineno or node.lineno
    told = ast.literal_eval(texts[-1].value).strip() if texts else function  # type: ignore[attr-defined]
    doc = docstring(told).split("\n")
    last = (texts[-1].lineno - 1) if texts else len(lines)
    body = lines[start:end] if with_body else []
    made = [*lines[:start], *doc, *body, *(lines[end:last] if last > end else [])]
    return "\n".join(made).strip("\n") + "\n"


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def tests_of(row: Row, function: str, fixed: str) -> tuple[str, int]:
    """Write the row's tests as a program, and count those that are left out."""
    listed = row.fields.get("json_tests")
    if listed is None:
        return as_program(row.text("test"), function), 0
    if not isinstance(listed, list) or not all(_is_pair(one) for one in listed):
        raise NoProblem("json_tests is no list of pairs of arguments and value")
    cases = [(args if isinstance(args, list) else [args], value) for args, value in listed]
    slow = SLOW.get(function)
    kept = [case for case in cases if slow is None or not slow(case[0])]
    made = is_generator(fixed, function)
    lines = [_assert(function, args, value, made) for args, value in kept]
    return "\n".join([*lines, ""]), len(cases) - len(kept)


def _is_pair(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 2


def _assert(function: str, args: list[Any], value: Any, made: bool) -> str:
    if function in TUPLES:
        value = [tuple(one) for one in value]
    call = f"{function}({', '.join(map(repr, args))})"
    if function in CLOSE:
        return f"assert abs({call} - {value!r}) <= {args[-1]!r}"
    return f"assert {f'list({call})' if made else call} == {value!r}"


def as_program(tests: str, function: str) -> str:
    """Let a module of pytest call its own tests, with the function where the module is loaded."""
    tree = parsed(tests, "the tests")
    kept = [node for node in tree.body if not _is_loading(node)]
    calls = [f"{n.name}()" for n in kept if isinstance(n, Function) and n.name.startswith("test")]
    if not calls:
        raise NoProblem("the tests have no test function")
    head = NODE if mentions(tree, "Node") else ""
    return "\n".join([head, *map(ast.unparse, kept), *calls, ""])


def _is_loading(node: ast.stmt) -> bool:
    """Whether a statement only imports the program, its helpers or pytest."""
    if isinstance(node, ast.If):
        return all(map(_is_loading, [*node.body, *node.orelse]))
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] in (
            "node", "python_programs", "correct_python_programs", "load_testdata",
        )  # fmt: skip
    return isinstance(node, ast.Import) and [alias.name for alias in node.names] == ["pytest"]
