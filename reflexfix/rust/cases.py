"""Make runnable cases of tests and examples: asserts that say what they saw, and the control."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace

from tree_sitter import Node

from reflexfix.attempt import Case, Mode, Origin
from reflexfix.rust import selftests, syntax
from reflexfix.rust.selftests import Context, Unit
from reflexfix.rust.splice import Edit, applied, dedented
from reflexfix.task import Dropped

WIRE = "::reflexfix_wire"
_ORDERS = ("<", "<=", ">", ">=")


def own_cases(
    answer: str, context: Context, taken: Iterable[str]
) -> tuple[list[Unit], list[Dropped]]:
    """Read an answer of tests: the units worth running, in order, and the rest with reasons."""
    roots, dropped = selftests.parse(answer)
    kept: dict[str, Unit] = {}
    known = set(taken)
    for root in roots:
        for piece in selftests.pieces(root, context.target):
            for unit in selftests.units(piece):
                if reason := selftests.why_not(unit, context):
                    dropped.append(Dropped(unit.shown, reason))
                elif unit.key in kept or unit.key in known:
                    dropped.append(Dropped(unit.shown, "repeats another test"))
                else:
                    kept[unit.key] = unit
    return list(kept.values()), dropped


def case_of(
    unit: Unit, name: str, origin: Origin, mode: Mode, context: Context, is_async: bool
) -> Case:
    """Write a unit as the body of a function."""
    return Case(
        name=name,
        source=source_of(unit, context, is_async),
        shown=unit.shown + ("\n(must panic)" if unit.should_panic else ""),
        origin=origin,
        mode=mode,
    )


def source_of(unit: Unit, context: Context, is_async: bool) -> str:
    words = set[str]().union(*(syntax.words(node) for node in unit.nodes))
    named = [f"use {context.crate};"] if context.crate in words else []
    head = [_use_line(line, context) for line in dict.fromkeys([*unit.uses, *named])]
    items = [_item_source(node, context) for node in unit.items]
    lines = [rewritten(node, context) for node in (*unit.setup, *unit.body)]
    body = "\n".join(lines)
    if is_async:
        body = f"{WIRE}::block_on(async {{\n{body}\n}});"
    if unit.returns:
        body = (
            f"fn returning() -> {unit.returns} {{\n{body}\n}}\n{WIRE}::Ending::check(returning());"
        )
    if unit.should_panic:
        body = f"{WIRE}::panics(|| {{\n{body}\n}});"
    known = [line for line in dict.fromkeys(head) if line]
    return "\n".join([*known, *items, body])


def _use_line(line: str, context: Context) -> str:
    """Keep what the standard library gives; take the user's own crate by its name."""
    first = line.removeprefix("use ").split("::")[0].rstrip(";")
    if first in ("std", "core", "alloc", "crate"):
        return line
    if first != context.crate:
        return ""
    rest = line.removeprefix(f"use {first}")
    return f"use crate{rest}" if context.is_whole and rest != ";" else f"use crate as {first};"


def _item_source(node: Node, context: Context) -> str:
    lead = [syntax.text(one).strip() for one in syntax.attributes(node)]
    return "\n".join([*lead, rewritten(node, context)])


# ---------------------------------------------------------------- asserts that say what they saw


def rewritten(node: Node, context: Context) -> str:
    """Give a statement whose assertions are ours."""
    edits = [_edit(call, node.start_byte, context) for call in selftests.asserts_in(node)]
    data = selftests.statement_text(node).encode("utf-8", "replace")
    return dedented(applied(data, edits).decode("utf-8", "replace"))


def _edit(call: Node, start: int, context: Context) -> Edit:
    name = syntax.macro_name(call).removeprefix("debug_")
    sides = selftests.arguments(call)
    if name == "assert":
        return _truth_edit(call, start, sides)
    if name == "assert_eq" and len(sides) >= 2:
        turned = not _mentions(sides[0], context) and _mentions(sides[1], context)
        name = "check_eq_turned" if turned else "check_eq"
    else:
        name = "check_eq" if name == "assert_eq" else "check_ne"
    macro = call.child_by_field_name("macro")
    assert macro is not None
    return Edit(macro.start_byte - start, macro.end_byte - start, f"{WIRE}::{name}")


def _truth_edit(call: Node, start: int, sides: list[str]) -> Edit:
    """Turn `assert!(a == b)` into a comparison that shows both sides."""
    begin, end = call.start_byte - start, call.end_byte - start
    parts = compared(sides[0]) if sides else None
    message = "".join(f", {side}" for side in sides[1:])
    if parts is not None and parts[1] in ("==", "!="):
        name = "check_eq" if parts[1] == "==" else "check_ne"
        return Edit(begin, end, f"{WIRE}::{name}!({parts[0]}, {parts[2]}{message})")
    if parts is not None and parts[1] in _ORDERS and not message:
        return Edit(begin, end, f"{WIRE}::check_order!({parts[0]}, {parts[1]}, {parts[2]})")
    macro = call.child_by_field_name("macro")
    assert macro is not None
    return Edit(macro.start_byte - start, macro.end_byte - start, f"{WIRE}::check_that")


def compared(code: str) -> tuple[str, str, str] | None:
    """Take a comparison apart: left side, sign, right side."""
    root = syntax.parse(f"fn _f() {{ let _v = {code}\n; }}".encode("utf-8", "replace"))
    for node in syntax.find(root, "let_declaration"):
        value = node.child_by_field_name("value")
        if value is None or value.type != "binary_expression":
            return None
        left, right = (syntax.text(value.child_by_field_name(f)) for f in ("left", "right"))
        sign = syntax.text(value.child_by_field_name("operator"))
        return (left, sign, right) if sign in ("==", "!=", *_ORDERS) else None
    return None


def _mentions(code: str, context: Context) -> bool:
    return context.target in syntax.words(syntax.parse(code.encode("utf-8", "replace")))


# ---------------------------------------------------------------- the control


def control_case(cases: Iterable[Case], context: Context) -> tuple[Case | None, str]:
    """Make the test that must fail: a kept test's value, held to show as a private random text.

    A case that runs in-process is preferred, since there the control is the only defence.
    """
    private = f"reflexfix-{secrets.token_hex(8)}"
    ordered = sorted(cases, key=lambda case: case.mode != "in-process")
    for case in ordered:
        source = _held_to(case.source, private, context)
        if source:
            return replace(case, name="control", source=source), private
    return None, ""


def _held_to(source: str, private: str, context: Context) -> str:
    """Make the first check of a test one that its value shows as the private text."""
    data = source.encode("utf-8", "replace")
    root = syntax.parse(data)
    for call in syntax.find(root, "macro_invocation"):
        name = syntax.macro_name(call)
        sides = selftests.arguments(call) if name.startswith("check_") else []
        if sides:
            value = sides[1] if name == "check_eq_turned" and len(sides) > 1 else sides[0]
            if name == "check_ne" and not _mentions(value, context):
                value = sides[1]
            new = f'{WIRE}::check_control!({value}, "{private}")'
            edit = Edit(call.start_byte, call.end_byte, new)
            return applied(data, [edit]).decode("utf-8", "replace")
    if f"{WIRE}::panics(" in source:
        caught = "::std::panic::catch_unwind(::std::panic::AssertUnwindSafe("
        turned = source.replace(f"{WIRE}::panics(", f"let ended = {caught}", 1)
        turned = turned.rstrip().removesuffix(");") + "));"
        return turned + f'\n{WIRE}::check_control!(ended.is_err(), "{private}");'
    return ""
