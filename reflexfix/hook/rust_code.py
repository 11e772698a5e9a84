"""Rust code in the hook: its functions, one as a task, the source of a test, who runs what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tree_sitter import Node

from reflexfix.attempt import Candidate, Case
from reflexfix.errors import UsageProblem
from reflexfix.hook.cargo import edition_of, is_test
from reflexfix.hook.tree import LINK, Tree
from reflexfix.rust import scope, syntax, target
from reflexfix.rust.answer import body_text
from reflexfix.rust.crate import Crate
from reflexfix.rust.splice import dedented
from reflexfix.rust.target import Found
from reflexfix.rust.task import RustTask
from reflexfix.rust.tree import alone


@dataclass(frozen=True)
class Culprit(RustTask):
    """A function that is to be repaired against the project's own tests."""

    @property
    def real(self) -> bytes:
        """The file as it stands in the project."""
        return self.original

    @property
    def own_file(self) -> str:
        return str(self.path)

    @property
    def old_body(self) -> str:
        return "" if self.unfinished else body_text(self.found.node)

    def scope(self, tokens: int) -> str:
        """Show the function and what it names; nothing else of the file reaches a model."""
        return scope.described(self.source, self.root, self.found, tokens, named_only=True)

    def examples(self) -> list[Case]:
        """The project's tests are what counts; its documentation may be older than its code."""
        return []

    def candidate(self, file: bytes) -> Candidate:
        return Candidate({str(self.path): file}, str(self.path), self.name)


def open_in(tree: Tree, path: str, line: int) -> Culprit:
    """Take a function of a tree as a task. Raises UsageProblem when it cannot be read."""
    data = tree.read(path) or b""
    root = syntax.parse(data)
    for found in functions(root):
        if is_around(found, line):
            crate = Crate(edition_of(tree, path))
            return Culprit(Path(path), data, root, found, crate, alone(Path(path)))
    raise UsageProblem(f"{path} has no function at line {line}.")


def functions(root: Node) -> Iterator[Found]:
    """List the functions of a file that can be at fault: no tests, and none inside of others."""
    for found in target.functions(root):
        if not found.holders and not target.for_tests(found):
            yield found


def is_around(found: Found, line: int) -> bool:
    first, last = lines_of(found)
    return first <= line <= last


def lines_of(found: Found) -> tuple[int, int]:
    """Give the first and the last line of a function, its attributes included."""
    first = [*syntax.attributes(found.node), found.node][0]
    return first.start_point[0] + 1, found.node.end_point[0] + 1


def source_of(tree: Tree, test: str) -> str:
    """Give the source of a test as the container names it, src/lib.rs::tests::name; "" if unknown.

    The harness tells modules, not files: any file may hold them.
    """
    path, _, rest = test.partition("::")
    *modules, name = rest.split("::")
    likely = sorted((p for p in tree.files if p.endswith(".rs")), key=lambda p: (p != path, p))
    for one in likely:
        if name and name.encode() in tree.files[one].data:
            for found in target.functions(syntax.parse(tree.files[one].data)):
                inner = [syntax.name_of(node) for node in found.modules]
                is_there = not inner or modules[-len(inner) :] == inner
                if found.own_name == name and target.for_tests(found) and is_there:
                    return dedented(syntax.text(found.node))
    return ""


# ---------------------------------------------------------------- which functions a test runs


def watched(tree: Tree) -> Tree:
    """Have every function note, once a process, that it was run; lines stay where they are.

    The note is a line in the file that REFLEXFIX_RAN names. A `const fn` notes nothing, for it
    could not: it may be run by the compiler.
    """
    files = {
        path: replace(file, data=noting(path, file.data))
        for path, file in tree.files.items()
        if path.endswith(".rs") and file.mode != LINK and not is_test(path)
    }
    return replace(tree, files={**tree.files, **files})


def noting(path: str, data: bytes) -> bytes:
    """Put the note at the beginning of each function's body."""
    root = syntax.parse(data)
    if syntax.first_error(root) is not None:
        return data
    places = [
        (beginning(found), lines_of(found)[0])
        for found in functions(root)
        if "const" not in found.modifiers
    ]
    for place, line in sorted(places, reverse=True):
        note = _NOTE.replace("PLACE", f"{path}:{line}:".replace("\\", "/").replace('"', ""))
        data = data[:place] + note.encode() + data[place:]
    return data


def beginning(found: Found) -> int:
    """Give the place in a body where its first statement could stand: behind its attributes."""
    inner = [n for n in found.body.named_children if n.type == "inner_attribute_item"]
    return inner[-1].end_byte if inner else found.body.start_byte + 1


_NOTE = (
    " { static RAN: ::std::sync::Once = ::std::sync::Once::new(); RAN.call_once(|| {"
    ' if let ::std::option::Option::Some(place) = ::std::env::var_os("REFLEXFIX_RAN") {'
    " if let ::std::result::Result::Ok(mut file) ="
    " ::std::fs::OpenOptions::new().append(true).create(true).open(place) {"
    ' let _ = ::std::io::Write::write_all(&mut file, "PLACE\\n".as_bytes()); } } }); }'
)
