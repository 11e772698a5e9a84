"""What a pass proves, and the tests that are asked for where it proves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reflexfix.agreement import Aside
from reflexfix.ask import Ask
from reflexfix.attempt import Candidate, Judged, Result, Suite, Verdict
from reflexfix.batch.work import Story
from reflexfix.loop import Run, label
from reflexfix.memory import Memory
from reflexfix.model import ScriptedModel
from reflexfix.proving import changed
from reflexfix.rules import Rules
from reflexfix.suite import SuiteReport, SuiteRules
from reflexfix.task import open_task

STUB = '''def f(x: int) -> bool:
    """Say whether x is above three.

    >>> f(5)
    True
    """
    ...
'''
BODY = "```python\ndef f(x):\n    return x > 3\n```"
FIRST = "assert f(9) == True"


class Here:
    """Runs what this file holds, and nothing else, in this process."""

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        judged = []
        for case in suite.cases:
            names: dict[str, Any] = {}
            exec(candidate.files["m.py"], names)
            try:
                exec(case.source, names)
                result = Result(case.name, "passed")
            except AssertionError:
                result = Result(case.name, "failed", expected="?", actual="False")
            judged.append(Judged(case, result))
        return Verdict(tuple(judged), control="held")

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        return ()


def solved(folder: Path, more: str, **rules: Any) -> tuple[Run, list[Any], ScriptedModel]:
    (folder / "m.py").write_text(STUB)
    task = open_task(folder / "m.py", "f")
    model = ScriptedModel({"implement": [BODY], "write_tests": [FIRST, more]})
    run = Run(Ask(task, model, model, model), Here(), Memory(), Rules(mutants=1, **rules))
    return run, list(run.events()), model


def test_where_no_wrong_version_is_noticed_a_test_that_notices_it_is_asked_for(
    tmp_path: Path,
) -> None:
    run, events, model = solved(tmp_path, "assert f(3) == False")
    last = model.asked[-1].prompt
    assert "instead of: return x > 3" in last and "this: return x >= 3" in last
    assert [case.name for case in run.suite.cases][-1] == "more 1"
    assert run.best is not None and run.best.verdict.judged[-1].case.name == "more 1"
    assert run.gate is not None and run.gate.noticed and label(run) == "likely"
    assert sum(isinstance(event, SuiteReport) and event.further for event in events) == 1


def test_a_new_test_that_the_answer_fails_leaves_it_weak_and_is_shown(tmp_path: Path) -> None:
    run, events, _ = solved(tmp_path, "assert f(3) == True\nassert f(2) == False")
    shown = [event.case.shown for event in events if isinstance(event, Aside)]
    assert shown == ["assert f(3) == True"] and label(run) == "weak"
    assert "more 1" not in {case.name for case in run.suite.cases}


@pytest.mark.parametrize("more", ["assert f(9) == True", "assert f(5) == True", "no test", ""])
def test_tests_that_repeat_others_change_nothing(more: str, tmp_path: Path) -> None:
    run, events, _ = solved(tmp_path, more)
    assert label(run) == "weak" and not [e for e in events if isinstance(e, Aside)]


@pytest.mark.parametrize("rules", [{"more_tests": False}, {"suite": SuiteRules(own=False)}])
def test_no_test_is_asked_for_where_none_is_wanted(rules: dict[str, Any], tmp_path: Path) -> None:
    _, _, model = solved(tmp_path, "assert f(3) == False", **rules)
    asked = [request.prompt for request in model.asked if request.question == "write_tests"]
    assert not any("instead of" in prompt for prompt in asked)


def test_a_change_is_told_by_its_lines() -> None:
    old, new = b"a\n  if x < 1:\nb\n", b"a\n  if x <= 1:\nb\n"
    assert changed(old, new) == "instead of: if x < 1:\nthis: if x <= 1:"
    assert changed(old, b"a\nb\n") == "instead of: if x < 1:\nnothing"


def test_a_batch_keeps_the_tests_of_both_rounds(tmp_path: Path) -> None:
    _, events, _ = solved(tmp_path, "assert f(3) == False\nassert f(9) == True")
    story = Story()
    for report in (event for event in events if isinstance(event, SuiteReport)):
        story.suite(report)
    shown = [case["shown"] for case in story.suites["cases"]]
    assert shown[1:] == [FIRST, "assert f(3) == False"] and "f(5)" in shown[0]
    assert story.suites["written"] == 3 and len(story.suites["dropped"]) == 1
