"""Values of every type that crosses come out of the other process as they went in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reflexfix import assemble
from reflexfix.attempt import Limits, Suite, Verdict
from reflexfix.containers.engine import Engine
from reflexfix.containers.rust import RustSandbox, limits_for
from reflexfix.task import open_task

pytestmark = pytest.mark.container


@pytest.fixture(scope="module")
def sandbox(engine: Engine) -> Iterator[RustSandbox]:
    image = assemble.ready_image(engine, (), print, "rust")
    with RustSandbox(engine, image, limits_for(Limits())) as opened:
        yield opened


def verdict_of(sandbox: RustSandbox, folder: Path, code: str, tests: str) -> Verdict:
    (folder / "x.rs").write_text(code)
    task = open_task(folder / "x.rs", "f", False)
    cases, dropped = task.own_tests(tests, [])
    assert not dropped
    control, value = task.control(cases)
    suite = Suite(tuple(cases), None, control, value)
    return sandbox.run(task.candidate(task.original), suite)


NUMBERS = {
    "fn f(a: i8, b: i16, c: i32, d: i64, e: i128) -> (i128, i64, i32, i16, i8)": (
        "(e, d, c, b, a)",
        "assert_eq!(f(i8::MIN, i16::MAX, i32::MIN, i64::MAX, i128::MIN),"
        " (i128::MIN, i64::MAX, i32::MIN, i16::MAX, i8::MIN));",
    ),
    "fn f(a: u8, b: u16, c: u32, d: u64, e: u128, g: usize, h: isize)"
    " -> (u128, u64, u32, u16, u8, usize, isize)": (
        "(e, d, c, b, a, g, h)",
        "assert_eq!(f(255, 65535, u32::MAX, u64::MAX, u128::MAX, usize::MAX, isize::MIN),"
        " (u128::MAX, u64::MAX, u32::MAX, 65535, 255, usize::MAX, isize::MIN));",
    ),
    "fn f(a: f32, b: f64) -> (f64, f32)": (
        "(b, a)",
        "assert_eq!(f(-0.0, f64::NEG_INFINITY).1.to_bits(), (-0.0f32).to_bits());\n"
        "assert!(f(1.5, f64::NAN).0.is_nan());\n"
        "assert_eq!(f(f32::MAX, f64::MIN_POSITIVE), (f64::MIN_POSITIVE, f32::MAX));",
    ),
    "fn f(a: bool, b: char, c: ()) -> (bool, char, ())": (
        "(a, b, c)",
        "assert_eq!(f(true, '\\u{10ffff}', ()), (true, '\\u{10ffff}', ()));\n"
        "assert_eq!(f(false, '\\0', ()), (false, '\\0', ()));",
    ),
    "fn f<'a>(a: &'a str, b: String, c: &'a String) -> Vec<&'a str>": (
        "let _ = b; vec![a, c.as_str(), a.trim()]",
        'assert_eq!(f("äb\\0", "x".into(), &"".into()).len(), 3);\n'
        'assert_eq!(f("b😀", String::new(), &"z".repeat(70_000))[1].len(), 70_000);',
    ),
    "fn f(a: &[&str], b: [u8; 3], c: &[[i32; 2]; 2]) -> (Vec<String>, [u8; 3], [[i32; 2]; 2])": (
        "(a.iter().map(|s| s.to_string()).collect(), b, *c)",
        'assert_eq!(f(&["a", ""], [1, 2, 3], &[[1, 2], [3, 4]]),'
        ' (vec!["a".to_string(), String::new()], [1, 2, 3], [[1, 2], [3, 4]]));',
    ),
    "fn f(a: Option<Vec<Option<i32>>>, b: Result<(u8,), String>)"
    " -> Result<Option<Vec<Option<i32>>>, Result<(u8,), String>>": (
        "if a.is_some() { Ok(a) } else { Err(b) }",
        "assert_eq!(f(Some(vec![None, Some(1)]), Ok((1,))), Ok(Some(vec![None, Some(1)])));\n"
        'assert_eq!(f(None, Err("x".into())), Err(Err("x".to_string())));',
    ),
    "use std::collections::*;\n"
    "fn f(a: std::collections::HashMap<String, Vec<u8>>, b: std::collections::BTreeMap<i32, char>)"
    " -> (std::collections::BTreeMap<i32, char>, std::collections::HashMap<String, Vec<u8>>)": (
        "(b, a)",
        "use std::collections::{HashMap, BTreeMap};\n"
        'assert_eq!(f(HashMap::from([("a".to_string(), vec![1])]), BTreeMap::from([(1, \'x\')])),'
        ' (BTreeMap::from([(1, \'x\')]), HashMap::from([("a".to_string(), vec![1])])));',
    ),
    "use std::collections::{HashSet, BTreeSet, VecDeque};\n"
    "fn f(a: &HashSet<(i32, bool)>, b: BTreeSet<String>, c: VecDeque<i8>)"
    " -> (HashSet<(i32, bool)>, BTreeSet<String>, VecDeque<i8>)": (
        "(a.clone(), b, c)",
        "use std::collections::{HashSet, BTreeSet, VecDeque};\n"
        "let a = HashSet::from([(1, true), (2, false)]);\n"
        'let b = BTreeSet::from(["x".to_string()]);\n'
        "let c = VecDeque::from([1, -1]);\n"
        "assert_eq!(f(&a, b.clone(), c.clone()), (a.clone(), b, c));",
    ),
    "fn f(a: std::cmp::Ordering, b: Box<i32>) -> (Box<i32>, std::cmp::Ordering)": (
        "(b, a.reverse())",
        "use std::cmp::Ordering::{Greater, Less};\n"
        "assert_eq!(f(Less, Box::new(3)), (Box::new(3), Greater));",
    ),
    "fn f(a: &mut Vec<i32>, b: &mut [u8], c: &mut String, d: &mut [i32; 2], e: &mut u64)"
    " -> usize": (
        "a.push(9); b.sort(); c.insert(0, 'x'); d[1] = 7; *e += 1; a.len()",
        'let (mut a, mut b, mut c, mut d, mut e) = (vec![1], [3, 1], "y".to_string(), [1, 2], 5);\n'
        "assert_eq!(f(&mut a, &mut b, &mut c, &mut d, &mut e), 2);\n"
        'assert_eq!((a, b, c, d, e), (vec![1, 9], [1, 3], "xy".to_string(), [1, 7], 6));',
    ),
    "fn f<'a>(a: &'a mut Vec<String>) -> Option<&'a String>": (
        'a.push("n".into()); a.last()',
        "let mut a = vec![];\n"
        'assert_eq!(f(&mut a), Some(&"n".to_string()));\n'
        "assert_eq!(a.len(), 1);",
    ),
    "fn f(a: Vec<()>) -> Vec<()>": (
        "a", "assert_eq!(f(vec![(); 1000]).len(), 1000);\nassert_eq!(f(vec![]).len(), 0);",
    ),
    "fn f(a: Vec<i64>) -> Vec<i64>": (
        "a", "let big: Vec<i64> = (0..200_000).collect();\nassert_eq!(f(big.clone()), big);",
    ),
    "async fn f(a: i32) -> i32": ("a + 1", "assert_eq!(f(1).await, 2);"),
    "fn f(mut a: Vec<u8>, (b, c): (i32, i32), &d: &i32, _: u8) -> (Vec<u8>, i32)": (
        "a.reverse(); (a, b + c + d)",
        "assert_eq!(f(vec![1, 2], (3, 4), &5, 6), (vec![2, 1], 12));",
    ),
}  # fmt: skip


@pytest.mark.parametrize("signature", NUMBERS)
def test_every_type_crosses_exactly(signature: str, sandbox: RustSandbox, tmp_path: Path) -> None:
    body, tests = NUMBERS[signature]
    verdict = verdict_of(sandbox, tmp_path, f"{signature} {{ {body} }}\n", tests)
    assert verdict.solved, verdict
    assert {one.result.mode for one in verdict.judged} == {"split"}
    assert verdict.control == "held"


@pytest.mark.parametrize("edition", ["2015", "2018", "2021", "2024"])
def test_every_edition_is_judged(edition: str, sandbox: RustSandbox, tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text(f'[package]\nname = "c"\nedition = "{edition}"\n')
    code = "#![deny(warnings)]\n#![forbid(unsafe_code)]\nmod m { fn f(x: i32) -> i32 { x + 1 } }\n"
    verdict = verdict_of(sandbox, tmp_path, code, "assert_eq!(f(1), 2);")
    assert verdict.solved and verdict.control == "held", verdict


def test_a_stub_that_does_not_compile_is_judged_in_one_process_and_says_so(
    sandbox: RustSandbox, tmp_path: Path
) -> None:
    """The file calls the target where only constants may be called: no stub can stand there."""
    code = "const fn f(x: i32) -> i32 { x + 1 }\nconst TWO: i32 = f(1);\n"
    verdict = verdict_of(sandbox, tmp_path, code, "assert_eq!(f(TWO), 3);")
    assert verdict.solved and verdict.control == "held", verdict
    assert [one.result.mode for one in verdict.judged] == ["in-process"]


def test_a_panic_is_expected_only_from_the_candidate(sandbox: RustSandbox, tmp_path: Path) -> None:
    tests = "#[test]\n#[should_panic]\nfn t() { f(-1); }\n"
    right = "fn f(x: i32) -> i32 { assert!(x >= 0); x }\n"
    assert verdict_of(sandbox, tmp_path, right, tests).solved
    for wrong in ("fn f(x: i32) -> i32 { x }\n", "fn f(x: i32) -> i32 { std::process::exit(x) }\n"):
        assert not verdict_of(sandbox, tmp_path, wrong, tests).solved
