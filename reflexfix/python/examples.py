"""Examples that the user wrote in the docstring, as tests that are trusted."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix.python import syntax

MAX_VALUE = 400
"""The longest expected value that is looked for in a line, in characters."""

_ARROWS = re.compile(
    r"\s*(?:==>|==|=>|->|➞|→|⇒|=(?!=)|#\s*(?:=>|->|==|returns?)?"
    r"|(?:should\s+)?(?:returns?|gives?|equals?|evaluates?\s+to)\b:?)\s*"
)
_RAISES = re.compile(r"\s*(?:->|=>|➞|→|#)?\s*(?:should\s+)?raises?\s+(?:an?\s+)?([A-Za-z_][\w.]*)")


@dataclass(frozen=True)
class Example:
    """One example: statements to run before it, an expression, and what must come of it."""

    setup: tuple[str, ...]
    expression: str
    value: str | None = None
    """Source of the expected value, when it is a plain literal."""
    text: str | None = None
    """What must be printed, when it is not."""
    error: str | None = None
    """Name of the expected exception."""
    message: str = ""


def examples(docstring: str, name: str) -> list[Example]:
    """List the examples of a docstring that call the target, each once."""
    found = [*doctests(docstring, name), *written_forms(docstring, name)]
    unique = {(e.setup, squeezed(e.expression)): e for e in reversed(found)}
    return sorted(unique.values(), key=found.index)


def squeezed(expression: str) -> str:
    tree = syntax.expression(expression)
    return ast.unparse(tree) if tree is not None else expression


# ---------------------------------------------------------------- >>> form


def doctests(docstring: str, name: str) -> Iterator[Example]:
    """Read the `>>>` examples; those without an expected value set the stage for later ones."""
    try:
        parsed = doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        parsed = list(_line_by_line(docstring))
    setup: list[str] = []
    for item in parsed:
        source = item.source.strip("\n")
        expression = as_expression(source)
        if expression and name in names_called(expression) and (item.want or item.exc_msg):
            example = _doctest_example(item, expression, tuple(setup))
            if example is not None:
                yield example
        elif syntax.module(source) is not None:
            setup.append(source)


def _line_by_line(docstring: str) -> Iterator[doctest.Example]:
    """Read examples one at a time where the docstring as a whole does not keep to the form."""
    lines = docstring.splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith(">>>"):
            source = line.strip()[3:].strip()
            want = lines[number + 1].strip() if number + 1 < len(lines) else ""
            if source and want and not want.startswith(">>>"):
                yield doctest.Example(source, want)


def _doctest_example(
    item: doctest.Example, expression: str, setup: tuple[str, ...]
) -> Example | None:
    if item.exc_msg is not None:
        kind, _, message = item.exc_msg.strip().partition(": ")
        return Example(setup, expression, error=kind, message=message)
    want = item.want.strip()
    literal = longest_literal(want) if "\n" not in want or syntax.is_literal(want) else None
    if literal is not None and (syntax.is_literal(want) or not want[len(literal) :].strip(" .;,")):
        return Example(setup, expression, value=literal)
    if syntax.is_literal(want):
        return Example(setup, expression, value=want)
    return Example(setup, expression, text=item.want)


# ---------------------------------------------------------------- f(x) == y and its kin


def written_forms(docstring: str, name: str) -> Iterator[Example]:
    """Read `f(x) == y`, `f(x) -> y`, `f(x) # => y`, `f(x) returns y` and `f(x) raises E`."""
    for line in docstring.splitlines():
        text = line.strip().strip("`*-• ").replace("`", "")
        if ">>>" in text:
            text = text.replace(">>>", "", 1).strip()
        start = text.find(name + "(")
        if start < 0 or (start and (text[start - 1].isalnum() or text[start - 1] in "_.")):
            continue
        example = _written(text[start:].removeprefix("assert "))
        if example is not None:
            yield example


def _written(text: str) -> Example | None:
    call = balanced_call(text)
    if call is None or as_expression(call) is None:
        return None
    rest = text[len(call) :]
    if raised := _RAISES.match(rest):
        return Example((), call, error=raised.group(1))
    arrow = _ARROWS.match(rest)
    value = arrow and longest_literal(rest[arrow.end() :])
    return Example((), call, value=value) if value else None


def balanced_call(text: str) -> str | None:
    """Cut `f(...)` off the front of a line: up to the bracket that closes it."""
    for end, char in enumerate(text):
        if char == ")" and as_expression(text[: end + 1]) is not None:
            return text[: end + 1]
    return None


def longest_literal(text: str) -> str | None:
    """Cut the longest Python literal off the front of a text; the rest must not go on with it."""
    text = text[:MAX_VALUE]
    for end in range(len(text), 0, -1):
        if text[end - 1].isspace() or not syntax.is_literal(text[:end]):
            continue
        rest = text[end:]
        if not rest or rest[0].isspace() or rest[0] in ".,;)#!":
            return None if rest[:1] == "." and rest[1:2].isdigit() else text[:end]
    return None


def as_expression(text: str) -> str | None:
    return text if syntax.expression(text) is not None else None


def names_called(expression: str) -> set[str]:
    """List the functions and methods that an expression calls or mentions."""
    tree = syntax.expression(expression)
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    return names | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
