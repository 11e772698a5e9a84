"""Find the one function that is to be written, and where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from reflexfix.errors import UsageProblem
from reflexfix.rust import syntax

UNWRITTEN = ("todo", "unimplemented")
_WORDS = ("not implemented", "not yet implemented", "todo", "unimplemented")


@dataclass(frozen=True)
class Found:
    """A function with a body, and the modules, impl blocks, traits and functions around it."""

    node: Node
    around: tuple[Node, ...] = ()
    """Outermost first."""

    @property
    def own_name(self) -> str:
        return syntax.text(self.node.child_by_field_name("name"))

    @property
    def name(self) -> str:
        """The path, as `--function` takes it; a trait's method names the trait too."""
        parts: list[str] = []
        for node in self.around:
            parts.append(syntax.name_of(node))
            if trait := syntax.type_name(node.child_by_field_name("trait")):
                parts.append(trait)
        return "::".join([*parts, self.own_name])

    @property
    def names(self) -> set[str]:
        """All paths that it answers to: with and without the trait that it implements."""
        plain = "::".join([*(syntax.name_of(node) for node in self.around), self.own_name])
        return {self.name, plain}

    @property
    def modules(self) -> tuple[Node, ...]:
        return tuple(node for node in self.around if node.type == "mod_item")

    @property
    def owner(self) -> Node | None:
        """The impl block or trait that it is a method of."""
        inner = self.around[-1] if self.around else None
        return inner if inner is not None and inner.type in ("impl_item", "trait_item") else None

    @property
    def holders(self) -> tuple[Node, ...]:
        """The functions that it is written inside of, outermost first."""
        return tuple(node for node in self.around if node.type == "function_item")

    @property
    def outermost(self) -> Node:
        """The item of its module that holds it."""
        return self.owner or self.node

    @property
    def body(self) -> Node:
        body = self.node.child_by_field_name("body")
        assert body is not None
        return body

    @property
    def modifiers(self) -> set[str]:
        found = [n for n in self.node.children if n.type == "function_modifiers"]
        return {word for node in found for word in syntax.leaves(node)}

    @property
    def is_async(self) -> bool:
        return "async" in self.modifiers


def functions(root: Node) -> Iterator[Found]:
    """List every function of the file that has a body, in the order of the text.

    Those inside of other functions too, but not what types and modules in there have.
    """
    waiting: list[tuple[Node, tuple[Node, ...]]] = [(root, ())]
    while waiting:
        node, around = waiting.pop()
        body = node.child_by_field_name("body")
        if node.type == "function_item" and body is not None:
            yield Found(node, around)
        if node.type in ("function_item", *_HOLDERS):
            is_open = body is not None and not (node.type in _HOLDERS and _is_inside(around))
            waiting += [(body, (*around, node))] if body is not None and is_open else []
        elif node.type in ("source_file", "declaration_list") or _is_inside(around):
            waiting += [(child, around) for child in reversed(node.named_children)]


_HOLDERS = ("mod_item", "impl_item", "trait_item")


def _is_inside(around: tuple[Node, ...]) -> bool:
    return bool(around) and around[-1].type == "function_item"


def choose(root: Node, wanted: str | None, file: str) -> Found:
    """Pick the function that was named, or the only unfinished one.

    Raises UsageProblem with the candidates when there is none, or more than one.
    """
    every = [found for found in functions(root) if not for_tests(found)]
    if wanted:
        return _named(every, wanted, file)
    open_ones = [found for found in every if is_unfinished(found)]
    if len(open_ones) == 1:
        return open_ones[0]
    if not open_ones:
        raise UsageProblem(
            f"{file} has no unfinished function."
            + (f" It has: {_listed(every)}." if every else " It has no function at all."),
            hint="name one with --function NAME, and give --tests FILE to repair a finished one",
        )
    raise UsageProblem(
        f"{file} has {len(open_ones)} unfinished functions: {_listed(open_ones)}.",
        hint="name one with --function NAME",
    )


def for_tests(found: Found) -> bool:
    """Whether a function is a test, or lies in a module of tests."""
    return any(syntax.is_test_only(node) for node in (*found.around, found.node))


def _named(every: list[Found], wanted: str, file: str) -> Found:
    wanted = wanted.replace(".", "::").removeprefix("crate::")
    exact = [found for found in every if wanted in found.names]
    ending = [f for f in every if any(name.endswith("::" + wanted) for name in f.names)]
    matches = exact or ending
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageProblem(
            f"{file} has {len(matches)} functions called {wanted}: {_listed(matches)}.",
            hint="name one with its path, as they are listed",
        )
    raise UsageProblem(
        f"{file} has no function {wanted}." + (f" It has: {_listed(every)}." if every else "")
    )


def _listed(some: list[Found]) -> str:
    names = list(dict.fromkeys(found.name for found in some))
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


# ---------------------------------------------------------------- what counts as unfinished


def is_unfinished(found: Found) -> bool:
    """Say whether a body only stands in for one: todo!(), unimplemented!(), or nothing.

    An empty body stands in for one where the signature promises a value.
    """
    inside = syntax.statements(found.body)
    if not inside:
        returned = found.node.child_by_field_name("return_type")
        return returned is not None and returned.type != "unit_type"
    *before, last = inside
    return says_unwritten(last) and all(map(_discards, before))


def says_unwritten(node: Node) -> bool:
    name = syntax.macro_name(node)
    if name in UNWRITTEN:
        return True
    words = next(syntax.find(node, "string_content"), None)
    return name == "panic" and syntax.text(words).lower().startswith(_WORDS)


def _discards(node: Node) -> bool:
    """Whether a statement is `let _ = (a, b);`, which only quiets the compiler."""
    pattern = node.child_by_field_name("pattern")
    return node.type == "let_declaration" and syntax.text(pattern) == "_"
