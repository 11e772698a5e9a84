"""Odd files and targets in Rust, each judged by a right and a wrong body in real containers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from test_rust_tree import lay

from reflexfix.attempt import Suite, Verdict
from reflexfix.containers.rust import RustSandbox
from reflexfix.rust.task import open_task


@dataclass(frozen=True)
class Odd:
    """A file with one unwritten function, a right and a wrong body, and tests."""

    file: str
    right: str
    wrong: str
    tests: str
    mode: str = "split"
    function: str | None = None
    beside: dict[str, str] = field(default_factory=dict)
    name: str = "m.rs"


MANIFEST = '[package]\nname = "geo"\nversion = "0.1.0"\nedition = "{}"\n'

ODD = {
    "inside of a function": Odd(
        "pub fn outer(x: i32) -> i32 {\n    const STEP: i32 = 2;\n    fn one(x: i32) -> i32 { x }\n"
        "    fn inner(x: i32) -> i32 {\n        todo!()\n    }\n    inner(x) + one(1)\n}\n",
        "x + STEP", "x - STEP", "assert_eq!(inner(1), 3);\nassert_eq!(inner(-2), 0);",
    ),
    "inside of a method's block": Odd(
        "struct A;\nimpl A {\n    fn m(&self) -> usize {\n        if true {\n"
        "            #[derive(Debug, PartialEq)]\n            struct B(usize);\n"
        "            impl B { fn one(&self) -> usize { self.0 } }\n"
        "            fn deep(n: usize) -> B { todo!() }\n            return deep(2).one();\n"
        "        }\n        0\n    }\n}\n",
        "B(n + 1)", "B(n)", "assert_eq!(deep(1), B(2));\nassert_eq!(deep(0).one(), 1);",
        mode="in-process",
    ),
    "no_main": Odd(
        "#![no_main]\n#![allow(dead_code)]\n//! Docs.\n\npub fn f(x: u8) -> u8 { todo!() }\n",
        "x / 2", "x", "assert_eq!(f(4), 2);\nassert_eq!(f(5), 2);",
    ),
    "async": Odd(
        "pub async fn f(x: u64) -> u64 { todo!() }\n",
        "std::future::ready(x).await + 1", "x", "assert_eq!(f(1).await, 2);",
    ),
    "const": Odd(
        "pub const fn f(x: u32) -> u32 { todo!() }\npub const TWO: u32 = 2;\n",
        "x * TWO", "x", "assert_eq!(f(3), 6);\nassert_eq!(f(0), 0);",
    ),
    "const that a constant needs": Odd(
        "pub const fn f(x: usize) -> usize { todo!() }\n"
        "pub static TABLE: [u8; f(2)] = [0; f(2)];\n",
        "x + 1", "x", "assert_eq!(f(3), 4);", mode="in-process",
    ),
    "trait method": Odd(
        "pub trait Area { fn area(&self) -> f64; }\npub struct Sq(pub f64);\n"
        "impl Area for Sq {\n    fn area(&self) -> f64 { todo!() }\n}\n",
        "self.0 * self.0", "self.0", "assert_eq!(Sq(3.0).area(), 9.0);", mode="in-process",
    ),
    "default method of a trait": Odd(
        "pub trait Twice {\n    fn one(&self) -> i32;\n    fn twice(&self) -> i32 { todo!() }\n}\n"
        "impl Twice for i32 { fn one(&self) -> i32 { *self } }\n",
        "self.one() * 2", "self.one()", "assert_eq!(4.twice(), 8);", mode="in-process",
    ),
    "generic with a where clause": Odd(
        "pub fn best<'a, T, I>(items: I) -> Option<&'a T>\nwhere\n    T: Ord,\n"
        "    I: IntoIterator<Item = &'a T>,\n{\n    todo!()\n}\n",
        "items.into_iter().max()", "items.into_iter().min()",
        "assert_eq!(best(&[1, 3, 2]), Some(&3));", mode="in-process",
    ),
    "const generics": Odd(
        "pub fn sums<const N: usize>(a: [[i32; N]; 2]) -> [i32; N] { todo!() }\n",
        "let mut s = [0; N];\n    for i in 0..N { s[i] = a[0][i] + a[1][i]; }\n    s", "[0; N]",
        "assert_eq!(sums([[1, 2], [3, 4]]), [4, 6]);", mode="in-process",
    ),
    "lifetimes": Odd(
        "pub fn longest<'a>(a: &'a str, b: &'a str) -> &'a str { todo!() }\n",
        "if b.len() > a.len() { b } else { a }", "b", 'assert_eq!(longest("abc", "d"), "abc");',
    ),
    "raw identifiers": Odd(
        "pub fn r#match(r#in: &str) -> usize { todo!() }\n",
        "r#in.len()", "0", 'assert_eq!(r#match("abc"), 3);',
    ),
    "patterns for parameters": Odd(
        "pub fn f((a, b): (i32, i32), [c, _]: [i32; 2], _: bool) -> i32 { todo!() }\n",
        "a + b + c", "a", "assert_eq!(f((1, 2), [3, 4], true), 6);",
    ),
    "result alias and a box": Odd(
        "type Res<T> = Result<T, Box<dyn std::error::Error>>;\n"
        "pub fn f(s: &str) -> Res<i32> { todo!() }\n",
        "Ok(s.trim().parse::<i32>()?)", "Ok(0)",
        'assert_eq!(f(" 7 ").unwrap(), 7);\nassert!(f("x").is_err());', mode="in-process",
    ),
    "a macro of the file's": Odd(
        "macro_rules! sq { ($x:expr) => { $x * $x }; }\npub fn f(x: i64) -> i64 { todo!() }\n",
        "sq!(x)", "x", "assert_eq!(f(-3), 9);",
    ),
    "names of the prelude taken by the file": Odd(
        "#[derive(Debug, PartialEq)]\npub enum Option { Some, None }\n"
        "pub struct Vec;\npub struct Result;\npub struct String;\n"
        "pub fn f(x: bool) -> Option { todo!() }\n",
        "if x { Option::Some } else { Option::None }", "Option::None",
        "assert_eq!(f(true), Option::Some);", mode="in-process",
    ),
    "deny and forbid": Odd(
        "#![deny(warnings)]\n#![forbid(unsafe_code)]\n#![warn(missing_docs)]\n"
        "pub fn f(x: i32) -> i32 { todo!() }\n",
        "let y = x; y + 1", "x", "assert_eq!(f(1), 2);",
    ),
    "unit and &mut": Odd(
        "pub fn f(items: &mut Vec<String>, n: &mut usize) { todo!() }\n",
        "items.dedup();\n    *n = items.len();", "*n = 1;",
        'let mut v = vec!["a".to_string(), "a".to_string(), "b".to_string()];\nlet mut n = 0;\n'
        "f(&mut v, &mut n);\nassert_eq!((v.len(), n), (2, 2));",
    ),
    "a sibling of the crate": Odd(
        "use crate::util::{self, Clamp};\n\npub fn f(x: i32) -> i32 { todo!() }\n",
        "util::LOW.max(Clamp::high(x))", "x", "assert_eq!(f(50), 10);\nassert_eq!(f(-4), 0);",
        name="src/shape/round.rs",
        beside={
            "Cargo.toml": MANIFEST.format("2021"),
            "src/lib.rs": "pub mod shape;\nmod util;\n",
            "src/shape/mod.rs": "mod round;\nmod other;\n",
            "src/shape/other.rs": "pub fn unwritten() -> u8 { unimplemented!() }\n",
            "src/util.rs": "pub const LOW: i32 = 0;\npub struct Clamp;\n"
            "impl Clamp { pub fn high(x: i32) -> i32 { x.min(10) } }\n",
        },
    ),
    "a sibling in the edition of 2015": Odd(
        "use util::low;\nuse std::collections::BTreeMap;\n\n"
        "pub fn f(x: i32) -> BTreeMap<i32, i32> { todo!() }\n",
        "let mut m = BTreeMap::new(); m.insert(x, low()); m", "BTreeMap::new()",
        "assert_eq!(f(3)[&3], 1);",
        name="src/shape.rs",
        beside={
            "Cargo.toml": MANIFEST.format("2015"),
            "src/main.rs": "mod shape;\nmod util;\nfn main() {}\n",
            "src/util.rs": "pub fn low() -> i32 { 1 }\n",
        },
    ),
    "a module in a file of its own": Odd(
        "mod util;\npub fn f(x: i32) -> i32 { todo!() }\n",
        "util::twice(x)", "x", "assert_eq!(f(4), 8);",
        beside={"util.rs": "pub fn twice(x: i32) -> i32 { x * 2 }\n"},
    ),
    "a text beside the file": Odd(
        'const WORDS: &str = include_str!("words.txt");\n'
        "pub fn f(n: usize) -> &'static str { todo!() }\n",
        "WORDS.lines().nth(n).unwrap_or_default()", "WORDS", 'assert_eq!(f(1), "b");',
        beside={"words.txt": "a\nb\n"},
    ),
}  # fmt: skip


def judged(odd: Odd, folder: Path, body: str, sandbox: RustSandbox) -> Verdict:
    lay(folder, {odd.name: odd.file, **odd.beside})
    task = open_task(folder / odd.name, odd.function, False)
    cases, dropped = task.own_tests(odd.tests, [])
    assert cases and not dropped
    control, value = task.control(cases)
    head = odd.file[: odd.file.index("todo!()")].rpartition("fn ")[2].partition("{")[0]
    modifier = "async " if "async fn" in odd.file else ""
    reading = task.read(f"```rust\n{modifier}fn {head}{{\n    {body}\n}}\n```")
    assert reading.code, reading.why
    suite = Suite(tuple(cases), None, control, value)
    return sandbox.run(task.candidate(reading.file), suite)


@pytest.mark.container
@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_judged_rightly(
    name: str, tmp_path: Path, rust_sandbox: RustSandbox
) -> None:
    odd = ODD[name]
    right = judged(odd, tmp_path, odd.right, rust_sandbox)
    assert right.solved, right
    assert right.control == "held"
    assert {one.result.mode for one in right.judged} == {odd.mode}
    wrong = judged(odd, tmp_path, odd.wrong, rust_sandbox)
    assert not wrong.solved and (wrong.failures or wrong.problem), wrong


@pytest.mark.container
def test_what_is_wrong_inside_of_a_function_is_said_once(
    tmp_path: Path, rust_sandbox: RustSandbox
) -> None:
    verdict = judged(ODD["inside of a function"], tmp_path, '"a"', rust_sandbox)
    assert verdict.problem.count("E0308") == 1
    assert 'at m.rs:5: "a"' in verdict.problem
