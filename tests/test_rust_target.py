"""The target is found by its unfinished body or by its path, whatever stands around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflexfix.errors import UsageProblem
from reflexfix.rust import syntax
from reflexfix.rust.target import Found, choose, functions
from reflexfix.rust.task import open_task


def chosen(code: str, wanted: str | None = None) -> Found:
    return choose(syntax.parse(code.encode()), wanted, "x.rs")


@pytest.mark.parametrize(
    "body",
    [
        "todo!()",
        'todo!("later {x}")',
        "unimplemented!()",
        'panic!("not implemented")',
        'panic!("Not yet implemented: sums")',
        "",
        "// nothing yet",
        "let _ = x;\n    todo!()",
        "std::todo!()",
    ],
)
def test_an_unfinished_body_is_found(body: str) -> None:
    code = f"fn done(x: i32) -> i32 {{ x }}\nfn f(x: i32) -> i32 {{ {body}\n }}\nfn main() {{}}\n"
    assert chosen(code).name == "f"


@pytest.mark.parametrize(
    "function",
    [
        "fn f() {}",
        "fn f() -> () {}",
        'fn f() { panic!("not possible") }',
        "fn f() -> i32 { if true { todo!() } else { 1 } }",
        '/* fn g() { todo!() } */ fn f() { let _s = "todo!()"; }',
        "trait T { fn f(&self) -> i32; }",
        "#[cfg(test)] mod tests { fn helper() -> i32 { todo!() } }",
        "#[test] fn works() { todo!() }",
    ],
)
def test_a_finished_body_is_no_target(function: str) -> None:
    with pytest.raises(UsageProblem, match="no unfinished function"):
        chosen(function)


FILE = """
mod a { pub mod b { pub fn f() -> i32 { 1 } } pub fn f() -> i32 { 2 } }
struct S<T>(T);
impl<T> S<T> { pub const fn get(&self) -> i32 { 3 } async fn wait(self) {} }
impl<T> std::fmt::Display for S<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) }
}
impl<T> std::fmt::Debug for S<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) }
}
trait Shape { fn area(&self) -> f64 { 0.0 } fn sides(&self) -> u8; }
fn r#match<'a, T: Ord>(x: &'a [T]) -> Option<&'a T> where T: Clone { x.first() }
fn größe() -> usize { 4 }
"""


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("a::b::f", "a::b::f"),
        ("a::f", "a::f"),
        ("crate::a::f", "a::f"),
        ("b::f", "a::b::f"),
        ("S::get", "S::get"),
        ("S.get", "S::get"),
        ("get", "S::get"),
        ("wait", "S::wait"),
        ("S::Display::fmt", "S::Display::fmt"),
        ("Debug::fmt", "S::Debug::fmt"),
        ("Shape::area", "Shape::area"),
        ("r#match", "r#match"),
        ("größe", "größe"),
    ],
)
def test_a_function_is_named_by_its_path(wanted: str, name: str) -> None:
    assert chosen(FILE, wanted).name == name


@pytest.mark.parametrize("wanted", ["f", "fmt", "S::fmt"])
def test_a_name_that_fits_several_is_answered_with_the_list(wanted: str) -> None:
    with pytest.raises(UsageProblem, match="functions called"):
        chosen(FILE, wanted)


def test_a_name_that_is_not_there_is_answered_with_the_list() -> None:
    with pytest.raises(UsageProblem, match=r"no function sides\. It has: a::b::f, a::f, S::get"):
        chosen(FILE, "sides")


def test_several_unfinished_functions_are_listed() -> None:
    with pytest.raises(UsageProblem, match="2 unfinished functions: f, m::g"):
        chosen("fn f() -> i32 { todo!() } mod m { fn g() { unimplemented!() } }")


def test_every_function_with_a_body_is_listed_in_order() -> None:
    names = [found.name for found in functions(syntax.parse(FILE.encode()))]
    assert names == ["a::b::f", "a::f", "S::get", "S::wait", "S::Display::fmt", "S::Debug::fmt",
                     "Shape::area", "r#match", "größe"]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"fn f( {", "x.rs:1:"),
        (b"\xff\xfe", "not UTF-8"),
        (b"struct S;\n", "no function at all"),
        (b"x" * 2_000_001, "at most 2,000,000"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(data: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.rs").write_bytes(data)
    with pytest.raises(UsageProblem, match=says):
        open_task(tmp_path / "x.rs", None, False)


@pytest.mark.parametrize(
    ("manifest", "edition", "name"),
    [
        ('[package]\nname = "my-crate"\nedition = "2018"\n', "2018", "my_crate"),
        ('[package]\nname = "a"\n', "2015", "a"),
        ('[package]\nname = "a"\nedition.workspace = true\n'
         '[workspace.package]\nedition = "2024"\n', "2024", "a"),
        ("not toml [", "2015", ""),
    ],
)  # fmt: skip
def test_edition_and_name_come_from_the_nearest_manifest(
    manifest: str, edition: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "Cargo.toml").write_text(manifest)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "x.rs").write_text("fn f() -> i32 { todo!() }")
    task = open_task(tmp_path / "src" / "x.rs", None, False)
    assert (task.crate.edition, task.crate.name) == (edition, name)


def test_crates_from_elsewhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.rs").write_text(
        "extern crate md5;\nuse rand::{Rng, thread_rng};\nuse std::fmt;\nuse inner::A;\n"
        "use self::inner::B;\nmod inner { pub struct A; pub struct B; }\nfn f() -> i32 { todo!() }"
    )
    assert set(open_task(tmp_path / "x.rs", None, False).packages) == {"rand", "md5"}
