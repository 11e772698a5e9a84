"""Benchmarks in their published forms: rows of our own in each form, and the files beside us."""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED

from reflexfix.benchmarks.formats import path_of, read
from reflexfix.benchmarks.problem import BadRow, Inputs, Problem, Program, Wishes
from reflexfix.errors import UsageProblem
from reflexfix.task import task_of

HUMANEVAL = {
    "task_id": "Own/0",
    "prompt": 'def half(n: int) -> int:\n    """Halve.\n    >>> half(4)\n    2\n    """\n',
    "entry_point": "half",
    "canonical_solution": "    return n // 2\n",
    "test": "def check(candidate):\n    assert candidate(6) == 3\n    assert candidate(7) == 3\n",
}
MBPP = {
    "task_id": 7,
    "text": 'Write a function to say "twice" of a\\b.',
    "code": "import re\r\ndef aux(s):\r\n\treturn s\r\n"
    "def twice(s, n=2, m=aux):\r\n\treturn aux(s) * n\r\n",
    "test_setup_code": "",
    "test_list": [
        'assert twice("a") == "aa"',
        'assert twice("ab") == "abab"',
        'assert twice("") == ""',
    ],
    "challenge_test_list": [],
}
RUST_PROMPT = "/// Halve.\n/// >>> half(4)\n/// 2\nfn half(n: isize) -> isize {\n"
RUST_TEST = "fn main() {\n    let candidate = half;\n    assert_eq!(candidate(6), 3);\n}\n"
MULTIPL = {"name": "own_0_half", "language": "rs", "prompt": RUST_PROMPT, "test": RUST_TEST}
USES = "use std::{cmp::max, ascii::AsciiExt};\nuse rand::Rng;\nuse regex::Regex;\nuse md5;\n"
RUST_MODULE = (
    "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn test_half() {\n"
    "        assert_eq!(half(6), 3);\n    }\n}\n"
)
HUMANEVAL_X = {
    "task_id": "Rust/0",
    "prompt": "\n/*\n Halve a number.\n*/\n",
    "declaration": f"\n{USES}\nfn half(n: i32) -> i32 {{\n",
    "canonical_solution": "    n / 2\n}\n",
    "test": RUST_MODULE,
    "example_test": "None",
}
PACK = {
    "task_id": "Rust/1",
    "prompt": f"fn main(){{}}\n\n{USES}\n/*\n Halve a number.\n*/\nfn half(n: i32) -> i32 {{\n",
    "declaration": f"{USES}\nfn half(n: i32) -> i32 {{\n",
    "canonical_solution": "    n / 2\n}\n",
    "buggy_solution": "    n / 3\n}\n",
    "entry_point": "half",
    "test": RUST_MODULE,
}
EVALPLUS = {
    **HUMANEVAL,
    "base_input": [[6], [7]],
    "plus_input": [[8], [float("inf")]],
    "atol": 0,
    "contract": "",
}
MBPP_PLUS = {
    "task_id": "Mbpp/7",
    "prompt": '"""\nWrite a function to find what is in both.\n'
    'assert set(both((1, 2), (2, 3))) == set((2,))\n"""\n',
    "entry_point": "both",
    "canonical_solution": "\ndef both(first, second):\n    return (*{*first} & {*second},)\n",
    "base_input": [[[1, 2], [2, 3]]],
    "plus_input": [[[], []], [[1], [[1, 2]]]],
    "atol": 0,
    "contract": "",
    "assertion": "\nassert both((1, 2), (2, 3)) == (2,)\n",
}
QUIXBUGS = {
    "task_id": "QuixBugs/half",
    "entry_point": "half",
    "buggy": 'import math\n\ndef half(n):\n    return n // 3\n\n\n"""\nHalf\n\nExamples:\n'
    '    >>> half(4)\n    2\n"""\n',
    "fixed": "def half(n):\n    return n // 2\n",
    "json_tests": [[[6], 3], [7, 3]],
    "test": None,
}
OWN = {
    "id": "half",
    "language": "python",
    "source": "def half(n):\n    ...\n",
    "target": "half",
    "tests": ["assert half(6) == 3", "assert half(7) == 3"],
}


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """Write rows into a file and read them as problems."""

    def made(*some: dict[str, Any], name: str = "own.jsonl", **wishes: Any) -> list[Any]:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in some))
        return list(read([path], Wishes(**wishes)))

    return made


def only(found: list[Any]) -> Problem:
    assert len(found) == 1
    assert isinstance(found[0], Problem), found[0]
    return found[0]


# ---------------------------------------------------------------- forms


def test_a_check_that_nobody_calls_is_given_its_call(rows: Any) -> None:
    problem = only(rows(HUMANEVAL))
    assert isinstance(problem.hidden, Program)
    assert problem.hidden.source.rstrip().endswith("check(half)")
    assert problem.source == HUMANEVAL["prompt"]
    assert problem.solution == HUMANEVAL["prompt"] + HUMANEVAL["canonical_solution"]


def test_a_check_that_is_called_already_is_left_as_it_is(rows: Any) -> None:
    test = HUMANEVAL["test"] + "\ndef test_check():\n    check(half)\n\ntest_check()\n"
    assert only(rows({**HUMANEVAL, "test": test})).hidden == Program(test)


def test_a_target_called_check_does_not_clash_with_the_tests_own(rows: Any) -> None:
    test = HUMANEVAL["test"] + "\ndef test_check():\n    check(check)\n\ntest_check()\n"
    prompt = HUMANEVAL["prompt"].replace("half", "check")
    row = {**HUMANEVAL, "prompt": prompt, "entry_point": "check", "test": test}
    hidden = only(rows(row)).hidden
    assert isinstance(hidden, Program)
    space: dict[str, Any] = {"check": lambda n: n // 2}
    exec(hidden.source, space)
    assert "_check(check)" in hidden.source


def test_an_import_before_the_docstring_goes_above_the_function(rows: Any) -> None:
    prompt = 'def half(n):\n    import math\n    """Halve."""\n'
    problem = only(rows({**HUMANEVAL, "prompt": prompt}))
    assert problem.source.startswith("import math\n")
    node = ast.parse(problem.source).body[-1]
    assert isinstance(node, ast.FunctionDef) and ast.get_docstring(node) == "Halve."
    assert problem.notes == ("an import was moved above the function",)


@pytest.mark.parametrize(
    "prompt",
    [
        "def half(n):\n",
        "def half(n):",
        "def half(n):\n    # a comment\n",
        'def half(n):\r\n    """Halve ½ of\\d."""\r\n',
        "FIX = \"\"\"x\"\"\"\n\ndef other(n):\n    return n\n\ndef half(n):\n    '''Halve.'''\n",
    ],
)
def test_a_prompt_opens_as_a_file_however_it_ends(rows: Any, prompt: str) -> None:
    problem = only(rows({**HUMANEVAL, "prompt": prompt}))
    assert task_of(problem.source.encode(), path_of(problem), "half").unfinished
    assert "\r" not in problem.source


def test_tests_that_need_numpy_say_so(rows: Any) -> None:
    test = "import numpy as np\n" + HUMANEVAL["test"]
    assert only(rows({**HUMANEVAL, "test": test})).packages == ("numpy",)


def test_a_stub_of_mbpp_tells_names_and_parameters_only(rows: Any) -> None:
    problem = only(rows(MBPP))
    node = ast.parse(problem.source).body[0]
    assert isinstance(node, ast.FunctionDef)
    assert problem.source.startswith("def twice(s, n=2, m=None):")
    assert ast.get_docstring(node) == MBPP["text"]
    assert problem.id == "Mbpp/7" and problem.function == "twice"
    assert "assert" not in problem.source and "\r" not in problem.solution


def test_asserts_that_are_shown_are_left_out_of_the_score(rows: Any) -> None:
    problem = only(rows(MBPP, visible_tests=1))
    assert problem.visible == MBPP["test_list"][0] + "\n"
    assert isinstance(problem.hidden, Program)
    assert MBPP["test_list"][0] not in problem.hidden.source
    assert MBPP["test_list"][2] in problem.hidden.source
    assert problem.notes == ("tests shown and not scored by: 1 of 3",)


def test_no_problem_is_made_of_a_row_whose_tests_are_all_shown(rows: Any) -> None:
    (found,) = rows(MBPP, visible_tests=3)
    assert isinstance(found, BadRow) and "none is left" in found.why


def test_a_class_that_the_asserts_use_stands_in_the_stub(rows: Any) -> None:
    code = "import sys\nclass Pair:\n    pass\ndef f(p):\n    return sys.maxsize\n"
    problem = only(rows({**MBPP, "code": code, "test_list": ["assert f(Pair()) == sys.maxsize"]}))
    assert "import sys" in problem.source and "class Pair" in problem.source
    assert "return" not in problem.source


def test_the_sanitized_form_has_imports_of_its_own(rows: Any) -> None:
    row = {k: MBPP[k] for k in ("task_id", "code", "test_list")}
    problem = only(rows({**row, "prompt": "Twice.", "test_imports": ["import math"]}))
    assert isinstance(problem.hidden, Program)
    assert problem.hidden.source.startswith("import math\n")


@pytest.mark.parametrize("test", [RUST_TEST, "}\n\n" + RUST_TEST])
def test_a_brace_that_closes_a_completion_is_taken_off(rows: Any, test: str) -> None:
    problem = only(rows({**MULTIPL, "test": test}))
    assert problem.language == "rust" and problem.function == "half"
    assert problem.hidden == Program(RUST_TEST)
    assert task_of(problem.source.encode(), path_of(problem), "half").unfinished


def test_multipl_e_calls_its_tests_tests_as_well(rows: Any) -> None:
    row = {k: v for k, v in MULTIPL.items() if k != "test"} | {"tests": "}\n" + RUST_TEST}
    assert only(rows(row)).hidden == Program(RUST_TEST)


def test_a_language_that_is_not_known_is_a_bad_row(rows: Any) -> None:
    good, bad = rows(MULTIPL, {**MULTIPL, "name": "x", "language": "lua"})
    assert isinstance(good, Problem)
    assert isinstance(bad, BadRow) and "lua" in bad.why and bad.line == 2


LEETCODE = {
    "name": "own_leet",
    "language": "py",
    "prompt": 'def half(ns: List[int]) -> int:\n    """Halve."""\n',
    "entry_point": "half",
    "visible_tests": ["assert half([6]) == 3", "assert half([7]) == 3"],
}


def test_a_row_of_visible_tests_alone_is_scored_by_them(rows: Any) -> None:
    problem = only(rows(LEETCODE))
    assert problem.hidden == Program(problem.visible)
    assert "no hidden tests: scored by the visible ones" in problem.notes


def test_visible_tests_beside_hidden_ones_are_no_score(rows: Any) -> None:
    problem = only(rows({**LEETCODE, "test": "assert half([8]) == 4\n"}))
    assert problem.hidden == Program("assert half([8]) == 4\n")
    assert problem.visible == "\n".join(LEETCODE["visible_tests"])


def test_names_of_typing_that_a_prompt_forgot_are_imported(rows: Any) -> None:
    assert only(rows(LEETCODE)).source.startswith("from typing import List\n")


def test_crates_that_nothing_needs_are_left_out(rows: Any) -> None:
    for row in (HUMANEVAL_X, PACK):
        problem = only(rows(row))
        assert problem.notes == () and problem.packages == ()
        for text in (problem.source, problem.solution):
            assert not any(w in text for w in ("rand", "regex", "md5", "AsciiExt", "fn main"))
            assert "cmp::max" in text
        assert "/// Halve a number." in problem.source
        assert task_of(problem.source.encode(), path_of(problem), "half").unfinished


def test_a_crate_that_the_tests_need_is_named(rows: Any) -> None:
    test = RUST_MODULE.replace("half(6), 3", "half(rand::random::<i32>()), 3")
    problem = only(rows({**HUMANEVAL_X, "test": test}))
    assert problem.packages == ("rand",) and problem.notes == ("needs crate rand",)
    assert "use rand::Rng" not in problem.source or "rand" in problem.packages


def test_a_crate_that_only_the_reference_needs_is_a_note(rows: Any) -> None:
    body = '    let r = Regex::new("x").unwrap();\n    n / 2\n}\n'
    problem = only(rows({**HUMANEVAL_X, "canonical_solution": body}))
    assert problem.packages == () and problem.notes == ("needs crate regex",)
    assert "regex" not in problem.source and "regex" in problem.solution


def test_a_helper_before_the_target_is_given_whole(rows: Any) -> None:
    body = "    n\n}\nfn half(n: i32) -> i32 {\n    same(n) / 2\n}\n"
    declaration = "fn same(n: i32) -> i32 {\n"
    problem = only(rows({**HUMANEVAL_X, "declaration": declaration, "canonical_solution": body}))
    assert problem.function == "half"
    assert "    n\n}" in problem.source and "same(n) / 2" not in problem.source


def test_an_entry_point_that_no_function_has_is_read_from_the_tests(rows: Any) -> None:
    assert only(rows({**PACK, "entry_point": "third"})).function == "half"


def test_a_buggy_body_is_taken_along_where_repair_is_wished(rows: Any) -> None:
    assert "n / 3" not in only(rows(PACK)).source
    repair = only(rows(PACK, repair=True))
    assert "n / 3" in repair.source and "n / 2" in repair.solution
    assert task_of(repair.source.encode(), path_of(repair), "half").old_body


def test_a_python_row_of_the_pack_calls_check_itself(rows: Any) -> None:
    row = {**HUMANEVAL, "task_id": "Python/0", "buggy_solution": "    return n // 3\n"}
    row["test"] = "def check(half):\n    assert half(6) == 3\n\ncheck(half)\n"
    assert only(rows(row)).hidden == Program(row["test"])
    assert only(rows(row, repair=True)).source.endswith("return n // 3\n")


def test_evalplus_has_two_scores(rows: Any) -> None:
    problem = only(rows(EVALPLUS))
    assert problem.base == Inputs(("(6,)", "(7,)"))
    assert problem.hidden == Inputs(("(8,)", "(inf,)"))


def test_arguments_of_mbpp_plus_are_what_its_asserts_say(rows: Any) -> None:
    problem = only(rows(MBPP_PLUS))
    assert isinstance(problem.base, Inputs) and isinstance(problem.hidden, Inputs)
    assert problem.base.arguments == ("((1, 2,), (2, 3,),)",)
    assert problem.hidden.arguments == ("((), (),)", "((1,), ([1, 2],),)")
    assert problem.hidden.view == "set(value)"


def test_a_prompt_of_mbpp_plus_is_taken_as_given_and_what_it_shows_is_told(rows: Any) -> None:
    problem = only(rows(MBPP_PLUS))
    assert problem.source.startswith("def both(first, second):")
    assert "assert set(both((1, 2), (2, 3)))" in problem.source
    assert problem.notes == ("hidden tests stand in the prompt: 1",)


def test_numbers_that_became_text_are_numbers_again(rows: Any) -> None:
    row = {**MBPP_PLUS, "assertion": "\nassert both(1j, 2) == (2,)\n"}
    row |= {"base_input": [["1j", "2.5"]], "plus_input": {}}
    problem = only(rows(row))
    assert isinstance(problem.base, Inputs) and isinstance(problem.hidden, Inputs)
    assert problem.base.arguments == ("(complex('1j'), float('2.5'),)",)
    assert problem.hidden.arguments == ()


def test_mbpp_plus_as_a_program_needs_numpy(rows: Any) -> None:
    row = {k: MBPP[k] for k in ("task_id", "code", "test_list")}
    test = "import numpy as np\nassert twice('x') == 'xx'\n"
    problem = only(rows({**row, "prompt": "Twice.", "test_imports": [], "test": test}))
    assert problem.hidden == Program(test) and problem.packages == ("numpy",)
    assert isinstance(problem.base, Program)


def test_a_text_below_a_program_becomes_its_docstring(rows: Any) -> None:
    for repair in (False, True):
        problem = only(rows(QUIXBUGS, repair=repair))
        task = task_of(problem.source.encode(), path_of(problem), "half")
        assert bool(task.old_body) is repair
        assert [case.shown for case in task.examples()] == ["half(4) == 2"]
    assert problem.hidden == Program("assert half(6) == 3\nassert half(7) == 3\n")


def test_tests_of_pytest_call_themselves_with_nodes_of_their_own(rows: Any) -> None:
    test = (
        "import pytest\nfrom node import Node\n\nif pytest.use_correct:\n"
        "    from correct_python_programs.half import half\nelse:\n"
        "    from python_programs.half import half\n\n"
        "def test1():\n    assert half(Node(6)) == 3\n"
    )
    problem = only(rows({**QUIXBUGS, "json_tests": None, "test": test}))
    assert isinstance(problem.hidden, Program)
    assert "pytest" not in problem.hidden.source and "class Node" in problem.hidden.source
    assert problem.hidden.source.rstrip().endswith("test1()")


def test_a_helper_among_the_programs_is_no_problem(rows: Any) -> None:
    good, bad = rows(QUIXBUGS, {**QUIXBUGS, "task_id": "QuixBugs/node", "json_tests": None})
    assert isinstance(good, Problem) and isinstance(bad, BadRow)


def test_our_own_form_takes_python_and_rust(rows: Any) -> None:
    rust = {
        "id": "rust",
        "language": "rust",
        "source": "pub fn half(n: i32) -> i32 {\n    todo!()\n}\n",
        "target": "half",
        "tests": "#[test]\nfn t() {\n    assert_eq!(half(6), 3);\n}\n",
        "seconds": 3,
    }
    python, other = rows(OWN, rust)
    assert python.hidden == Program("assert half(6) == 3\nassert half(7) == 3\n")
    assert other.language == "rust" and other.seconds == 3.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"language": "lua"}, "python or rust"),
        ({"target": "third"}, "do not call third"),
        ({"source": "def half(n:\n"}, "solution.py:1"),
        ({"source": "x = 1\n"}, "no function half"),
        ({"tests": []}, "no tests"),
        ({"tests": ["assert True"]}, "do not call half"),
        ({"tests": ["assert half(", ""]}, "the tests: "),
        ({"tests": 3}, "tests is no list of texts"),
        ({"source": None}, "source is no text"),
        ({"source": "def half(n):\n    '\ud800'\n"}, "characters that no file can have"),
        ({"seconds": 0}, "seconds"),
    ],
)
def test_a_bad_row_is_told_and_the_others_run(rows: Any, change: Any, why: str) -> None:
    bad, good = rows({**OWN, **change, "id": "bad"}, OWN)
    assert isinstance(bad, BadRow) and why in bad.why
    assert isinstance(good, Problem)


# ---------------------------------------------------------------- files


def test_an_id_that_stands_twice_in_a_run_is_a_bad_row(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps(OWN) + "\n")
    first, second = read([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], Wishes())
    assert isinstance(first, Problem)
    assert isinstance(second, BadRow) and "a.jsonl:1" in second.why


def test_problems_with_one_function_name_are_different_problems(rows: Any) -> None:
    found = rows(OWN, {**OWN, "id": "half too"})
    assert [p.id for p in found] == ["half", "half too"]


def test_gzip_lists_byte_order_marks_and_crlf_are_read(tmp_path: Path) -> None:
    line = json.dumps(OWN).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + line + b"\r\n\r\n"))
    (tmp_path / "b.json").write_text(json.dumps([{**OWN, "id": "b"}], indent=1))
    found = list(read([tmp_path / "a.jsonl.gz", tmp_path / "b.json"], Wishes()))
    assert [p.id for p in found if isinstance(p, Problem)] == ["half", "b"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.jsonl", b"", "x.jsonl:1: this file has no rows"),
        ("x.jsonl", b'{"a": 1}\n', "x.jsonl:1: this is no form"),
        ("x.jsonl", b"{\n", "x.jsonl:1: is not JSON"),
        ("x.jsonl", b"\xff\xfe\n", "x.jsonl:1: is not JSON"),
        ("x.json", b'[{"a": 1},\n{"b"\n', "x.json:3: this is not JSON"),
        ("x.json", b"{}", "x.json:1: this is no list"),
        ("x.jsonl.gz", b"no gzip", "x.jsonl.gz:1: this file is damaged"),
    ],
)
def test_a_file_of_no_known_form_is_refused_with_its_line(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageProblem, match=said):
        read([tmp_path / name], Wishes())


def test_a_missing_file_is_refused_before_the_first_problem(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(OWN) + "\n")
    with pytest.raises(UsageProblem, match="does not exist"):
        read([tmp_path / "a.jsonl", tmp_path / "none.jsonl"], Wishes())


def test_a_file_that_is_cut_off_says_where(tmp_path: Path) -> None:
    lines = "".join(json.dumps({**OWN, "id": str(n)}) + "\n" for n in range(20_000))
    data = gzip.compress(lines.encode())
    (tmp_path / "x.jsonl.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(UsageProblem, match=r"x.jsonl.gz:\d+: this file is damaged"):
        list(read([tmp_path / "x.jsonl.gz"], Wishes()))


def test_a_broken_line_in_the_middle_is_a_bad_row(tmp_path: Path) -> None:
    line = json.dumps(OWN)
    (tmp_path / "x.jsonl").write_text(f"{line}\n{{\n[1]\n" + line.replace("half", "third") + "\n")
    found = list(read([tmp_path / "x.jsonl"], Wishes()))
    assert [type(one).__name__ for one in found] == ["Problem", "BadRow", "BadRow", "Problem"]


def test_rows_are_read_one_by_one(tmp_path: Path) -> None:
    """A file of any length: the second row is not looked at before it is asked for."""
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(OWN) + "\n" + "{" + "\n" * 3)
    found: Iterator[Any] = read([path], Wishes())
    assert isinstance(next(found), Problem)


# ---------------------------------------------------------------- the files beside us

FILES = {
    "humaneval/HumanEval.jsonl.gz": 164,
    "humaneval-enhanced/human-eval-enhanced-202307.jsonl.gz": 164,
    "humaneval-x-rust/humaneval_rust.jsonl.gz": 164,
    "humanevalpack/humanevalpack-python.jsonl": 164,
    "humanevalpack/humanevalpack-rust.jsonl": 164,
    "evalplus-humaneval/HumanEvalPlus.jsonl.gz": 164,
    "evalplus-humaneval/HumanEvalPlus-Mini.jsonl.gz": 164,
    "evalplus-humaneval/HumanEvalPlus-OriginFmt.jsonl.gz": 164,
    "evalplus-mbpp/MbppPlus.jsonl.gz": 378,
    "evalplus-mbpp/MbppPlus-OriginFmt.jsonl.gz": 378,
    "mbpp/mbpp.jsonl": 974,
    "mbpp/mbpp_test.jsonl": 500,
    "mbpp/sanitized-mbpp.json": 427,
    "multipl-e-rust/humaneval-rs.jsonl": 156,
    "multipl-e-rust/multipl-e-rs.json": 510,
    "quixbugs/quixbugs.jsonl": 40,
    "reflexion-benchmarks/humaneval-py.jsonl": 161,
    "reflexion-benchmarks/humaneval-py_hardest50.jsonl": 50,
    "reflexion-benchmarks/humaneval-rs.jsonl": 156,
    "reflexion-benchmarks/humaneval-rs-hardest50.jsonl": 50,
    "reflexion-benchmarks/mbpp-py.jsonl": 397,
    "reflexion-benchmarks/mbpp-rs.jsonl": 354,
}
"""How many problems each published file has; every one of them opens as a task."""


def shared_file(name: str) -> Path:
    path = SHARED / "data" / name
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the folder beside the checkout")
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_row_of_a_published_file_is_a_problem_that_opens(name: str) -> None:
    found = list(read([shared_file(name)], Wishes()))
    bad = [one for one in found if isinstance(one, BadRow)]
    assert len(found) - len(bad) == FILES[name]
    assert [one.line for one in bad] == ([25] if "quixbugs" in name else [])


def test_six_rows_of_humaneval_x_need_a_crate_and_two_of_them_only_for_the_reference() -> None:
    found = read([shared_file("humaneval-x-rust/humaneval_rust.jsonl.gz")], Wishes())
    some = [p for p in found if isinstance(p, Problem)]
    noted = {p.id for p in some if any(note.startswith("needs crate") for note in p.notes)}
    assert noted == {f"Rust/{n}" for n in (32, 38, 50, 53, 91, 162)}
    assert {p.id for p in some if p.packages} == {f"Rust/{n}" for n in (32, 38, 50, 53)}


@pytest.mark.parametrize("name", ["humanevalpack-python.jsonl", "humanevalpack-rust.jsonl"])
def test_every_bug_of_the_pack_is_taken_along_for_repair(name: str) -> None:
    found = list(read([shared_file(f"humanevalpack/{name}")], Wishes(repair=True)))
    assert len(found) == 164
    for problem in found:
        assert isinstance(problem, Problem)
        task = task_of(problem.source.encode(), path_of(problem), problem.function)
        assert task.old_body, problem.id
