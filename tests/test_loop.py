"""The loop with scripted answers and a sandbox that judges by a table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflexfix.agreement import Aside
from reflexfix.ask import Ask, Told
from reflexfix.attempt import Attempt, Candidate, Judged, Result, Suite, Verdict
from reflexfix.errors import BudgetSpent, SandboxTrouble
from reflexfix.loop import Event, Run, label
from reflexfix.memory import Lesson, Memory
from reflexfix.model import Answer, Request, ScriptedModel
from reflexfix.mutation import Gate
from reflexfix.rules import Restart, Rules, Stopped
from reflexfix.solving import own_code
from reflexfix.suite import SuiteReport, SuiteRules
from reflexfix.task import Task, open_task

STUB = '''def f(x: int) -> int:
    """Give x plus one.

    >>> f(1)
    2
    """
    ...
'''
TESTS = "\n".join(f"assert f({n}) == {n + 1}" for n in range(2, 6))


def paper(**more: Any) -> Rules:
    """The loop of the paper, but with the best attempt as the answer."""
    return Rules(agreement=False, restart="never", mutants=0, **more)


def body(text: str) -> str:
    return f"```python\ndef f(x):\n    {text}\n```"


class Table:
    """Judges by how many cases a body passes: {"return 1": 2}; the trusted example comes first."""

    def __init__(self, passes: dict[str, int]) -> None:
        self.passes = passes
        self.judged: list[str] = []

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        text = candidate.files["m.py"].decode()
        found = next((n for body, n in self.passes.items() if body in text), 0)
        self.judged.append(text)
        results = []
        for number, case in enumerate(suite.cases):
            good = number < found
            result = Result(case.name, "passed" if good else "failed", expected="1", actual="0")
            results.append(Judged(case, result))
        return Verdict(tuple(results), control="held")

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        return ()


Make = Callable[..., tuple[Run, ScriptedModel, Table]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def run(
        bodies: list[str],
        passes: dict[str, int],
        lessons: list[str] | None = None,
        rules: Rules | None = None,
        file: str = STUB,
        **more: object,
    ) -> tuple[Run, ScriptedModel, Table]:
        path = tmp_path / "m.py"
        path.write_text(file)
        task: Task = open_task(path, "f")
        model = ScriptedModel(
            {
                "implement": [body(bodies[0])] if bodies else [],
                "improve": [body(text) for text in bodies[1:]],
                "write_tests": [TESTS, TESTS],
                "reflect": lessons if lessons is not None else list("abcdefgh"),
            }
        )
        table = Table(passes)
        made = Run(Ask(task, model, model, model), table, Memory(), rules or paper(), **more)  # type: ignore[arg-type]
        return made, model, table

    return run


def asked(model: ScriptedModel) -> list[str]:
    return [request.question for request in model.asked]


def attempts(events: list[Event]) -> list[Attempt]:
    return [event for event in events if isinstance(event, Attempt)]


def test_a_first_body_that_passes_ends_the_run(make: Make) -> None:
    run, model, _ = make(["return x + 1"], {"return x + 1": 5})
    events = list(run.events())
    assert [type(e) for e in events] == [SuiteReport, Attempt]
    assert sorted(asked(model)) == ["implement", "write_tests"]
    assert label(run) == "likely"


def test_the_first_body_and_the_tests_are_asked_for_at_the_same_time(make: Make) -> None:
    run, model, _ = make(["return x + 1"], {"return x + 1": 5})
    both = threading.Barrier(2, timeout=5)
    answer = model.complete

    def complete(request: Request) -> Answer:
        both.wait()  # passes only when two requests are under way
        return answer(request)

    model.complete = complete  # type: ignore[method-assign]
    assert attempts(list(run.events()))[0].verdict.solved


def test_no_reflection_is_bought_after_the_last_trial(make: Make) -> None:
    run, model, _ = make(["return 1", "return 2", "return 3"], {}, rules=paper(trials=3))
    events = list(run.events())
    assert len(attempts(events)) == 3
    assert asked(model).count("reflect") == 2
    assert asked(model)[-1] == "improve"


def test_one_trial_buys_no_reflection_at_all(make: Make) -> None:
    run, model, _ = make(["return 1"], {}, rules=paper(trials=1))
    list(run.events())
    assert "reflect" not in asked(model)


def test_a_later_trial_can_never_make_the_answer_worse(make: Make) -> None:
    run, _, _ = make(
        ["return 1", "return 2", "return 3", "return 4"],
        {"return 1": 1, "return 2": 3, "return 3": 0, "return 4": 2},
    )
    list(run.events())
    assert run.best is not None and "return 2" in run.best.code


def test_of_equal_attempts_the_earlier_one_is_the_answer(make: Make) -> None:
    run, _, _ = make(
        ["return 1", "return 2"], {"return 1": 2, "return 2": 2}, rules=paper(trials=2)
    )
    list(run.events())
    assert run.best is not None and run.best.number == 1


def test_a_lesson_that_hurt_is_retracted_and_the_next_try_starts_from_the_best(make: Make) -> None:
    run, model, _ = make(
        ["return 1", "return 2", "return 3"],
        {"return 1": 3, "return 2": 1, "return 3": 3},
        lessons=["bad idea", "good idea"],
        rules=paper(trials=3),
    )
    list(run.events())
    last = model.asked[-1].prompt
    assert "return 1" in last and "return 2" not in last
    assert "bad idea" not in last and "good idea" in last
    assert run.memory.lessons[0].outcome == "hurt"


def test_the_reflection_is_told_task_code_output_and_earlier_lessons(make: Make) -> None:
    run, model, _ = make(["return 1", "return 2", "return 3"], {"return 2": 1},
                         lessons=["first idea", "second idea"], rules=paper(trials=3))  # fmt: skip
    list(run.events())
    second = [r for r in model.asked if r.question == "reflect"][1].prompt
    assert "Give x plus one." in second and "return 2" in second
    assert "first idea" in second and "expected: 1" in second


def test_a_lesson_that_is_known_is_asked_for_anew_once_then_given_up(make: Make) -> None:
    run, model, _ = make(["return 1", "return 2", "return 3"], {},
                         lessons=["same", "Same!", "same 2"], rules=paper(trials=3))  # fmt: skip
    events = list(run.events())
    assert asked(model).count("reflect") == 3
    assert sum(isinstance(e, Lesson) for e in events) == 1
    assert "This was said before" in [r for r in model.asked if r.question == "reflect"][2].prompt
    assert model.asked[-1].temperature == 0.8


def test_the_same_failing_answer_raises_the_temperature_once_then_stops(make: Make) -> None:
    run, model, table = make(["return 1"] * 6, {}, rules=paper(trials=6))
    events = list(run.events())
    assert [r.temperature for r in model.asked if r.question == "improve"] == [0.0, 0.8]
    assert isinstance(events[-1], Stopped) and "same failing answer" in events[-1].why
    assert len(table.judged) == 3


def test_three_answers_that_fail_one_example_alike_put_it_in_doubt(make: Make) -> None:
    run, _, table = make(["return 1", "return 2", "return 3", "return 4"], {})

    def judge(candidate: Candidate, suite: Suite) -> Verdict:
        table.judged.append("")
        results = [Result(c.name, "passed") for c in suite.cases]
        results[0] = Result(suite.cases[0].name, "failed", expected="2", actual="7")
        pairs = zip(suite.cases, results, strict=True)
        return Verdict(tuple(Judged(c, r) for c, r in pairs))

    table.run = judge  # type: ignore[method-assign]
    events = list(run.events())
    assert isinstance(events[-1], Stopped) and "the example may be wrong" in events[-1].why
    assert len(table.judged) == 3
    assert label(run) == "failed"


def test_distrusted_examples_count_like_own_tests(make: Make) -> None:
    rules = paper(suite=SuiteRules(distrust_examples=True))
    run, _, _ = make(["return x + 1"], {"return x + 1": 5}, rules=rules)
    list(run.events())
    assert {c.origin for c in run.suite.cases} == {"own"}


def test_trusted_tests_pass_and_own_ones_fail_is_told_apart(make: Make) -> None:
    run, _, _ = make(["return 1"], {"return 1": 3}, rules=paper(trials=1))
    list(run.events())
    assert run.best is not None and run.best.verdict.trusted_pass
    assert label(run) == "unproven"


def test_an_unreadable_answer_is_a_failed_attempt_and_no_lesson_is_drawn_from_it(
    make: Make,
) -> None:
    run, model, _ = make([], {"return x + 1": 5}, rules=paper(trials=2))
    model.answers["implement"] = ["I am sorry."]
    model.answers["improve"] = [body("return x + 1")]
    events = list(run.events())
    first, second = attempts(events)
    assert first.verdict.problem and not first.verdict.solved
    assert second.verdict.solved
    assert "reflect" not in asked(model)
    assert "does not define f" in model.asked[-1].prompt


def test_a_cut_off_answer_is_noticed(make: Make) -> None:
    run, model, _ = make(["return 1"], {}, rules=paper(trials=1))
    complete = model.complete
    model.complete = lambda r: Answer(complete(r).text, "length")  # type: ignore[method-assign]
    assert "cut off" in attempts(list(run.events()))[0].note


def test_a_repair_starts_from_the_users_own_code(make: Make) -> None:
    file = STUB.replace("    ...", "    return x - 1")
    run, model, table = make(
        ["", "return x + 1"], {"return x + 1": 5, "return x - 1": 1}, file=file
    )
    run.start = own_code(run.ask.task)
    events = list(run.events())
    assert [a.number for a in attempts(events)] == [0, 1]
    assert "implement" not in asked(model)
    assert "return x - 1" in table.judged[0]
    assert run.best is not None and run.best.verdict.solved


def test_zero_tests_are_never_a_pass(make: Make) -> None:
    run, model, table = make(["return x + 1"], {}, file="def f(x):\n    ...\n")
    model.answers["write_tests"] = ["no", "none"]
    events = list(run.events())
    assert label(run) == "unproven"
    assert isinstance(events[-1], Stopped)
    assert table.judged == []


def test_trouble_of_the_sandbox_is_raised_and_never_shown_to_the_model(make: Make) -> None:
    run, model, table = make(["return 1"], {})

    def broken(candidate: Candidate, suite: Suite) -> Verdict:
        raise SandboxTrouble("no engine")

    table.run = broken  # type: ignore[method-assign]
    with pytest.raises(SandboxTrouble):
        list(run.events())
    assert "reflect" not in asked(model)


def test_a_spent_budget_keeps_the_best_so_far(make: Make) -> None:
    run, model, _ = make(["return 1", "return 2"], {"return 1": 2})
    complete = model.complete

    def stingy(request: Request) -> Answer:
        if request.question == "improve":
            raise BudgetSpent("spent")
        return complete(request)

    model.complete = stingy  # type: ignore[method-assign]
    with pytest.raises(BudgetSpent):
        list(run.events())
    assert run.best is not None and "return 1" in run.best.code


def test_a_background_question_does_not_keep_the_run_from_ending(make: Make) -> None:
    run, model, _ = make([], {})
    complete = model.complete

    def slow(request: Request) -> Answer:
        if request.question == "write_tests":
            time.sleep(30)
        return complete(request)

    model.complete = slow  # type: ignore[method-assign]
    started = time.monotonic()
    with pytest.raises(Exception, match="no answer left"):
        list(run.events())
    assert time.monotonic() - started < 5


# ---------------------------------------------------------------- whose fault it is


def again(model: ScriptedModel, *texts: str) -> None:
    """Script what independent answers say."""
    model.answers["implement"] += [body(text) for text in texts]


def test_where_own_tests_alone_fail_an_independent_answer_is_asked_for_and_no_lesson(
    make: Make,
) -> None:
    run, model, _ = make(["return 1"], {"return 1": 3, "return 2": 2}, rules=Rules(trials=2))
    again(model, "return 2")
    events = list(run.events())
    assert asked(model).count("implement") == 2
    assert not {"reflect", "improve"} & set(asked(model))
    last = model.asked[-1]
    assert last.temperature == 0.8 and "return 1" not in last.prompt
    assert len({request.seed for request in model.asked if request.question == "implement"}) == 2
    assert [a.fresh for a in attempts(events)] == [True, True]
    assert run.best is not None and "return 1" in run.best.code


def test_two_answers_that_agree_put_own_tests_aside_and_end_the_run(make: Make) -> None:
    run, model, table = make(["return 1"], {"return 1": 3, "return 2": 3}, rules=Rules(mutants=0))
    again(model, "return 2")
    events = list(run.events())
    asides = [event for event in events if isinstance(event, Aside)]
    assert len(asides) == 2 and all(aside.case.origin == "own" for aside in asides)
    assert isinstance(events[-1], Stopped) and "2 independent answers" in events[-1].why
    assert len(table.judged) == 2
    assert run.best is not None and "return 1" in run.best.code
    assert label(run) == "likely"


def test_where_a_trusted_test_fails_the_code_is_at_fault_and_a_lesson_is_bought(
    make: Make,
) -> None:
    rules = Rules(trials=2, restart="stuck")
    run, model, _ = make(["return 1", "return 2"], {}, rules=rules)
    list(run.events())
    assert asked(model).count("reflect") == 1 and asked(model)[-1] == "improve"
    assert "return 1" in model.asked[-1].prompt


def test_after_two_lessons_that_did_nothing_the_old_code_is_out_of_sight(make: Make) -> None:
    bodies = ["return 1", "return 2", "return 3", "return 4"]
    run, model, _ = make(bodies, {}, lessons=["one idea", "two ideas", "a third"],
                         rules=Rules(trials=4, restart="stuck"))  # fmt: skip
    events = list(run.events())
    second, third, fourth = (r for r in model.asked if r.question == "improve")
    assert "return 1" in second.prompt and "return 2" in third.prompt
    assert not any(text in fourth.prompt for text in bodies)
    assert "a third" in fourth.prompt and "expected: 1" in fourth.prompt
    assert fourth.temperature == 0.8
    assert [a.fresh for a in attempts(events)] == [True, False, False, True]


@pytest.mark.parametrize("restart", ["always", "auto"])
def test_a_stub_is_written_anew_each_time(make: Make, restart: Restart) -> None:
    run, model, _ = make(["return 1", "return 2"], {}, rules=Rules(trials=2, restart=restart))
    list(run.events())
    assert "return 1" not in model.asked[-1].prompt and "expected: 1" in model.asked[-1].prompt


def test_a_repair_keeps_the_users_code_in_sight(make: Make) -> None:
    file = STUB.replace("    ...", "    return x - 1")
    run, model, _ = make(["", "return 2"], {}, file=file, rules=Rules(trials=1))
    run.start = own_code(run.ask.task)
    list(run.events())
    assert "return x - 1" in model.asked[-1].prompt.partition("had this body")[2]


@pytest.mark.parametrize(
    ("told", "failure", "lesson"),
    [("none", 0, 0), ("transcript", 1, 0), ("lesson", 0, 1), ("both", 1, 1)],
)
@pytest.mark.parametrize("restart", ["never", "always"])
def test_what_the_next_try_is_told(
    make: Make, told: Told, failure: int, lesson: int, restart: Restart
) -> None:
    rules = Rules(trials=2, told=told, restart=restart)
    run, model, _ = make(["return 1", "return 2"], {}, lessons=["an idea"], rules=rules)
    run.ask = replace(run.ask, told=told)
    list(run.events())
    last = model.asked[-1].prompt
    assert ("expected: 1" in last) == failure and ("an idea" in last) == lesson
    assert asked(model).count("reflect") == lesson


def test_the_last_answer_stands_where_that_is_asked_for(make: Make) -> None:
    rules = paper(trials=2, last=True)
    run, _, _ = make(["return 1", "return 2"], {"return 1": 3}, rules=rules)
    list(run.events())
    assert run.best is not None and "return 2" in run.best.code


def test_a_plain_prompt_has_none_of_our_words(make: Make) -> None:
    run, model, _ = make(["return 1"], {}, rules=Rules(trials=1, test=False))
    run.ask = replace(run.ask, plain=True)
    list(run.events())
    asked_once = model.asked[0]
    assert asked_once.question == "implement" and "careful" not in asked_once.system
    assert "Give x plus one." in asked_once.prompt and "signature" not in asked_once.prompt


def test_values_of_own_tests_are_worked_out_where_that_is_asked_for(make: Make) -> None:
    asked_for = {}
    for derive in (False, True):
        run, model, _ = make(["return 1"], {}, rules=Rules(trials=1))
        run.ask = replace(run.ask, derive=derive)
        list(run.events())
        asked_for[derive] = next(r for r in model.asked if r.question == "write_tests")
    assert "step by step" not in asked_for[False].prompt
    assert "step by step" in asked_for[True].prompt
    assert asked_for[True].answer_tokens > asked_for[False].answer_tokens


@pytest.mark.parametrize("differences", [True, False])
def test_how_values_differ_is_said_where_that_is_asked_for(differences: bool, make: Make) -> None:
    run, model, _ = make(["return 1", "return 2"], {}, rules=Rules(trials=2))
    run.ask = replace(run.ask, differences=differences)
    list(run.events())
    for question in ("reflect", "improve"):
        prompt = next(r.prompt for r in model.asked if r.question == question)
        assert ("so it is one too small" in prompt) == differences
        assert "expected: 1" in prompt


def test_an_answer_whose_tests_notice_no_wrong_version_is_weak(make: Make) -> None:
    run, _, table = make(["return x + 1"], {"return x": 5}, rules=Rules())
    gates = [event for event in run.events() if isinstance(event, Gate)]
    assert [(gate.tried, gate.noticed) for gate in gates] == [(2, False)]
    assert len(table.judged) == 3
    assert label(run) == "weak"


def test_an_answer_whose_tests_notice_a_wrong_version_keeps_its_label(make: Make) -> None:
    run, _, _ = make(["return x + 1"], {"return x + 1": 5}, rules=Rules())
    events = list(run.events())
    assert events[-1] == Gate(1, True)
    assert label(run) == "likely"


def test_no_mutant_is_tried_on_an_answer_that_fails(make: Make) -> None:
    run, _, table = make(["return x + 2"], {}, rules=Rules(trials=1))
    list(run.events())
    assert run.gate is None and len(table.judged) == 1


def test_where_independent_answers_disagree_a_lesson_is_bought_after_all(make: Make) -> None:
    run, model, _ = make(
        ["return 1", "return 3"], {"return 1": 3, "return 2": 2}, rules=Rules(trials=3)
    )
    again(model, "return 2")
    list(run.events())
    assert asked(model)[-2:] == ["reflect", "improve"]
    assert "return 1" in model.asked[-2].prompt


def test_where_nothing_is_trusted_answers_that_outvote_own_tests_prove_nothing(
    make: Make,
) -> None:
    file = "def f(x: int) -> int:\n    ...\n"
    run, model, _ = make(["return 1"], {"return 1": 3, "return 2": 3}, file=file, rules=Rules())
    again(model, "return 2")
    events = list(run.events())
    assert any(isinstance(event, Aside) for event in events)
    assert label(run) == "unproven"
