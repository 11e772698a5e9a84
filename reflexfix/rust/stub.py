"""The two ends of a call between processes: the typed stub, and what serves the candidate.

The stub takes the place of the target's body in the crate of the tests; the server is a module
beside the target in the candidate's crate. Neither names a type: both are inferred from the
signature, which is the same on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from reflexfix.rust import syntax
from reflexfix.rust.splice import Edit
from reflexfix.rust.target import Found
from reflexfix.rust.types import Names, crosses, is_mutable

FOLDER = "/tmp/rust"
"""Where a crate lies inside."""
MODULE = "reflexfix_module.rs"
"""The file beside the user's that holds the server, or the tests."""
COPIES = "reflexfix_copies.rs"
"""The file that holds what a function is written with inside of another one."""

Kind = Literal["value", "changed", "changed items"]


@dataclass(frozen=True)
class Parameter:
    """One parameter as the stub and the server see it."""

    pattern: Node
    kind: Kind
    is_mut: bool
    """Whether its pattern begins with `mut`."""


def parameters(found: Found, names: Names) -> list[Parameter] | None:
    """List the parameters when the whole signature crosses; None when it does not."""
    node = found.node
    if found.owner is not None or {"unsafe", "extern"} & found.modifiers or _is_generic(node):
        return None
    if not crosses(node.child_by_field_name("return_type"), names):
        return None
    listed = node.child_by_field_name("parameters")
    assert listed is not None
    found_ones = [_parameter(n, names) for n in syntax.statements(listed)]
    kept = [one for one in found_ones if one is not None]
    return kept if len(kept) == len(found_ones) else None


def _is_generic(node: Node) -> bool:
    listed = node.child_by_field_name("type_parameters")
    kinds = {n.type for n in syntax.statements(listed)} if listed is not None else set()
    return bool(kinds - {"lifetime_parameter"})


def _parameter(node: Node, names: Names) -> Parameter | None:
    pattern, kind = node.child_by_field_name("pattern"), node.child_by_field_name("type")
    if node.type != "parameter" or pattern is None or kind is None:
        return None
    is_mut = any(child.type == "mutable_specifier" for child in node.children)
    if not (kind.type == "reference_type" and is_mutable(kind)):
        return Parameter(pattern, "value", is_mut) if crosses(kind, names) else None
    inner = kind.child_by_field_name("type")
    if inner is not None and inner.type == "array_type" and inner.child_by_field_name("length"):
        return Parameter(pattern, "changed", is_mut) if crosses(inner, names) else None
    if inner is None or not crosses(inner, names) or syntax.text(inner) == "str":
        return None
    is_slice = inner.type == "array_type"
    return Parameter(pattern, "changed items" if is_slice else "changed", is_mut)


def stub_edits(found: Found, some: list[Parameter]) -> list[Edit]:
    """Turn the target into one that asks the candidate's process."""
    edits = []
    for number, one in enumerate(some):
        start = one.pattern.start_byte
        if one.is_mut and one.pattern.prev_sibling is not None:
            start = one.pattern.prev_sibling.start_byte
        edits.append(Edit(start, one.pattern.end_byte, _name(number)))
    edits += [Edit(n.start_byte, n.end_byte, "") for n in _const_words(found.node)]
    return [*edits, Edit(found.body.start_byte, found.body.end_byte, stub_body(some))]


def _const_words(node: Node) -> list[Node]:
    modifiers = [n for n in node.children if n.type == "function_modifiers"]
    return [n for m in modifiers for n in m.children if n.type == "const"]


def _name(number: int) -> str:
    return f"reflexfix_{number}"


def stub_body(some: list[Parameter]) -> str:
    sent, read = "", ""
    for number, one in enumerate(some):
        name = _name(number)
        how = {"value": f"&{name}", "changed": f"&*{name}", "changed items": f"&&*{name}"}
        sent += f".with({how[one.kind]})"
        if one.kind == "changed":
            read += f"reply.changed({name});\n"
        elif one.kind == "changed items":
            read += f"reply.changed_items({name});\n"
    call = f"let mut reply = ::reflexfix_wire::Call::default(){sent}.made();"
    return f"{{\n{call}\n{read}reply.value()\n}}"


def server(found: Found, some: list[Parameter]) -> str:
    """Write the module that answers calls of the target."""
    gets, passed, back = "", [], ""
    for number, one in enumerate(some):
        name = _name(number)
        kind = {"value": "", "changed": "mut ", "changed items": "mut "}[one.kind]
        of = ": Vec<_>" if one.kind == "changed items" else ""
        gets += f"    let {kind}{name}{of} = ::reflexfix_wire::Wire::get(input)?;\n"
        how = {"value": name, "changed": f"&mut {name}", "changed items": f"&mut {name}[..]"}
        passed.append(how[one.kind])
        if one.kind != "value":
            back += f"    ::reflexfix_wire::Wire::put(&{name}, &mut changed);\n"
    call = f"super::{found.own_name}({', '.join(passed)})"
    if found.is_async:
        call = f"::reflexfix_wire::block_on({call})"
    return f"""#![allow(warnings)]
fn answer(
    input: &mut ::reflexfix_wire::Reader,
    output: &mut Vec<u8>,
) -> Result<(), ::reflexfix_wire::Malformed> {{
{gets}    input.end()?;
    let mut value = Vec::<u8>::new();
    ::reflexfix_wire::Wire::put(&{call}, &mut value);
    let mut changed = Vec::<u8>::new();
{back}    output.extend(changed);
    output.extend(value);
    Ok(())
}}
::reflexfix_wire::serve_with!(answer);
"""


def door(data: bytes, found: Found) -> list[Edit]:
    """Say where the user's file is told of the module beside it: at the end of the target's."""
    line = LINE if not found.holders else f'#[path = "{FOLDER}/{COPIES}"] mod __reflexfix_copies;'
    if found.modules:
        body = found.modules[-1].child_by_field_name("body")
        assert body is not None
        return [Edit(body.end_byte - 1, body.end_byte - 1, f"\n{line}\n")]
    return [Edit(len(data), len(data), f"\n{line}\n")]


LINE = f'#[path = "{FOLDER}/{MODULE}"] mod __reflexfix;'


def known(edition: str) -> bytes:
    """What a crate's root needs to know the wire by: in 2015, paths begin in the crate itself."""
    return b"\nextern crate reflexfix_wire;\n" if edition == "2015" else b""


def copies(found: Found) -> bytes:
    """Write a module of what the target is written with inside of other functions, and of it.

    Nothing outside of a function sees what is written inside of it, so the tests see a copy.
    """
    items: dict[str, Node] = {}
    place = found.node.parent
    while place is not None and place.type not in ("mod_item", "source_file"):
        for item in place.named_children if place.type == "block" else ():
            key = f"impl {item.id}" if item.type == "impl_item" else syntax.name_of(item)
            if item.type in syntax.ITEMS and key:
                items.setdefault(key, item)
            elif item.type == "use_declaration":
                items[f"use {item.id}"] = item
        place = place.parent
    own = {syntax.name_of(n) for n in items.values() if n.type in ("struct_item", "enum_item")}
    kept = [n for n in items.values() if n.type != "impl_item" or syntax.name_of(n) in own]
    texts = [
        "\n".join(syntax.text(part).rstrip("\n") for part in [*syntax.attributes(item), item])
        for item in sorted(kept, key=lambda node: node.start_byte)
    ]
    return "\n".join(["#![allow(warnings)]", "use super::*;", *texts, LINE, ""]).encode()


# ---------------------------------------------------------------- without a wire


def hollow_body(found: Found) -> str:
    """Write a body that has the right type and no use, to check tests against the signature."""
    returned = found.node.child_by_field_name("return_type")
    traits = (
        {syntax.type_name(n) for n in syntax.find(returned, "abstract_type")} if returned else set()
    )
    words = syntax.words(returned) if returned is not None and traits else set()
    if words & {"Iterator", "DoubleEndedIterator", "ExactSizeIterator"}:
        return "{ ::std::iter::empty() }"
    if words & {"Fn", "FnMut", "FnOnce"}:
        return "{ |" + ", ".join("_" * _arity(returned)) + "| todo!() }"
    return "{ loop {} }"


def _arity(returned: Node | None) -> int:
    kinds = list(syntax.find(returned, "function_type")) if returned is not None else []
    listed = kinds[0].child_by_field_name("parameters") if kinds else None
    return len(syntax.statements(listed)) if listed is not None else 0
