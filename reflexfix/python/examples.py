"""Examples that the user wrote in the docstring, as tests that are trusted.

Never a wrong example: what can be read in two ways is left out.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reflexfix.python import syntax
from reflexfix.python.needs import top_names

MAX_VALUE = 400
"""The longest expected value that is looked for in a line, in characters."""


@dataclass(frozen=True)
class Example:
    """One example: statements to run before it, an expression, and what must come of it."""

    setup: tuple[str, ...]
    expression: str
    value: str | None = None
    """Source of the expected value, when it is a plain literal."""
    text: str | None = None
    """What must be printed, or shown of the value, when it is not."""
    error: str | None = None
    """Name of the expected exception."""
    message: str = ""
    form: str = ">>>"
    """How it is written: `>>>`, or what stands between the call and the value."""

    @property
    def outcome(self) -> tuple[str | None, ...]:
        return (self.value, self.text, self.error, self.message)


def examples(docstring: str, name: str) -> list[Example]:
    """List the examples of a docstring that call the target, each once."""
    found = [*doctests(docstring, name), *written_forms(docstring, name)]
    outcomes: dict[tuple[object, str], set[tuple[str | None, ...]]] = {}
    for example in found:
        outcomes.setdefault((example.setup, example.expression), set()).add(example.outcome)
    firm = [e for e in found if len(outcomes[e.setup, e.expression]) == 1]
    unique = {(e.setup, e.expression): e for e in reversed(firm)}
    return without_formulas(sorted(unique.values(), key=found.index))


def without_formulas(found: list[Example]) -> list[Example]:
    """Leave out `f(1) = 3` where such lines speak of different types: then some are mathematics."""
    kinds = {type(ast.literal_eval(e.value)) for e in found if e.value is not None}
    numbers = {int, float, bool}
    if len(kinds - {type(None)} - numbers) + bool(kinds & numbers) <= 1:
        return found
    return [e for e in found if e.form != "="]


def squeezed(expression: str) -> str:
    """Give an expression in one line, without its comments."""
    tree = syntax.expression(expression)
    return ast.unparse(tree) if tree is not None else expression


# ---------------------------------------------------------------- >>> form


def doctests(docstring: str, name: str) -> Iterator[Example]:
    """Read the `>>>` examples; those without an expected value set the stage for later ones."""
    setup: list[str] = []
    for item in _parsed(docstring):
        source = item.source.strip("\n")
        before = tuple(relevant(setup, source, name))
        if doctest.SKIP in item.options:
            continue
        if as_expression(source) is None or not (item.want or item.exc_msg):
            tree = syntax.module(source)
            setup += [source] if tree is not None and syntax.is_shallow(tree) else []
        elif any(name in names_in(text) for text in (*before, source)):
            example = _doctest_example(item, squeezed(source), before)
            if example is not None:
                yield example


def relevant(setup: list[str], source: str, name: str) -> list[str]:
    """Keep the earlier statements that share a name with this one, directly or through others."""
    common = {name, *dir(builtins)}
    names = names_in(source) - common
    kept: list[str] = []
    for earlier in reversed(setup):
        own = names_in(earlier) - common
        if own & names:
            kept.insert(0, earlier)
            names |= own
    return kept


def _parsed(docstring: str) -> list[doctest.Example]:
    try:
        return doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        return list(_line_by_line(docstring))


def _line_by_line(docstring: str) -> Iterator[doctest.Example]:
    """Read one-line examples where the docstring as a whole does not keep to the form."""
    lines = [line.strip() for line in docstring.splitlines()]
    for line, want in zip(lines, [*lines[1:], ""], strict=True):
        source = line.removeprefix(">>>").strip()
        if line.startswith(">>>") and source and as_value(want) is not None:
            yield doctest.Example(source, want)


def _doctest_example(
    item: doctest.Example, expression: str, setup: tuple[str, ...]
) -> Example | None:
    if item.exc_msg is not None:
        kind, _, message = item.exc_msg.strip().partition(": ")
        detail = doctest.IGNORE_EXCEPTION_DETAIL not in item.options
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", kind):
            return None
        return Example(setup, expression, error=kind, message=message if detail else "")
    want = item.want.strip("\n")
    shown = _argument_of_print(expression)
    if shown is not None and "\n" not in want and "..." not in want:
        return Example(setup, f"str({shown})", value=repr(want))
    value = as_value(want) or (value_in(want, strict=True) if "\n" not in want else None)
    if value is not None and not expression.startswith("print("):
        return Example(setup, expression, value=value)
    if "..." in want or " at 0x" in want or _has_prose(want):
        return None
    return Example(setup, expression, text=want)


def _argument_of_print(expression: str) -> str | None:
    tree = syntax.expression(expression)
    call = tree.body if tree is not None else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return None
    plain = call.func.id == "print" and len(call.args) == 1 and not call.keywords
    return (
        ast.unparse(call.args[0]) if plain and not isinstance(call.args[0], ast.Starred) else None
    )


def _has_prose(want: str) -> bool:
    """Whether a value is followed by lines that are none: text that went on without a gap."""
    first, *rest = want.split("\n")
    return as_value(first) is not None and any(as_value(line) is None for line in rest)


# ---------------------------------------------------------------- f(x) == y and its kin


_ARROW = re.compile(
    r"\s*(?P<form>==>|==|=>|->|➞|→|⇒|=(?!=)|#\s*(?:=>|->|==|➞|→|returns?\b)?"
    r"|(?:should\s+)?(?:returns?|gives?|equals?|evaluates?\s+to)\b:?)\s*"
)
_RAISES = re.compile(
    r"\s*(?:->|=>|➞|→|#)?\s*(?:should\s+)?raises?\s+(?:an?\s+)?(?P<error>[^\W\d][\w.]*)"
)
_LEAD = re.compile(
    r"(?:(?:[*•>+-]\s+|\(?\d+[.)]\s+)*|.*(?::|\b(?:for|assert|e\.g\.|eg|i\.e\.|so|then|thus|and|that|instance)),?)\s*",
    re.IGNORECASE,
)
"""What may stand before a call; anything else may be part of a larger expression."""
_WORDS = {"true": "True", "false": "False", "null": "None", "none": "None"}
_ENDS = re.compile(r"[.;!]?\s*$|[.;!]\s+\S|\s+#|\s+(?:because|since|as|and|while|but)\b|\s+\(")
_UNSURE = re.compile(
    r"\b(?:if|unless|when|otherwise|else|or|not|approx\w*|about|roughly|around)\b|~|≈|\.\.\.|…"
)


def written_forms(docstring: str, name: str) -> Iterator[Example]:
    """Read `f(x) == y`, `f(x) -> y`, `f(x) # => y`, `f(x) returns y` and `f(x) raises E`."""
    answered = {item.source.strip() for item in _parsed(docstring) if item.want or item.exc_msg}
    for line in docstring.splitlines():
        text = line.replace("`", "").strip()
        prompt, text = text.startswith(">>>"), text.removeprefix(">>>").strip()
        start = text.find(name + "(")
        if prompt and text in answered:
            continue
        if start >= 0 and _LEAD.fullmatch(text[:start]) and len(text) <= 4 * MAX_VALUE:
            example = _written(text[start:], name)
            if example is not None:
                yield example


def _written(text: str, name: str) -> Example | None:
    call = balanced_call(text)
    if call is None or _unbound_names(call) != {name}:
        return None
    rest = text[len(call) :]
    if raised := _RAISES.match(rest):
        is_sure = _is_sure(rest[raised.end() :])
        return (
            Example((), squeezed(call), error=raised["error"].strip("."), form="")
            if is_sure
            else None
        )
    arrow = _ARROW.match(rest)
    if arrow is None:
        return None
    value = value_in(rest[arrow.end() :], strict=arrow["form"].strip() == "#")
    form = arrow["form"].strip()
    return _rounded(Example((), squeezed(call), value=value, form=form)) if value else None


def _rounded(example: Example) -> Example:
    """Hold a fraction to as many digits as are written: `f(1, 3) -> 0.33`."""
    digits = re.fullmatch(r"-?\d+\.(\d*[1-9]\d*)", example.value or "")
    if digits is None:
        return example
    return replace(example, expression=f"round({example.expression}, {len(digits[1])})")


def _unbound_names(call: str) -> set[str]:
    """List the names of a call that it does not bind itself: a variable has no known value."""
    tree = syntax.expression(call)
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = [n for n in nodes if isinstance(n, ast.Name)]
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    outer = tree.body.func if tree is not None and isinstance(tree.body, ast.Call) else None
    first = {outer.id} if isinstance(outer, ast.Name) else set()
    return first | ({n.id for n in names} - bound - called)


def balanced_call(text: str) -> str | None:
    """Cut `f(...)` off the front of a line: up to the bracket that closes it."""
    for end, char in enumerate(text):
        if char == ")" and as_expression(text[: end + 1]) is not None:
            return text[: end + 1]
    return None


def value_in(text: str, strict: bool = False) -> str | None:
    """Cut the longest literal off the front of a text; None where the text goes on with it.

    Nothing but a comment may follow where `strict` is set.
    """
    text = text[:MAX_VALUE]
    word = re.match(r"[A-Za-z]+", text)
    if word and word[0] in _WORDS:
        return _WORDS[word[0]] if _is_sure(text[word.end() :], strict) else None
    for end in range(len(text), 0, -1):
        if not text[end - 1].isspace() and (value := as_value(text[:end])) is not None:
            return value if _is_sure(text[len(value) : MAX_VALUE], strict) else None
    return None


def _is_sure(rest: str, strict: bool = False) -> bool:
    """Whether what follows a value neither goes on with it nor takes it back."""
    if strict:
        return re.match(r"[.;]?\s*$|\s+#", rest) is not None
    ends = _ENDS.match(rest) is not None or re.match(r",\s+[A-Za-z]", rest) is not None
    sentence = re.split(r"[.;!](?:\s|$)", rest, maxsplit=1)[0]
    return ends and not _UNSURE.search(sentence if not rest.startswith("...") else rest)


def as_value(text: str) -> str | None:
    """Give the text of a plain value, or None: also for one that may mean something else.

    That is a tuple without brackets, a value in brackets that are no tuple, and a row that ends
    in dots. A full stop behind a number ends a sentence.
    """
    text = text.strip()
    if re.fullmatch(r"-?\d+\.", text):
        text = text[:-1]
    tree = syntax.expression(text) if syntax.is_literal(text) else None
    if tree is None or any(
        isinstance(n, ast.Constant) and n.value is Ellipsis for n in ast.walk(tree)
    ):
        return None
    value = tree.body
    ends_with_value = value.end_col_offset == len(text.rpartition("\n")[2].encode())
    if isinstance(value, ast.Tuple):
        in_brackets = not value.elts or value.elts[0].col_offset > value.col_offset
        return text if in_brackets and ends_with_value else None
    return text if ends_with_value and not text.startswith("(") else None


def as_expression(text: str) -> str | None:
    return text if syntax.expression(text) is not None else None


def names_in(source: str) -> set[str]:
    """List the names and attributes that a piece of code mentions or binds."""
    tree = syntax.module(source)
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    names |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return names | (top_names(tree) if tree is not None else set())
