"""Only the body changes; a splice followed by reading gives the body back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix.rust import answer, splice, syntax, target
from reflexfix.rust.splice import Code, spliced
from reflexfix.rust.target import Found, choose
from reflexfix.rust.task import open_task


def put(file: str, code: Code) -> str:
    data = file.encode()
    root = syntax.parse(data)
    return spliced(data, root, choose(root, None, "x.rs"), code).decode()


FILE = """#!/usr/bin/env run
#![allow(dead_code)]
//! What it is.

use std::fmt;

/* { */ const RAW: &str = r#"fn f() { "#;

/// Documented.
#[inline] // kept
pub fn f<'a>(größe: &'a str) -> usize {
    // keep this
    // TODO not this
    todo!("}")
}

fn after() -> char { '}' }"""


def test_only_the_body_changes() -> None:
    assert put(FILE, Code("größe.len()")) == FILE.replace(
        '    // TODO not this\n    todo!("}")\n', "    größe.len()\n"
    )


def test_use_lines_join_the_files_and_helpers_go_above_the_item() -> None:
    code = Code("help(größe)", ("use std::fs;",), ("fn help(x: &str) -> usize {\n    1\n}",))
    wanted = FILE.replace("use std::fmt;\n", "use std::fmt;\nuse std::fs;\n")
    wanted = wanted.replace(
        "/// Documented", "fn help(x: &str) -> usize {\n    1\n}\n\n/// Documented"
    )
    wanted = wanted.replace('    // TODO not this\n    todo!("}")\n', "    help(größe)\n")
    assert put(FILE, code) == wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fn f() -> i32 { todo!() }\n", "use a::B;\n\nfn f() -> i32 {\n    1\n}\n"),
        (
            "#![x]\n//! doc\n\n/// d\nfn f() -> i32 { todo!() }\n",
            "#![x]\n//! doc\n\nuse a::B;\n\n/// d\nfn f() -> i32 {\n    1\n}\n",
        ),
        (
            "// Licence\n\nfn f() -> i32 { todo!() }\n",
            "// Licence\n\nuse a::B;\n\nfn f() -> i32 {\n    1\n}\n",
        ),
        (
            "use x; fn f() -> i32 { todo!() }\n",
            "use x;\nuse a::B;\n fn f() -> i32 {\n    1\n}\n",
        ),
        (
            "mod m {\n    use super::*;\n    fn f() -> i32 { todo!() }\n}\n",
            "mod m {\n    use super::*;\n    use a::B;\n    fn f() -> i32 {\n        1\n    }\n}\n",
        ),
    ],
)
def test_use_lines_stand_where_they_would(before: str, after: str) -> None:
    assert put(before, Code("1", ("use a::B;",))) == after


def test_a_method_is_indented_as_its_block_is_and_tabs_are_kept() -> None:
    file = "impl S {\n\tfn f(&self) -> i32 {\n\t\ttodo!()\n\t}\n}\n"
    code = Code('if true {\n    return 1;\n}\nlet s = "a\n  b";\n2')
    assert put(file, code) == (
        "impl S {\n\tfn f(&self) -> i32 {\n\t\tif true {\n\t\t\treturn 1;\n\t\t}\n"
        '\t\tlet s = "a\n  b";\n\t\t2\n\t}\n}\n'
    )


def test_windows_line_ends_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.rs"
    file.write_bytes(b"\xef\xbb\xbffn f() -> i32 {\r\n    todo!()\r\n}\r\n")
    task = open_task(file, None, False)
    reading = task.read("fn f() -> i32 {\n    let x = 1;\n    x\n}")
    assert reading.file == (b"\xef\xbb\xbffn f() -> i32 {\r\n    let x = 1;\r\n    x\r\n}\r\n")


BODIES = st.sampled_from(
    [
        "1",
        "let x = 1;\nx",
        'let s = "{ }} \\" \n   two";\ns.len() as i32',
        'let r = r#"}\n"{"#;\n/* } */ r.len() as i32',
        "match 'x' {\n    '}' => 1, // {\n    _ => 2,\n}",
        "// only a comment before\n\nlet ü = b'{';\n\nü as i32",
        "if true {\n    return 3;\n}\nloop {\n    break 4;\n}",
    ]
)
AROUND = st.sampled_from(
    ["", "// {\n", "/* /* { */ */\n", 'const A: &str = "}";\n', "//! doc\n", "#![x]\n\n",
     "use a::b;\n", "mod m { fn g() {} }\n", "/// doc {\n"]
)  # fmt: skip
HEADERS = st.sampled_from(
    [
        "fn f() -> i32",
        "pub(crate) const fn f<'a>(x: &'a str) -> i32",
        "async fn f() -> i32\nwhere\n    X: Y,\n",
    ]
)
OLD = st.sampled_from(
    ["{ todo!() }", "{\n    unimplemented!()\n}", "{}", '{ panic!("not implemented") }']
)


@given(before=AROUND, header=HEADERS, old=OLD, body=BODIES, tail=AROUND, newline=st.booleans())
def test_a_splice_gives_the_body_back_and_leaves_every_other_byte(
    before: str, header: str, old: str, body: str, tail: str, newline: bool
) -> None:
    head, end = before + header, "\n" + (tail if tail not in ("//! doc\n", "#![x]\n\n") else "")
    file = head + old + end
    if newline:
        head, end, file = (x.replace("\n", "\r\n") for x in (head, end, file))
    result = put(file, Code(body))
    assert result.startswith(head) and result.endswith(end)
    found = named(result)
    assert answer.body_text(found.node).replace("\r\n", "\n") == body
    again = result.encode()
    root = syntax.parse(again)
    assert spliced(again, root, named(result), Code(body)) == again or "//" in body


def named(file: str) -> Found:
    every = target.functions(syntax.parse(file.encode()))
    return next(found for found in every if found.own_name == "f")


@given(st.text())
def test_indenting_and_dedenting_never_raise(text: str) -> None:
    splice.dedented(splice.indented(text, "    "))
