"""`reflexfix solve` on Rust files, end to end: the real command, client and containers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from endpoint import scripted, serving

from reflexfix.attempt import Suite, Verdict
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine
from reflexfix.containers.rust import RustSandbox
from reflexfix.task import open_task

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("no_orphan_left")]

TESTS = {
    "25-rs-generics-trait-bounds": """
assert_eq!(ranked_counts(vec!["b", "a", "b"]), vec![("b", 2), ("a", 1)]);
assert_eq!(ranked_counts(vec![2, 1, 3, 3]), vec![(3, 2), (1, 1), (2, 1)]);
assert!(ranked_counts(Vec::<i32>::new()).is_empty());
""",
    "27-rs-result-option": """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(parse_limits("a = 1"), Ok(vec![("a".to_string(), Some(1))]));
        assert_eq!(parse_limits("a="), Ok(vec![("a".to_string(), None)]));
    }

    #[test]
    fn bad_lines() {
        assert_eq!(parse_limits("\\n\\nx"), Err(LimitError::NoEquals { line: 3 }));
    }
}
""",
    "28-rs-impl-block": """
let mut recent = Recent::new(0);
assert_eq!(recent.push(7), Some(7));
let mut two = Recent::new(2);
two.push('a');
two.push('b');
assert_eq!(two.push('c'), Some('a'));
assert_eq!(two.to_string(), "b, c");
""",
    "29-rs-use-and-inner-attribute": """
assert_eq!(report(&[("b", 2), ("a", 1), ("b", 5)], &mut Totals::new()), "a: 1 (1)\\nb: 7 (2)\\n");
let mut totals = Totals::new();
report(&[("x", 3)], &mut totals);
assert_eq!(totals["x"], (3, 1));
assert_eq!(report(&[], &mut Totals::new()), "");
""",
    "31-rs-todo-impl-iterator": """
assert_eq!(window_max(&[1, 5, 2], 2).collect::<Vec<_>>(), vec![5, 5]);
assert_eq!(window_max(&[1, 9, 2], 3).collect::<Vec<i32>>(), vec![9]);
assert_eq!(window_max(&[1], 0).count(), 0);
""",
    "33-rs-raw-strings-braces": """
assert_eq!(expand("a {{x}}", &[("x", "1")]), "a 1");
assert_eq!(expand("{{a}}{{b}}", &[("a", "{{b}}"), ("b", "2")]), "{{b}}2");
assert_eq!(expand(SAMPLE, &[("name", "n")]), r#"{"open": "n", "hash": "r\\"x\\""#);
""",
    "35-rs-existing-tests-and-main": """
assert_eq!(show_cents(0), "0.00");
assert_eq!(show_cents(i64::MIN), "-92,233,720,368,547,758.08");
""",
}
SPLIT = ("29-rs-use-and-inner-attribute", "33-rs-raw-strings-braces",
         "35-rs-existing-tests-and-main")  # fmt: skip


@pytest.fixture
def no_orphan_left(engine: Engine) -> Iterator[None]:
    """Hold that a command that has ended left no container behind."""
    yield
    listed = engine.client.api.containers(all=True, filters={"label": containers.APP})
    labels = [one["Labels"] for one in listed]
    owners = [label["reflexfix.owner"] for label in labels]
    assert not [owner for owner in owners if containers.is_orphan(owner, "")]


def fenced(code: str) -> str:
    return f"Here it is:\n\n```rust\n{code}\n```\nDone."


def setup_case(shared: Path, folder: Path, case: str) -> tuple[Path, list[str]]:
    file = folder / "signature.rs"
    shutil.copy(shared / "cases" / case / "signature.rs", file)
    return file, ["--function", "show_cents"] if case.startswith("35") else []


def hidden_verdict(
    sandbox: RustSandbox, shared: Path, case: str, file: Path, function: str
) -> Verdict:
    """Judge a solved file by the hidden test, in the sandbox's own image."""
    task = open_task(file, function)
    tests = task.user_tests(shared / "cases" / case / "hidden_test.rs")
    return sandbox.run(task.candidate(task.original), Suite(user=tests))


FUNCTIONS = {"25": "ranked_counts", "27": "parse_limits", "28": "Recent::push", "29": "report",
             "31": "window_max", "33": "expand", "35": "show_cents"}  # fmt: skip


@pytest.mark.parametrize("case", TESTS)
def test_a_reference_answer_is_written_and_passes_the_hidden_test(
    case: str, shared: Path, tmp_path: Path, command: Command, rust_sandbox: RustSandbox
) -> None:
    file, more = setup_case(shared, tmp_path, case)
    reference = (shared / "cases" / "_reference" / f"{case}.rs").read_text()
    answers = scripted(implement=[fenced(reference)], improve=[fenced(reference)],
                       write_tests=[fenced(TESTS[case])], reflect=["It is wrong."])  # fmt: skip
    with serving(answers) as endpoint:
        ran = command("solve", file, *more, "--write", "--base-url", endpoint.url)
    assert ran.code == 0, ran.err
    assert ran.out == b""
    assert file.read_text() == reference
    verdict = hidden_verdict(rust_sandbox, shared, case, file, FUNCTIONS[case[:2]])
    assert verdict.solved, verdict
    modes = {one.result.mode for one in verdict.judged}
    assert modes == {"split" if case in SPLIT else "in-process"}


@pytest.mark.parametrize("case", TESTS)
def test_a_wrong_answer_is_not_solved(
    case: str, shared: Path, tmp_path: Path, command: Command, rust_sandbox: RustSandbox
) -> None:
    file, more = setup_case(shared, tmp_path, case)
    before = file.read_bytes()
    wrong_file = shared / "cases" / "_wrong" / f"{case}.rs"
    wrong = fenced(wrong_file.read_text())
    answers = scripted(implement=[wrong], improve=[wrong], write_tests=[fenced(TESTS[case])],
                       reflect=["It is wrong.", "Quite wrong.", "Another idea."])  # fmt: skip
    with serving(answers) as endpoint:
        ran = command("solve", file, *more, "--trials", "2", "--write", "--base-url", endpoint.url)
    assert ran.code == 1, ran.err
    assert file.read_bytes() == before
    verdict = hidden_verdict(rust_sandbox, shared, case, wrong_file, FUNCTIONS[case[:2]])
    assert verdict.counted and not verdict.solved


# ---------------------------------------------------------------- cases that need nothing outside

STUB = """/// Give twice x.
///
/// >>> double(2)
/// 4
pub fn double(x: i32) -> i32 {
    todo!()
}
"""
RIGHT = "```rust\npub fn double(x: i32) -> i32 {\n    x * 2\n}\n```"
WRONG = "```rust\npub fn double(x: i32) -> i32 {\n    x * 3\n}\n```"
OWN = """```rust
assert_eq!(double(0), 0);
assert_eq!(double(-3), -6);
assert_eq!(double(5), 10);
```"""


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    file = tmp_path / "double.rs"
    file.write_text(STUB)
    return file


def test_stdout_is_the_completed_file_and_nothing_else(stub: Path, command: Command) -> None:
    with serving(scripted(implement=[RIGHT], write_tests=[OWN])) as endpoint:
        ran = command("solve", stub, "--base-url", endpoint.url)
    assert ran.code == 0, ran.err
    assert ran.out.decode() == STUB.replace("todo!()", "x * 2")
    assert "trial 1: 4 of 4 passed" in ran.err.splitlines()


def test_a_failure_becomes_a_lesson_and_the_next_try_is_conditioned_on_it(
    stub: Path, command: Command
) -> None:
    answers = scripted(implement=[WRONG], improve=[RIGHT], write_tests=[OWN],
                       reflect=["Multiply by two, not by three."])  # fmt: skip
    with serving(answers) as endpoint:
        ran = command("solve", stub, "--base-url", endpoint.url, "--json")
        improve = next(body for question, body, _ in endpoint.asked if question == "improve")
    assert ran.code == 0, ran.err
    prompt = improve["messages"][1]["content"]
    assert "Multiply by two, not by three." in prompt
    assert "expected: 4" in prompt and "actual:   6" in prompt
    assert "Rust file" in prompt and "```rust" in prompt
    assert json.loads(ran.out)["lessons"][0]["outcome"] == "helped"


def test_what_the_compiler_says_is_the_feedback_in_the_users_own_lines(
    stub: Path, command: Command
) -> None:
    untyped = '```rust\npub fn double(x: i32) -> i32 {\n    let y: i32 = "a";\n    y\n}\n```'
    answers = scripted(implement=[untyped], improve=[RIGHT], write_tests=[OWN], reflect=["Types."])
    with serving(answers) as endpoint:
        ran = command("solve", stub, "--base-url", endpoint.url)
        improve = next(body for question, body, _ in endpoint.asked if question == "improve")
    assert ran.code == 0, ran.err
    prompt = improve["messages"][1]["content"]
    assert "does not compile" in prompt
    assert 'error[E0308]: mismatched types\n  at double.rs:6: let y: i32 = "a";' in prompt
    assert "expected `i32`, found `&str`" in prompt
    assert "reflexfix" not in prompt


def test_ill_typed_tests_are_dropped_one_by_one_with_the_reason(
    stub: Path, command: Command
) -> None:
    own = 'assert_eq!(double("2"), 4);\nassert_eq!(double(3), 6);\nassert_eq!(double(1), "2");\n'
    with serving(scripted(implement=[RIGHT], write_tests=[own])) as endpoint:
        ran = command("solve", stub, "--base-url", endpoint.url, "--json")
    assert ran.code == 0, ran.err
    assert "tests: 1 kept of 3" in ran.err
    shown = command("show").out.decode()
    assert "E0308" in shown or "E0277" in shown


def test_the_second_question_for_tests_speaks_rust(tmp_path: Path, command: Command) -> None:
    (tmp_path / "m.rs").write_text("pub fn double(x: i32) -> i32 {\n    todo!()\n}\n")
    answers = scripted(implement=[RIGHT], write_tests=["Here are no tests.", OWN])
    with serving(answers) as endpoint:
        ran = command("solve", "m.rs", "--base-url", endpoint.url)
        asked = [body for question, body, _ in endpoint.asked if question == "write_tests"]
    assert ran.code == 0, ran.err
    first, second = (body["messages"][1]["content"] for body in asked)
    assert "`assert_eq!` lines only" in second and "`assert_eq!` lines only" not in first


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ('fn other() -> i32 { "a" }\n', "error[E0308]: mismatched types\n  at m.rs:1: fn other()"),
        ("#![feature(never_type)]\n", "error[E0554]"),
        ("use std::nothing::Here;\n", "error[E0432]: unresolved import `std::nothing`"),
    ],
)
def test_a_file_that_does_not_compile_elsewhere_ends_the_run_before_a_token_is_bought(
    tmp_path: Path, command: Command, file: str, said: str
) -> None:
    (tmp_path / "m.rs").write_text(file + "pub fn double(x: i32) -> i32 {\n    todo!()\n}\n")
    with serving(scripted()) as endpoint:
        ran = command("solve", "m.rs", "--base-url", endpoint.url)
        assert endpoint.asked == []
    assert ran.code == 2
    assert f"m.rs does not compile as it is: {said}" in ran.err


@pytest.mark.parametrize(
    "file",
    [
        "use std::fmt::Display;\nfn double(x: i32) -> impl Display + Clone {\n    todo!()\n}\n",
        "const fn double(x: usize) -> usize {\n    todo!()\n}\nstatic A: [u8; double(1)] = [0];\n",
        "fn double(x: i32) -> i32 {\n}\n",
    ],
)
def test_what_the_unwritten_body_is_to_blame_for_ends_no_run(
    tmp_path: Path, file: str, rust_sandbox: RustSandbox
) -> None:
    (tmp_path / "m.rs").write_text(file)
    task = open_task(tmp_path / "m.rs")
    assert rust_sandbox.broken(task.candidate(task.original)) == ""


def test_your_own_tests_file_is_a_trusted_evaluator(tmp_path: Path, command: Command) -> None:
    (tmp_path / "m.rs").write_text("fn double(x: i32) -> i32 {\n    x * 3\n}\n")
    tests = tmp_path / "checks.rs"
    tests.write_text("use super::*;\n\n#[test]\nfn two() {\n    assert_eq!(double(2), 4);\n}\n")
    with serving(scripted(improve=[RIGHT], reflect=["Two."])) as endpoint:
        ran = command("solve", "m.rs", "--function", "double", "--tests", "checks.rs", "--write",
                      "--base-url", endpoint.url)  # fmt: skip
    assert ran.code == 0, ran.err
    assert "verified" in ran.err.splitlines()[-1]
    assert "control: none" not in ran.err
    assert (tmp_path / "m.rs").read_text() == "fn double(x: i32) -> i32 {\n    x * 2\n}\n"


def test_a_tests_file_that_does_not_compile_ends_the_run(tmp_path: Path, command: Command) -> None:
    (tmp_path / "m.rs").write_text("fn double(x: i32) -> i32 {\n    todo!()\n}\n")
    (tmp_path / "checks.rs").write_text('#[test]\nfn two() {\n    assert_eq!(double("2"), 4);\n}\n')
    with serving(scripted()) as endpoint:
        ran = command("solve", "m.rs", "--tests", "checks.rs", "--base-url", endpoint.url)
        assert endpoint.asked == []
    assert ran.code == 2
    assert "checks.rs two does not compile: error[E0308]" in ran.err


def test_a_crate_from_elsewhere_ends_the_run_in_one_line(tmp_path: Path, command: Command) -> None:
    (tmp_path / "m.rs").write_text("use rand::Rng;\n\nfn double(x: i32) -> i32 {\n    todo!()\n}\n")
    with serving(scripted()) as endpoint:
        ran = command("solve", "m.rs", "--base-url", endpoint.url)
        assert endpoint.asked == []
    assert ran.code == 2
    assert "m.rs uses rand, which the sandbox does not have." in ran.err


def test_the_tests_are_compiled_once_for_all_attempts(
    stub: Path, rust_sandbox: RustSandbox
) -> None:
    task = open_task(stub, None)
    suite = Suite(cases=tuple(task.examples()))
    before = set(rust_sandbox.libraries)
    for answer, solved in ((WRONG, False), (RIGHT, True)):
        verdict = rust_sandbox.run(task.candidate(task.read(answer).file), suite)
        assert verdict.solved is solved
        assert [one.result.mode for one in verdict.judged] == ["split"]
    assert len(set(rust_sandbox.libraries) - before) == 1
