"""Own tests are cut, filtered by their syntax tree, and made to say what they saw."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix.attempt import Case
from reflexfix.rust import cases, selftests, syntax
from reflexfix.rust.task import RustTask, open_task
from reflexfix.task import Dropped


def task_of(folder: Path, code: str, function: str | None = None) -> RustTask:
    (folder / "x.rs").write_text(code)
    return open_task(folder / "x.rs", function, False)


@pytest.fixture
def task(tmp_path: Path) -> RustTask:
    return task_of(tmp_path, "fn f(x: i32) -> Vec<i32> { todo!() }\nfn g() {}\n")


def kept(task: RustTask, answer: str) -> list[Case]:
    return task.own_tests(answer, [])[0]


def dropped(task: RustTask, answer: str) -> list[Dropped]:
    return task.own_tests(answer, [])[1]


@pytest.mark.parametrize(
    "test",
    [
        "assert_eq!(f(1), vec![0; 3]);",
        'assert_eq!(f(1), vec![";".len() as i32]);',
        "assert_eq!(\n    f(1),\n    vec![1, 2],\n);",
        "assert!(f(1).is_empty());",
        "assert!(f(1) == vec![]);",
        'assert_ne!(f(1), vec![], "never {} empty", 1);',
        "let xs = f(2);\nassert_eq!(xs.len(), 3);",
        "let candidate = f;\nassert_eq!(candidate(3), vec![]);",
        "for n in 0..3 {\n    assert_eq!(f(n).len(), 0);\n}",
        "assert!(matches!(f(1).first(), Some(1 | 2)));",
        "assert!((f(1)[0] as f64 - 0.5).abs() < 1e-9);",
        "debug_assert_eq!(f(0), vec![]);",
    ],
)
def test_a_test_of_the_target_is_kept_whole(test: str, task: RustTask) -> None:
    for answer in (f"```rust\n{test}\n```", test, f"Tests:\n```\n// one\n{test}\n```\n"):
        found, left = task.own_tests(answer, [])
        assert [case.shown for case in found] == [test] and not left


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert_eq!(g(), ());", "does not call f"),
        ("assert!(true);", "does not call f"),
        ("assert_eq!(f(1), f(1));", "true by itself"),
        ('assert_eq!(f(1), std::fs::read("x").unwrap());', "uses fs"),
        ("std::thread::spawn(|| ()); assert_eq!(f(1), vec![]);", "uses thread"),
        ("assert_eq!(unsafe { f(1) }, vec![]);", "uses unsafe"),
        ('assert_eq!(f(1).len(), include_str!("x").len());', "uses include_str"),
        ("use std::process::exit;\nassert_eq!(f(exit(0)), vec![]);", "uses process"),
        ("assert_eq!(f(1), vec![" + "1, " * 3000 + "]);", "too long"),
    ],
)
def test_what_is_not_worth_running_is_dropped_with_the_reason(
    test: str, reason: str, task: RustTask
) -> None:
    assert not kept(task, test)
    assert any(reason in one.reason for one in dropped(task, test))


def test_repeats_are_dropped_whatever_their_layout(task: RustTask) -> None:
    found, left = task.own_tests("assert_eq!(f(1), vec![]);\nassert_eq!( f( 1 ),vec![] ) ;", [])
    assert len(found) == 1 and left[0].reason == "repeats another test"


def test_comments_never_count(task: RustTask) -> None:
    found = kept(task, "// assert_eq!(f(1), vec![]);\n/* assert_eq!(f(2), vec![]); */\n")
    assert found == []


def test_test_functions_and_modules_are_unrolled(task: RustTask) -> None:
    answer = """```rust
#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn helper() -> i32 { 2 }

    #[test]
    fn two() {
        let a = 1;
        let set: HashSet<i32> = HashSet::from([1]);
        assert_eq!(f(a), vec![helper()]);
        assert!(set.contains(&f(2)[0]));
    }

    #[test]
    #[should_panic]
    fn third() { f(-1); }

    #[test]
    #[ignore]
    fn never() { assert_eq!(f(7), vec![]); }

    #[test]
    fn with_result() -> Result<(), String> {
        assert_eq!(f(8), vec![]);
        Ok(())
    }
}

fn main() { assert_eq!(f(9), vec![9]); }
```"""
    found = kept(task, answer)
    assert [case.shown for case in found] == [
        "let a = 1;\nassert_eq!(f(a), vec![helper()]);",
        "let set: HashSet<i32> = HashSet::from([1]);\nassert!(set.contains(&f(2)[0]));",
        "f(-1);\n(must panic)",
        "assert_eq!(f(8), vec![]);\nOk(())",
        "assert_eq!(f(9), vec![9]);",
    ]
    assert "fn helper() -> i32 { 2 }" in found[0].source and "helper" not in found[1].source
    assert "use std::collections::HashSet;" in found[1].source
    assert found[2].source.endswith("::reflexfix_wire::panics(|| {\nf(-1);\n});")
    assert "fn returning() -> Result<(), String>" in found[3].source


def test_what_changes_a_binding_stays_before_the_assertion(task: RustTask) -> None:
    answer = "let mut s = f(1);\ns.push(1);\nassert_eq!(s.pop(), Some(1));\nassert_eq!(s, f(2));\n"
    found = kept(task, answer)
    assert found[0].shown == "let mut s = f(1);\ns.push(1);\nassert_eq!(s.pop(), Some(1));"
    assert found[1].shown == answer.strip()


@pytest.mark.parametrize(
    ("test", "source"),
    [
        ("assert_eq!(f(1), x);", "::reflexfix_wire::check_eq!(f(1), x);"),
        ("assert_eq!(x, f(1));", "::reflexfix_wire::check_eq_turned!(x, f(1));"),
        ("assert!(f(1) == x);", "::reflexfix_wire::check_eq!(f(1), x);"),
        ('assert!(f(1) != x, "m");', '::reflexfix_wire::check_ne!(f(1), x, "m");'),
        ("assert!(f(1) < x);", "::reflexfix_wire::check_order!(f(1), <, x);"),
        ("assert!(f(1) && x);", "::reflexfix_wire::check_that!(f(1) && x);"),
        ('assert!(!f(1), "m");', '::reflexfix_wire::check_that!(!f(1), "m");'),
        ("assert_eq!(f::<A, B>(1), x);", "::reflexfix_wire::check_eq!(f::<A, B>(1), x);"),
    ],
)
def test_assertions_become_ours_and_say_what_they_saw(
    test: str, source: str, task: RustTask
) -> None:
    assert kept(task, test)[0].source == source


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("m!(a, b)", ["a", "b"]),
        ('m!(f(1, 2), vec![1, 2], "x, {}", y,)', ["f(1, 2)", "vec![1, 2]", '"x, {}"', "y"]),
        ("m!(HashMap::<i32, i32>::new(), |a, b| a)", ["HashMap::<i32, i32>::new()", "|a, b| a"]),
        ("m!()", []),
    ],
)
def test_arguments_are_cut_at_whole_expressions(call: str, wanted: list[str]) -> None:
    root = syntax.parse(f"{call};".encode())
    node = next(syntax.find(root, "macro_invocation"))
    assert selftests.arguments(node) == wanted


def test_the_control_holds_a_tests_value_to_a_private_text(task: RustTask) -> None:
    found = kept(task, "assert_eq!(vec![1], f(1));")
    control, private = task.control(found)
    assert control is not None
    assert control.source == f'::reflexfix_wire::check_control!(f(1), "{private}");'


def test_the_control_of_a_panic_is_a_panic(task: RustTask) -> None:
    unit = selftests.Unit((), (), (), (syntax.parse(b"f(1);").children[0],), should_panic=True)
    case = cases.case_of(unit, "x", "own", "split", task.context, False)
    control, private = task.control([case])
    assert control is not None and private in control.source
    assert "catch_unwind" in control.source and not syntax.parse(control.source.encode()).has_error


@pytest.mark.parametrize(
    ("file", "test", "mode"),
    [
        (
            "fn f(x: &str) -> Option<Vec<(i32, char)>> { todo!() }",
            'assert_eq!(f(""), None);',
            "split",
        ),
        ("struct S;\nfn f(x: S) -> i32 { todo!() }", "assert_eq!(f(S), 1);", "in-process"),
        ("static N: i32 = 1;\nfn f() -> i32 { todo!() }", "assert_eq!(f(), N);", "in-process"),
        ("fn f<T>(x: T) -> i32 { todo!() }", "assert_eq!(f(1), 1);", "in-process"),
        (
            "struct S;\nimpl S { fn f(&self) -> i32 { todo!() } }",
            "assert_eq!(S.f(), 1);",
            "in-process",
        ),
    ],
)
def test_the_mode_is_decided_by_signature_and_test(
    file: str, test: str, mode: str, tmp_path: Path
) -> None:
    assert kept(task_of(tmp_path, file), test)[0].mode == mode


def test_tests_in_the_file_itself_are_the_users(tmp_path: Path) -> None:
    file = (
        "fn f() -> i32 { 1 }\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n"
        "    fn one() { assert_eq!(f(), 1); assert!(f() > 0); }\n    #[test]\n    fn two() {}\n}\n"
    )
    found = task_of(tmp_path, file, "f").examples()
    assert [(case.name, case.origin) for case in found] == [("test one", "user")]


PARTS = st.sampled_from(
    ["assert_eq!(f(1), ", "1);", "assert!(", ")", "{", "}", "fn f() {", "#[test]\n", "mod m {",
     "\"", "let x = ", ";", "r#\"", "use a::", "```rust\n", "```\n", "f(", ",", "//", "\n"]
)  # fmt: skip


@given(st.text() | st.lists(PARTS).map("".join))
def test_no_answer_ever_raises(text: str) -> None:
    context = selftests.Context("f")
    units, left = cases.own_cases(text, context, [])
    for unit in units:
        cases.case_of(unit, "n", "own", "split", context, False)
    assert all(one.reason for one in left)
