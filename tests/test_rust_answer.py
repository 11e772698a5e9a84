"""Whatever is written around it, the code in an answer is found; the rest says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix.rust import answer, syntax
from reflexfix.rust.answer import read
from reflexfix.rust.target import choose
from reflexfix.rust.task import open_task

STUB = "fn total(xs: &[i32]) -> i32 { todo!() }"
FOUND = choose(syntax.parse(STUB.encode()), None, "x.rs")
FUNCTION = "fn total(xs: &[i32]) -> i32 {\n    xs.iter().sum()\n}"
BODY = "xs.iter().sum()"


@pytest.mark.parametrize(
    "text",
    [
        f"```rust\n{FUNCTION}\n```",
        f"```rs\n{FUNCTION}\n```",
        f"```Rust\n{FUNCTION}\n```",
        f"```\n{FUNCTION}\n```",
        f"~~~rust\n{FUNCTION}\n~~~",
        f"Of course!\n\n```rust\n{FUNCTION}\n```\nThat's it: `total`.",
        FUNCTION,
        f"```rust\n{FUNCTION}\n",
        f"```rust\n{FUNCTION}",
        f"```rust\nfn total(xs: &[i32]) -> i32 {{\n    0\n}}\n```\nNo:\n```rust\n{FUNCTION}\n```",
        f"```rust\n{FUNCTION}\n```\n```rust\nassert_eq!(total(&[1]), 1);\n```",
        f"```rust\n/// ```\n/// total(&[]);\n/// ```\n{FUNCTION}\n```",
        f"```rust\n{FUNCTION}\n\nfn main() {{\n    println!(\"x\");\n}}\n```",
        f"```rust\n{FUNCTION}\n\n#[cfg(test)]\nmod tests {{ #[test] fn t() {{}} }}\n```",
        f"```rust\n{BODY}\n```",
        f"```rust\n    {BODY}\n```",
        "```rust\nfn total(list: &[i32]) -> i32 { xs.iter().sum() }\n```",
        f"```rust\n{FUNCTION.replace(chr(10), chr(13) + chr(10))}\n```",
    ],
)  # fmt: skip
def test_the_body_is_found(text: str) -> None:
    reading = read(text, FOUND, frozenset({"total"}))
    assert reading.code is not None, reading.why
    assert reading.code.body == BODY
    assert reading.code.uses == reading.code.helpers == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I cannot do that.", "does not define total"),
        ("```rust\nfn other() {}\n```", "does not define total"),
        ("```rust\nfn total(xs: &[i32]) -> i32 {\n    let x = xs.iter(\n", "not valid Rust"),
        (f"```rust\n{STUB}\n```", "no usable definition"),
        ("```rust\nfn total(xs: &[i32]) -> i32 {}\n```", "no usable definition"),
    ],
)
def test_an_answer_without_code_says_why(text: str, why: str) -> None:
    reading = read(text, FOUND, frozenset({"total"}))
    assert reading.code is None
    assert why in reading.why


def test_uses_and_helpers_that_the_body_needs_come_along() -> None:
    text = """```rust
use std::collections::{BTreeMap, HashMap as Map, HashSet};
use std::fmt::Write;
use std::io::Read;
use super::*;

const LIMIT: usize = 3;

/// A helper.
#[derive(Clone)]
struct Counter { map: Map<i32, usize> }

impl Counter {
    fn add(&mut self) { let _ = LIMIT; }
}

fn unused() {}

fn known() -> i32 { 1 }

fn total(xs: &[i32]) -> i32 {
    let c = Counter { map: Map::new() };
    let mut s = String::new();
    write!(s, "{}", known()).unwrap();
    0
}
```"""
    code = read(text, FOUND, frozenset({"total", "known"})).code
    assert code is not None
    assert code.uses == ("use std::collections::HashMap as Map;", "use std::fmt::Write;")
    assert code.helpers == (
        "const LIMIT: usize = 3;",
        "/// A helper.\n#[derive(Clone)]\nstruct Counter { map: Map<i32, usize> }",
        "impl Counter {\n    fn add(&mut self) { let _ = LIMIT; }\n}",
    )
    plain = read(text, FOUND, frozenset({"total"}), body_only=True).code
    assert plain is not None and plain.uses == plain.helpers == ()


@pytest.mark.parametrize(
    "text",
    [
        "```rust\nimpl Bag {\n    fn add(&mut self, x: i32) -> bool {\n        true\n    }\n}\n```",
        "```rust\nfn add(&mut self, x: i32) -> bool {\n    true\n}\n```",
        "```rust\nstruct Bag;\nimpl Bag {\n    fn add(&mut self, x: i32) -> bool { true }\n}\n"
        "struct Other;\nimpl Other {\n    fn add(&mut self, x: i32) -> bool { false }\n}\n```",
    ],
)
def test_a_method_is_found_in_its_block_or_alone(text: str) -> None:
    file = b"struct Bag;\nimpl Bag {\n    fn add(&mut self, x: i32) -> bool { todo!() }\n}"
    found = choose(syntax.parse(file), None, "x.rs")
    code = read(text, found, frozenset({"Bag"})).code
    assert code is not None and code.body == "true" and code.helpers == ()


def test_strings_of_several_lines_keep_their_indentation() -> None:
    text = (
        '```\n    fn total(xs: &[i32]) -> i32 {\n        let s = "a\n  b";\n        1\n    }\n```'
    )
    code = read(text, FOUND, frozenset()).code
    assert code is not None and code.body == 'let s = "a\n  b";\n1'


@given(st.text() | st.lists(st.sampled_from(["```rust\n", "```\n", FUNCTION, "fn total", "{", "}",
                                             "\"", "r#\"", "/*", "\n", "impl X {", "use a::"]))
       .map("".join))  # fmt: skip
def test_no_answer_ever_raises(text: str) -> None:
    reading = read(text, FOUND, frozenset())
    assert (reading.code is None) == bool(reading.why)
    assert list(answer.blocks(text))


def test_a_task_reads_and_writes(tmp_path: Path) -> None:
    (tmp_path / "x.rs").write_text(STUB + "\n")
    task = open_task(tmp_path / "x.rs", None, False)
    assert task.read(FUNCTION).file.decode() == FUNCTION + "\n"
    assert task.unfinished and task.old_body == ""
    assert "todo!()" in task.scope(500)
    assert task.id == open_task(tmp_path / "x.rs", "total", False).id


def test_the_prompt_of_a_large_file_is_as_long_as_that_of_a_small_one(tmp_path: Path) -> None:
    lines = [
        f"/// Number {n}.\nfn helper_{n}(x: i32) -> i32 {{\n    x + {n}\n}}" for n in range(1500)
    ]
    (tmp_path / "x.rs").write_text(
        "\n".join(lines) + "\nfn f() -> i32 { helper_7(1);\n todo!() }\n"
    )
    scope = open_task(tmp_path / "x.rs", "f", False).scope(1000)
    assert len(scope) < 4000
    assert "helper_7(x: i32) -> i32 {\n    x + 7" in scope and "left out here" in scope
