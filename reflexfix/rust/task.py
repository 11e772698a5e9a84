"""One Rust function in one Rust file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from tree_sitter import Node

from reflexfix.attempt import Candidate, Case, Mode, UserTests
from reflexfix.errors import UsageProblem
from reflexfix.rust import answer as answers
from reflexfix.rust import (
    cases,
    examples,
    mutants,
    scope,
    selftests,
    splice,
    stub,
    syntax,
    target,
    uses,
)
from reflexfix.rust import tree as trees
from reflexfix.rust.crate import Crate, around, crates_used
from reflexfix.rust.selftests import Context, Unit
from reflexfix.rust.splice import Edit
from reflexfix.rust.tree import Tree
from reflexfix.rust.types import names_in
from reflexfix.task import Dropped, Reading, Site, read_file

MAX_BYTES = 2_000_000
"""Larger files are refused: nobody keeps one function in them."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class RustTask:
    """A target in a Rust file, with the crate around it."""

    path: Path
    original: bytes
    root: Node
    found: target.Found
    crate: Crate
    tree: Tree
    body_only: bool = False
    language: str = "rust"

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def source(self) -> bytes:
        """The file without a byte order mark: what the tree's offsets count in."""
        return self.original.removeprefix(_BOM)

    @cached_property
    def documentation(self) -> str:
        return examples.documentation(self.found.node)

    @cached_property
    def id(self) -> str:
        text = "\0".join([self.language, self.name, scope.header(self.found.node)])
        return sha256(f"{text}\0{self.documentation}".encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def unfinished(self) -> bool:
        return target.is_unfinished(self.found)

    @property
    def packages(self) -> tuple[str, ...]:
        asked = self.crate.dependencies
        roots = [self.root, *(syntax.parse(data) for data in self.tree.rust_files)]
        found = [name for root in roots for name in crates_used(root, asked)]
        own = self.tree.names if self.crate.edition == "2015" else set[str]()
        return tuple(name for name in dict.fromkeys(found) if name not in {*own, self.crate.name})

    def remedy(self, missing: tuple[str, ...]) -> str:
        leave = "leave the `use` line out if nothing needs it"
        if not self.crate.dependencies:
            return f"{leave}; crates can be had where a Cargo.toml above the file asks for them"
        command = f"reflexfix sandbox build --with-crates {self.crate.folder}"
        return f"`{command}` builds in what its Cargo.toml asks for; or {leave}"

    @property
    def old_body(self) -> str:
        return "" if self.unfinished else answers.body_text(self.found.node)

    @property
    def holder(self) -> Node:
        """The innermost module that holds the target, or the file."""
        inner = self.found.modules[-1] if self.found.modules else None
        body = inner.child_by_field_name("body") if inner is not None else None
        return body if body is not None else self.root

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that the target's module has."""
        bodies = [node.child_by_field_name("body") for node in self.found.holders]
        places = [self.holder, *(body for body in bodies if body is not None)]
        items = [n for place in places for n in place.named_children if n.type in syntax.ITEMS]
        found = {syntax.name_of(n) for n in items if n.type != "impl_item"}
        leaves = uses.all_of(self.holder)
        if self.holder is not self.root and any(leaf.path == ("super", "*") for leaf in leaves):
            leaves += uses.all_of(self.root)
            found |= {syntax.name_of(n) for n in self.root.named_children if n.type in syntax.ITEMS}
        return frozenset(found | {leaf.name for leaf in leaves if not leaf.is_glob})

    @cached_property
    def context(self) -> Context:
        owner = self.found.owner
        return Context(
            target=self.found.own_name,
            owner=syntax.name_of(owner) if owner is not None else "",
            is_trait_method=owner is not None and owner.child_by_field_name("trait") is not None,
            crate=self.crate.name if self.crate.name not in self.names else "",
            is_whole=bool(self.tree.others) or trees.is_root(self.path.absolute(), self.crate),
        )

    @cached_property
    def parameters(self) -> list[stub.Parameter] | None:
        """The target's parameters, if all of its signature crosses."""
        return stub.parameters(self.found, names_in(self.holder))

    def scope(self, tokens: int) -> str:
        return scope.described(self.source, self.root, self.found, tokens)

    def read(self, answer: str) -> Reading:
        reading = answers.read(answer, self.found, self.names, self.body_only)
        if reading.code is None:
            return Reading(why=reading.why)
        file = splice.spliced(self.source, self.root, self.found, reading.code)
        place = syntax.first_error(syntax.parse(file))
        if place is not None and not self.root.has_error:
            return Reading(why=f"the answer does not fit into the file: line {place[0]}")
        return Reading(reading.code.text, self.bom + file, reading.why)

    @property
    def bom(self) -> bytes:
        return _BOM if self.original.startswith(_BOM) else b""

    # ------------------------------------------------------------ tests

    @cached_property
    def example_units(self) -> list[Unit]:
        found = examples.units(self.documentation, self.context.target)
        return [u for u in found if not selftests.why_not(u, self.context)]

    def own_tests(self, answer: str, some: Iterable[Case]) -> tuple[list[Case], list[Dropped]]:
        known = [unit.key for unit in self.example_units]
        kept, dropped = cases.own_cases(answer, self.context, known)
        return [self._case(u, f"own {n}", "own") for n, u in enumerate(kept, 1)], dropped

    def examples(self) -> list[Case]:
        """Make cases of the documentation's examples, and of the tests in the file itself."""
        found = [self._case(u, f"example {n}", "example")
                 for n, u in enumerate(self.example_units, 1)]  # fmt: skip
        return [*found, *self._user_cases(self.root, "test")]

    def _case(self, unit: Unit, name: str, origin: str) -> Case:
        return cases.case_of(unit, name, origin, self._mode(unit), self.context,  # type: ignore[arg-type]
                             self.found.is_async)  # fmt: skip

    def _user_cases(self, root: Node, kind: str) -> list[Case]:
        """Make cases of the `#[test]` functions that have to do with the target."""
        found: list[Case] = []
        for piece in selftests.pieces(root, self.context.target):
            unit = selftests.whole_unit(piece)
            is_test = piece.name and piece.name != "main"
            if (is_test or root is not self.root) and selftests.calls_target(unit, self.context):
                name = f"{kind} {piece.name or len(found) + 1}"
                found.append(self._case(unit, name, "user"))
        return found

    def _mode(self, unit: Unit) -> Mode:
        """Split where the signature crosses and the test reads nothing that the target changes."""
        if self.parameters is None:
            return "in-process"
        words = set[str]().union(*(syntax.words(node) for node in unit.nodes))
        return "in-process" if words & self.changeable else "split"

    @cached_property
    def changeable(self) -> set[str]:
        """Name the statics and thread locals of the file."""
        roots = [self.root, *(syntax.parse(data) for data in self.tree.rust_files)]
        statics = {syntax.name_of(n) for root in roots for n in syntax.find(root, "static_item")}
        local = [n for n in self.root.named_children if syntax.macro_name(n) == "thread_local"]
        return statics.union(*(syntax.words(n) for n in local)) - {self.context.target}

    def control(self, some: Iterable[Case]) -> tuple[Case | None, str]:
        return cases.control_case(some, self.context)

    def sites(self, file: bytes) -> list[Site]:
        if file.startswith(_BOM):
            return []
        named = (f for f in target.functions(syntax.parse(file)) if f.name == self.name)
        body = next((f.node.child_by_field_name("body") for f in named), None)
        return mutants.sites(body) if body is not None else []

    def user_tests(self, path: Path) -> UserTests:
        data = read_file(path, MAX_BYTES)
        found = self.tests_in(data, path)
        crates = crates_used(syntax.parse(data), self.crate.dependencies)
        packages = tuple(name for name in crates if name != self.crate.name)
        return UserTests({path.name: data}, (path.name,), packages=packages, cases=found)

    def tests_in(self, data: bytes, path: Path) -> tuple[Case, ...]:
        """Make cases of a text of tests; `path` names it. Raises UsageProblem."""
        root = syntax.parse(data)
        if place := syntax.first_error(root):
            raise UsageProblem(f"{path}:{place[0]}:{place[1]}: this is not Rust.")
        found = tuple(self._user_cases(root, path.name))
        if not found:
            raise UsageProblem(f"{path} holds no test of {self.name}.")
        return found

    # ------------------------------------------------------------ the program

    def candidate(self, file: bytes) -> Candidate:
        served = stub.server(self.found, self.parameters) if self.parameters is not None else ""
        node, body = self.found.node, self.found.body
        if self.parameters is not None:
            edits = stub.stub_edits(self.found, self.parameters)
        else:
            edits = [Edit(body.start_byte, body.end_byte, stub.hollow_body(self.found))]
        return Candidate(
            files=self._crate(file.removeprefix(_BOM)) | {stub.MODULE: served.encode()},
            module=self.tree.root,
            target=self.name,
            is_async=self.found.is_async,
            stub_files=self._crate(splice.applied(self.source, edits)),
            edition=self.crate.edition,
            place=(self.tree.own, node.start_point[0] + 1, node.end_point[0] + 1),
        )

    def _crate(self, file: bytes) -> dict[str, bytes]:
        """Tell a version of the file of the module beside it, and put it into its crate."""
        same = [f for f in target.functions(syntax.parse(file)) if f.name == self.name]
        found = same[0] if same else self.found
        files = {**self.tree.others, self.tree.own: splice.applied(file, stub.door(file, found))}
        files[self.tree.root] += stub.known(self.crate.edition)
        if found.holders:
            files[stub.COPIES] = stub.copies(found)
        return files


def open_task(path: Path, function: str | None, body_only: bool) -> RustTask:
    """Read a Rust file and choose its target. Raises UsageProblem."""
    task = task_of(read_file(path, MAX_BYTES), path, function, body_only)
    crate = around(path)
    return replace(task, crate=crate, tree=trees.around(path, task.source, task.root, crate))


def task_of(data: bytes, path: Path, function: str | None, body_only: bool) -> RustTask:
    """Choose the target of a Rust text that stands in no crate. Raises UsageProblem."""
    if not data.strip():
        raise UsageProblem(f"{path} is empty.")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{path} is not UTF-8 at byte {error.start}.") from None
    root = syntax.parse(data.removeprefix(_BOM))
    if place := syntax.first_error(root):
        raise UsageProblem(f"{path}:{place[0]}:{place[1]}: this is not Rust.")
    found = target.choose(root, function, str(path))
    return RustTask(path, data, root, found, Crate(), trees.alone(path), body_only)
