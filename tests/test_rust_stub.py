"""The stub and the server are made of the signature; what cannot cross is known beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflexfix.rust import syntax
from reflexfix.rust.task import RustTask, open_task


def task_of(folder: Path, code: str, function: str | None = "f") -> RustTask:
    (folder / "x.rs").write_text(code)
    return open_task(folder / "x.rs", function, False)


@pytest.mark.parametrize(
    "signature",
    [
        "fn f()",
        "fn f() -> ()",
        "fn f(a: i8, b: u128, c: f32, d: bool, e: char, g: usize) -> isize",
        "fn f(a: &str, b: String, c: &String) -> String",
        "fn f<'a>(a: &'a str) -> Vec<&'a str>",
        "fn f(a: &[&str], b: [u8; 4], c: &[[i32; 2]]) -> Option<(i32, String)>",
        "fn f(a: Vec<Vec<i64>>) -> Result<Vec<f64>, String>",
        "fn f(a: &mut Vec<i32>, b: &mut [u8], c: &mut String, d: &mut [i32; 3]) -> bool",
        "fn f(a: &mut std::collections::HashMap<String, i32>) -> std::collections::BTreeSet<char>",
        "fn f(mut a: Vec<i32>, (b, c): (i32, i32), &d: &i32, _: u8) -> i32",
        "const fn f(a: i32) -> i32",
        "async fn f(a: i32) -> i32",
        "fn f(a: std::cmp::Ordering, b: Box<i32>) -> std::string::String",
        "fn f(a: Option<&[i32]>, b: Option<Option<bool>>) -> (u8,)",
    ],
)
def test_a_plain_signature_crosses(signature: str, tmp_path: Path) -> None:
    task = task_of(tmp_path, signature + " { todo!() }")
    assert task.parameters is not None
    made = task.candidate(task.original)
    for file in (*made.files.values(), *made.stub_files.values()):
        assert not syntax.parse(file).has_error, file


@pytest.mark.parametrize(
    "code",
    [
        "fn f<T>(a: T) -> T",
        "fn f<const N: usize>(a: [i32; N]) -> i32",
        "fn f(a: impl Fn(i32) -> i32) -> i32",
        "fn f(a: &dyn Fn(i32) -> i32) -> i32",
        "fn f(a: fn(i32) -> i32) -> i32",
        "fn f() -> impl Iterator<Item = i32>",
        "struct S;\nfn f(a: S) -> i32",
        "enum E {}\nfn f() -> Result<i32, E>",
        "fn f(a: std::rc::Rc<i32>) -> i32",
        "fn f(a: *const i32) -> i32",
        "fn f(a: &mut str) -> i32",
        "fn f(a: Option<&mut i32>) -> i32",
        "fn f(a: &mut i32) -> &mut i32",
        "struct String;\nfn f(a: String) -> i32",
        "use std::fmt::Result;\nfn f() -> Result",
        "use std::io::Result;\nfn f() -> Result<i32>",
        "use std::num::ParseIntError;\nfn f() -> Result<i32, ParseIntError>",
        "use my::HashMap;\nfn f() -> HashMap<i32, i32>",
        "fn f() -> HashMap<i32, i32>",
        "unsafe fn f() -> i32",
        "fn f(a: (i8, i8, i8, i8, i8, i8, i8, i8, i8))",
        "type A = A;\nfn f(a: A) -> i32",
    ],
)
def test_what_cannot_cross_is_judged_in_one_process(code: str, tmp_path: Path) -> None:
    assert task_of(tmp_path, code + " { todo!() }").parameters is None


@pytest.mark.parametrize(
    "code",
    [
        "type Row<'n> = std::collections::BTreeMap<&'n str, (u64, u32)>;\nfn f(a: Row<'_>) -> i32",
        "use std::collections::{self, HashMap as Map};\n"
        "fn f(a: Map<i32, i32>) -> collections::HashSet<u8>",
        "use std::collections::hash_map::{Entry, HashMap};\nfn f(a: HashMap<i32, i32>) -> i32",
        "use std::cmp::Ordering;\nfn f() -> Ordering",
        "type A = B;\ntype B = Vec<i32>;\nfn f(a: &mut A)",
    ],
)
def test_names_are_followed_through_aliases_and_imports(code: str, tmp_path: Path) -> None:
    assert task_of(tmp_path, code + " { todo!() }").parameters is not None


def test_the_stub_keeps_the_signature_and_loses_the_body(tmp_path: Path) -> None:
    code = "const fn f(mut a: i32, b: &mut [u8]) -> i32 { a }\nfn g() {}\n"
    task = task_of(tmp_path, code)
    stub = task.candidate(task.original).stub_files["x.rs"].decode()
    assert stub.startswith(" fn f(reflexfix_0: i32, reflexfix_1: &mut [u8]) -> i32 {\n")
    assert ".with(&reflexfix_0).with(&&*reflexfix_1).made()" in stub
    assert "reply.changed_items(reflexfix_1);" in stub
    assert "fn g() {}" in stub and "mod __reflexfix;" in stub


def test_the_users_lines_keep_their_numbers(tmp_path: Path) -> None:
    code = "mod m {\n    fn f() -> i32 { 1 }\n    // end\n}\n// last"
    task = task_of(tmp_path, code)
    file = task.candidate(task.original).files["x.rs"].decode()
    assert file.startswith("mod m {\n    fn f() -> i32 { 1 }\n    // end\n\n#[path")
    assert file.endswith("mod __reflexfix;\n}\n// last")
    root = task_of(tmp_path, "fn f() -> i32 { 1 } // last")
    assert root.candidate(root.original).files["x.rs"].startswith(b"fn f() -> i32 { 1 } // last\n#")


@pytest.mark.parametrize(
    ("returned", "body"),
    [
        ("impl Iterator<Item = i32> + '_", "std::iter::empty()"),
        ("impl Fn(i32, i32) -> i32", "|_, _| todo!()"),
        ("Vec<T>", "loop {}"),
    ],
)
def test_a_body_of_the_right_type_stands_in_where_nothing_crosses(
    returned: str, body: str, tmp_path: Path
) -> None:
    task = task_of(tmp_path, f"fn f<T>(a: &T) -> {returned} {{ todo!() }}")
    assert body in task.candidate(task.original).stub_files["x.rs"].decode()
