"""Wrong versions of an answer: where they are made, and what they say of a suite."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reflexfix import mutation
from reflexfix.attempt import Candidate, Case, Judged, Result, Suite, Verdict
from reflexfix.task import Site, Task, task_of

PYTHON = b'''import os

def other(x):
    return x < 1


def f(x: int = 3) -> int:
    """One < two.

    >>> f(1)
    2
    """
    seen = []
    if not x or x <= 0 and x != -7:
        return True
    for n in range(10):
        seen.append(n)
        x += n
    return x * 2
'''
RUST = b"""/// Less than one < two.
fn other(x: i32) -> bool { x < 1 }

fn f(x: u32) -> u32 {
    let mut seen = Vec::new();
    if !(x > 3) || x == 0xff && true {
        return 1u32;
    }
    seen.push(x);
    x * 2
}
"""


def task(data: bytes, name: str) -> Task:
    return task_of(data, Path(name), "f")


def changed(data: bytes, site: Site) -> tuple[str, str, str]:
    return site.kind, data[site.start : site.end].decode(), site.text.decode()


def test_python_is_changed_in_the_body_of_the_target_alone() -> None:
    found = [changed(PYTHON, site) for site in task(PYTHON, "m.py").sites(PYTHON)]
    assert found == [
        ("negation", "not ", ""),
        ("negation", "or", "and"),
        ("comparison", "<=", "<"),
        ("constant", "0", "1"),
        ("negation", "and", "or"),
        ("comparison", "!=", "=="),
        ("constant", "7", "8"),
        ("constant", "True", "False"),
        ("constant", "10", "11"),
        ("statement", "seen.append(n)", "pass"),
        ("statement", "x += n", "pass"),
        ("arithmetic", "+=", "-="),
        ("arithmetic", "*", "+"),
        ("constant", "2", "3"),
    ]


def test_every_python_mutant_is_python_and_another_program() -> None:
    original = ast.dump(ast.parse(PYTHON))
    every = list(mutation.chosen(task(PYTHON, "m.py").sites(PYTHON), PYTHON, 50))
    assert len(every) == len(set(every)) == 14
    assert all(ast.dump(ast.parse(one)) != original for one in every)


def test_rust_is_changed_in_the_body_of_the_target_alone() -> None:
    found = [changed(RUST, site) for site in task(RUST, "m.rs").sites(RUST)]
    assert found == [
        ("negation", "!", ""),
        ("comparison", ">", ">="),
        ("constant", "3", "4"),
        ("negation", "||", "&&"),
        ("comparison", "==", "!="),
        ("negation", "&&", "||"),
        ("constant", "true", "false"),
        ("constant", "1u32", "2u32"),
        ("statement", "seen.push(x);", ""),
        ("arithmetic", "*", "+"),
        ("constant", "2", "3"),
    ]


def test_non_ascii_text_before_a_place_does_not_shift_it() -> None:
    data = 'def f(x):\n    ä = "ü"; return x < 1\n'.encode()
    site = task(data, "m.py").sites(data)[0]
    assert changed(data, site) == ("comparison", "<", "<=")


@pytest.mark.parametrize(
    "data",
    [
        b"# coding: latin-1\ndef f(x):\n    return x < 1\n",
        b"\xef\xbb\xbfdef f(x):\n    return x < 1\n",
    ],
)
def test_a_file_in_another_encoding_has_no_mutants(data: bytes) -> None:
    assert task(data, "m.py").sites(data) == []


def test_one_of_every_kind_is_tried_first_and_the_latest_of_it() -> None:
    kinds = [Site(0, 1, b"a", "x"), Site(1, 2, b"b", "x"), Site(2, 3, b"c", "y")]
    assert list(mutation.chosen(kinds, b"___", 2)) == [b"_b_", b"__c"]
    assert list(mutation.chosen(kinds, b"___", 9)) == [b"_b_", b"__c", b"a__"]


class Judge:
    """Says of each program what it is told to say."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.seen: list[bytes] = []

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        self.seen.append(candidate.files["m.py"])
        status = self.said.pop(0)
        if status == "broken":
            return Verdict(problem="it does not compile")
        case = suite.cases[0]
        return Verdict(
            (Judged(case, Result(case.name, "passed" if status == "passed" else "failed")),)
        )

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        return ()


SUITE = Suite((Case("own 1", "assert f(1) == 2", "assert f(1) == 2", "own"),))


def test_the_gate_stops_at_the_first_mutant_that_is_noticed() -> None:
    judge = Judge("passed", "failed")
    found = mutation.gate(task(PYTHON, "m.py"), judge, SUITE, PYTHON, 6)
    assert (found.tried, found.noticed, found.holds) == (2, True, True)
    assert list(found.survivors) == judge.seen[:1]
    assert len(judge.seen) == 2 and PYTHON not in judge.seen


def test_a_suite_that_notices_nothing_does_not_hold() -> None:
    judge = Judge(*["passed"] * 6)
    found = mutation.gate(task(PYTHON, "m.py"), judge, SUITE, PYTHON, 6)
    assert (found.tried, found.noticed, found.holds) == (6, False, False)
    assert list(found.survivors) == judge.seen


def test_a_mutant_that_cannot_be_run_says_nothing() -> None:
    judge = Judge(*["broken"] * 6)
    found = mutation.gate(task(PYTHON, "m.py"), judge, SUITE, PYTHON, 6)
    assert found == mutation.Gate(0, False) and found.holds


def test_what_cannot_be_changed_is_believed() -> None:
    data = b"def f(x):\n    return x\n"
    assert mutation.gate(task(data, "m.py"), Judge(), SUITE, data, 6).holds
