"""Tests in Rust source: cut into units of one assertion each, filtered, with the reasons kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from reflexfix.rust import syntax, uses
from reflexfix.task import Dropped

ASSERTS = ("assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq",
           "debug_assert_ne")  # fmt: skip
FORBIDDEN_PATHS = ("fs", "net", "process", "env", "thread", "os", "ffi")
FORBIDDEN_WORDS = ("stdin", "include_str", "include_bytes", "include", "asm", "global_asm")
MOST_CHARACTERS = 6000


@dataclass(frozen=True)
class Context:
    """What the filter knows of the target and its file."""

    target: str
    """The function's own name."""
    owner: str = ""
    """The type that it is a method of."""
    is_trait_method: bool = False
    crate: str = ""
    """The name that the user's crate goes by in its own documentation."""
    is_whole: bool = False
    """Whether what is compiled is that crate from its root, and not the one file of it."""


@dataclass(frozen=True)
class Unit:
    """One test: what it needs, what it does first, and what it holds."""

    uses: tuple[str, ...]
    items: tuple[Node, ...]
    setup: tuple[Node, ...]
    body: tuple[Node, ...]
    """Usually one assertion; a whole body where it cannot be cut."""
    should_panic: bool = False
    returns: str = ""
    """The type that the test's function returns, where it does."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.items, *self.setup, *self.body)

    @property
    def key(self) -> str:
        """Equal for tests that differ in layout only."""
        return " ".join(syntax.squeezed(node) for node in (*self.setup, *self.body)).rstrip(" ;")

    @property
    def shown(self) -> str:
        """The test as a person would write it: without its `use` lines."""
        return "\n".join(statement_text(n) for n in (*self.setup, *self.body)).strip()


@dataclass(frozen=True)
class Piece:
    """A run of statements that belong together, with the names that are in scope."""

    statements: tuple[Node, ...]
    uses: tuple[str, ...] = ()
    items: tuple[Node, ...] = ()
    should_panic: bool = False
    returns: str = ""
    name: str = ""
    """The function that it is the body of."""


def statement_text(node: Node) -> str:
    """Give a statement with its semicolon, which a macro call at the top has beside it."""
    text = syntax.text(node)
    follows = node.next_sibling
    if node.type == "macro_invocation" and not text.endswith(";"):
        return text + ";"
    bare = follows is not None and follows.type == ";"
    return text + ";" if bare and not text.endswith(";") else text


# ---------------------------------------------------------------- cutting


def pieces(root: Node, target: str) -> list[Piece]:
    """List the tests of a text: `#[test]` functions, `main`, and statements at the top."""
    return list(_pieces(root, target, (), ()))


def _pieces(
    holder: Node, target: str, uses_above: tuple[str, ...], items_above: tuple[Node, ...]
) -> Iterator[Piece]:
    children = [n for n in syntax.statements(holder) if not n.is_error]
    lines = (*uses_above, *_use_lines(holder))
    items = (*items_above, *(n for n in children if _is_helper(n, target)))
    loose = tuple(n for n in children if n.type not in syntax.ITEMS and _is_statement(n))
    if loose:
        yield Piece(loose, lines, items)
    for child in children:
        body = child.child_by_field_name("body")
        if child.type == "mod_item" and body is not None:
            yield from _pieces(body, target, lines, items)
        elif child.type == "function_item" and body is not None and _is_run(child):
            yield _of_function(child, body, lines, items)


def _of_function(child: Node, body: Node, lines: tuple[str, ...], items: tuple[Node, ...]) -> Piece:
    panics = "should_panic" in syntax.attribute_names(child)
    returned = syntax.text(child.child_by_field_name("return_type"))
    inner = (*lines, *_use_lines(body))
    inside = tuple(n for n in syntax.statements(body) if n.type != "use_declaration")
    returns = "" if returned == "()" else returned
    return Piece(inside, inner, items, panics, returns, syntax.name_of(child))


def _use_lines(holder: Node) -> tuple[str, ...]:
    leaves = [leaf for leaf in uses.all_of(holder) if leaf.path[0] not in ("super", "self")]
    return tuple(leaf.line for leaf in leaves if leaf.path[-1] != "test")


def _is_statement(node: Node) -> bool:
    return node.type not in ("attribute_item", "inner_attribute_item", "empty_statement")


def _is_test(item: Node) -> bool:
    name = syntax.name_of(item)
    listed = item.child_by_field_name("parameters")
    takes = bool(syntax.statements(listed)) if listed is not None else False
    named = name == "main" or name.startswith("test_") or name == "test"
    return "test" in syntax.attribute_names(item) or (named and not takes)


def _is_run(item: Node) -> bool:
    return _is_test(item) and "ignore" not in syntax.attribute_names(item)


def _is_helper(item: Node, target: str) -> bool:
    if item.type not in syntax.ITEMS or item.type in (
        "use_declaration",
        "extern_crate_declaration",
    ):
        return False
    if item.type == "function_item":
        return not _is_test(item) and syntax.name_of(item) != target
    return not (item.type == "mod_item" or syntax.is_test_only(item))


def units(piece: Piece) -> list[Unit]:
    """Cut a piece into one unit for each assertion, with what stands before it."""
    whole = Unit(piece.uses, piece.items, (), piece.statements, piece.should_panic, piece.returns)
    if piece.should_panic or piece.returns:
        return [trimmed(whole)]
    found: list[Unit] = []
    setup: list[Node] = []
    changing = {name for node in piece.statements for name in bound_by(node, mutable=True)}
    for node in piece.statements:
        if asserts_in(node):
            found.append(trimmed(replace(whole, setup=tuple(setup), body=(node,))))
        if not asserts_in(node) or syntax.words(node) & changing:
            setup.append(node)
    return found


def whole_unit(piece: Piece) -> Unit:
    """Keep a piece in one."""
    return trimmed(
        Unit(piece.uses, piece.items, (), piece.statements, piece.should_panic, piece.returns)
    )


def asserts_in(node: Node) -> list[Node]:
    """List the assertions at or below a statement."""
    return [n for n in syntax.find(node, "macro_invocation") if syntax.macro_name(n) in ASSERTS]


def trimmed(unit: Unit) -> Unit:
    """Leave out statements and helpers that have nothing to do with what the test holds."""
    words = set[str]().union(*(syntax.words(node) for node in unit.body))
    local = set[str]().union(*(bound_by(node) for node in unit.setup))
    setup: list[Node] = []
    for node in reversed(unit.setup):
        own = bound_by(node) or syntax.words(node) & local
        if own & words or not own:
            setup.append(node)
            words |= syntax.words(node)
    items: list[Node] = []
    waiting = list(unit.items)
    while needed := [n for n in waiting if syntax.name_of(n) in words]:
        waiting = [n for n in waiting if n not in needed]
        items += needed
        words = words.union(*(syntax.words(node) for node in needed))
    in_order = tuple(sorted(items, key=lambda node: node.start_byte))
    return replace(unit, setup=tuple(reversed(setup)), items=in_order)


def bound_by(node: Node, mutable: bool = False) -> set[str]:
    """Name what a `let` binds, or what of it can change."""
    pattern = node.child_by_field_name("pattern")
    if node.type != "let_declaration" or pattern is None:
        return set()
    if mutable and not any(syntax.find(node, "mutable_specifier")):
        return set()
    return {syntax.text(n) for n in syntax.find(pattern, "identifier")}


# ---------------------------------------------------------------- filtering


def why_not(unit: Unit, context: Context) -> str:
    """Say why a test is not worth running; "" when it is."""
    if any(node.has_error for node in unit.nodes):
        return "is not valid Rust"
    if sum(len(syntax.text(node)) for node in unit.nodes) > MOST_CHARACTERS:
        return "is too long"
    if not calls_target(unit, context):
        return f"does not call {context.target}"
    if reason := forbidden(unit):
        return reason
    if not unit.should_panic and all(map(is_true_by_itself, unit.body)):
        return "is true by itself"
    return ""


def calls_target(unit: Unit, context: Context) -> bool:
    """Whether an assertion depends on the target, directly or through what came before."""
    words = set[str]().union(*(syntax.words(node) for node in (*unit.setup, *unit.body)))
    helped = words.union(*(syntax.words(node) for node in unit.items))
    if context.is_trait_method and context.owner in helped:
        return True
    return context.target in helped


def forbidden(unit: Unit) -> str:
    """Name what a test may not do."""
    for node in unit.nodes:
        tokens = syntax.leaves(node)
        if "unsafe" in tokens:
            return "uses unsafe"
        for number, token in enumerate(tokens):
            after = tokens[number + 1] if number + 1 < len(tokens) else ""
            if token in FORBIDDEN_PATHS and after == "::":
                return f"uses {token}"
            if token in FORBIDDEN_WORDS:
                return f"uses {token}"
    for line in unit.uses:
        path = line.removeprefix("use ").split("::")
        if path[0] == "std" and len(path) > 1 and path[1] in FORBIDDEN_PATHS:
            last = path[-1].rstrip(";")
            if any(last in syntax.words(node) for node in unit.nodes):
                return f"uses {path[1]}"
    return ""


def is_true_by_itself(node: Node) -> bool:
    """Whether an assertion compares a thing with itself, or holds nothing."""
    found = asserts_in(node)
    if len(found) != 1 or node.type not in ("expression_statement", "macro_invocation"):
        return False
    sides = arguments(found[0])
    name = syntax.macro_name(found[0]).removeprefix("debug_")
    if name == "assert_eq":
        return len(sides) >= 2 and squeeze(sides[0]) == squeeze(sides[1])
    return name == "assert" and bool(sides) and sides[0].strip() == "true"


def squeeze(code: str) -> str:
    return syntax.squeezed(syntax.parse(code.encode("utf-8", "replace")))


def arguments(call: Node) -> list[str]:
    """Cut the arguments of a macro call at those commas that part whole expressions."""
    tree = syntax.token_tree(call)
    if tree is None:
        return []
    data, start = tree.text or b"", tree.start_byte
    commas = [n.start_byte - start for n in tree.children if n.type == ","]
    found: list[str] = []
    begin = 1
    for comma in [*commas, len(data) - 1]:
        part = data[begin:comma].decode("utf-8", "replace").strip()
        if part and syntax.is_expression(part):
            found.append(part)
            begin = comma + 1
    return found


def parse(answer: str) -> tuple[list[Node], list[Dropped]]:
    """Give the trees of an answer's blocks, and what of them is not Rust."""
    from reflexfix.rust.answer import blocks

    roots, dropped = [], []
    answer = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    for block in blocks(answer):
        root = syntax.parse(block.encode("utf-8", "replace"))
        roots.append(root)
        if root.has_error:
            bad = [n for n in root.children if n.has_error and "assert" in syntax.text(n)]
            dropped += [Dropped(syntax.text(n)[:200], "is not valid Rust") for n in bad]
    return roots, dropped
