"""`reflexfix hook`, `repair` and `apply` by hand: what is mended, what is not, and what is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT
from endpoint import Answers, Endpoint, Reply, scripted, serving
from hookrepo import CALC, PYPROJECT, RIGHT, USELESS, WRONG, Repo

pytestmark = [
    pytest.mark.container,
    pytest.mark.usefixtures("sandbox_image", "no_container_left"),
]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "a project")


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def ran(repo: Repo, answers: Answers, *arguments: str) -> tuple[int, str, Endpoint]:
    with serving(answers) as endpoint:
        code, said = repo.run(*arguments, "--base-url", endpoint.url)
    return code, said, endpoint


def prompts(endpoint: Endpoint) -> str:
    return "\n".join(m["content"] for _, body, _ in endpoint.asked for m in body["messages"])


# ---------------------------------------------------------------- the ways to take a fix


def test_apply_takes_the_fix_and_undo_takes_it_back(repo: Repo) -> None:
    repo.committed()
    repo.stage({"shop/calc.py": WRONG})
    code, said, _ = ran(repo, scripted(improve=[RIGHT], reflect=["Two."]), "hook")
    assert code == 1 and "reflexfix apply" in said
    edited = WRONG + "\n\nMORE = 1\n"
    repo.write({"shop/calc.py": edited})
    assert repo.run("apply")[0] == 0
    assert (repo.folder / "shop/calc.py").read_text() == CALC + "\n\nMORE = 1\n"
    assert repo.git("show", ":shop/calc.py") == WRONG
    assert repo.run("undo")[0] == 0
    assert (repo.folder / "shop/calc.py").read_text() == edited


def test_write_leaves_the_fix_unstaged_in_the_work_tree(repo: Repo) -> None:
    repo.committed()
    repo.stage({"shop/calc.py": WRONG})
    index = (repo.folder / ".git/index").read_bytes()
    code, said, _ = ran(repo, scripted(improve=[RIGHT], reflect=["Two."]), "hook", "--write")
    assert code == 1 and "written to the work tree, unstaged" in said
    assert (repo.folder / "shop/calc.py").read_text() == CALC
    assert (repo.folder / ".git/index").read_bytes() == index


def test_repair_works_on_the_work_tree_and_without_git(repo: Repo) -> None:
    import shutil

    repo.project(CALC)
    repo.write({"shop/calc.py": WRONG})
    shutil.rmtree(repo.folder / ".git")
    before = {p: p.read_bytes() for p in repo.folder.rglob("*.py")}
    code, said, _ = ran(repo, scripted(improve=[RIGHT], reflect=["Two."]), "repair")
    assert code == 1 and "+    return x * 2" in said
    assert {p: p.read_bytes() for p in repo.folder.rglob("*.py")} == before


def test_repair_mends_only_the_files_that_are_named(repo: Repo) -> None:
    repo.project(WRONG)
    repo.stage({"shop/other.py": "def f():\n    return 1\n"})
    code, said, endpoint = ran(repo, scripted(), "repair", "shop/other.py")
    assert code == 1 and endpoint.asked == [] and "no function of the project is at fault" in said


# ---------------------------------------------------------------- what reaches a model


def test_only_the_function_what_it_names_and_the_failing_tests_reach_a_model(repo: Repo) -> None:
    calc = WRONG.replace(
        "def double", "API_KEY = 'sk-live-0123456789abcdef'\nRATE = 3\n\n\ndef double"
    ).replace("x * 3", "x * RATE if API_KEY != 'sk-live-0123456789abcdef' else x * 3")
    repo.project(calc)
    repo.stage(
        {"shop/private.py": "HIDDEN_THING = 1\n", "README.md": "HIDDEN_THING",
         "tests/test_other.py": "def test_fine():\n    HIDDEN_THING = 1\n"}
    )  # fmt: skip
    code, said, endpoint = ran(repo, scripted(improve=[RIGHT], reflect=["Two."]), "hook")
    assert code == 1 and "mended: shop/calc.py: double" in said
    asked = prompts(endpoint)
    assert "def test_double" in asked and "RATE = 3" in asked
    assert "HIDDEN_THING" not in asked and "sk-live" not in asked and "MASKED_VALUE_1" in asked
    assert "def both" not in asked


@pytest.mark.parametrize(("memory", "told"), [("both", True), ("lesson", False)])
def test_what_steers_the_loop_steers_it_here_too(memory: str, told: bool, repo: Repo) -> None:
    repo.committed()
    repo.stage({"shop/calc.py": WRONG})
    answers = scripted(improve=[RIGHT], reflect=["Two."])
    _, said, endpoint = ran(repo, answers, "hook", "--memory", memory)
    asked = [
        body["messages"][-1]["content"] for what, body, _ in endpoint.asked if what == "improve"
    ]
    assert "mended: shop/calc.py: double" in said
    assert ("assert double(2) == 4" in asked[0]) is told


FORGED = """import _pytest.python


def quiet(x=setattr(_pytest.python.Function, "runtest", print)):
    return x


def double(x):
    return quiet(5)
"""


def test_a_candidate_that_makes_every_test_pass_is_found_out(repo: Repo) -> None:
    repo.committed()
    repo.stage({"shop/calc.py": WRONG})
    code, said, endpoint = ran(
        repo, scripted(improve=[fenced(FORGED)], reflect=["No."]), "hook", "--trials", "1"
    )
    assert code == 1 and [question for question, _, _ in endpoint.asked].count("improve") >= 1
    assert "mended" not in said and repo.patches() == []


# ---------------------------------------------------------------- what kinds of code and tests

KINDS = '''"""All kinds of functions."""

import asyncio


class Till:
    """A till."""

    def __init__(self) -> None:
        self.sums: list[int] = []

    def add(self, value: int) -> int:
        """Add a value, and give the new total."""
        self.sums.append(value)
        return METHOD

    async def later(self, value: int) -> int:
        """Give the value a little later."""
        await asyncio.sleep(0)
        return ASYNC

    def each(self):
        """Give every value, the last first."""
        yield from GENERATOR
'''
KIND_TESTS = """import asyncio

import pytest
from kinds import Till


@pytest.mark.parametrize("value", [1, 2])
def test_method(till, value):
    till.add(5)
    assert till.add(value) == 5 + value


def test_async(till):
    assert asyncio.run(till.later(3)) == 3


class TestGenerator:
    def test_each(self, till):
        till.sums += [1, 2]
        assert list(till.each()) == [2, 1]
"""
CONFTEST = (
    "import pytest\nfrom kinds import Till\n\n\n@pytest.fixture\ndef till():\n    return Till()\n"
)
GOOD_PARTS = {"METHOD": "sum(self.sums)", "ASYNC": "value", "GENERATOR": "reversed(self.sums)"}


def kinds(wrong: dict[str, str]) -> str:
    text = KINDS
    for name, code in {**GOOD_PARTS, **wrong}.items():
        text = text.replace(name, code)
    return text


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"METHOD": "value"}, "Till.add"),
        ({"ASYNC": "value + 1"}, "Till.later"),
        ({"GENERATOR": "self.sums"}, "Till.each"),
    ],
)
def test_methods_async_functions_and_generators_are_mended(
    wrong: dict[str, str], name: str, repo: Repo
) -> None:
    repo.stage({"kinds.py": kinds(wrong), "tests/test_kinds.py": KIND_TESTS,
                "tests/conftest.py": CONFTEST})  # fmt: skip
    answers = scripted(improve=[fenced(kinds({}))], reflect=["No."])
    code, said, _ = ran(repo, answers, "hook")
    assert code == 1 and f"mended: kinds.py: {name}" in said
    assert "the whole suite does" in said


def test_two_functions_at_fault_are_mended_by_one_patch(repo: Repo) -> None:
    wrong = {"METHOD": "value", "ASYNC": "value + 1"}
    repo.stage({"kinds.py": kinds(wrong), "tests/test_kinds.py": KIND_TESTS,
                "tests/conftest.py": CONFTEST})  # fmt: skip
    answers = scripted(improve=[fenced(kinds({}))], reflect=["No.", "Not so.", "Never."])
    code, said, _ = ran(repo, answers, "hook")
    assert code == 1
    assert "mended: kinds.py: Till.add" in said and "mended: kinds.py: Till.later" in said
    (patch,) = repo.patches()
    repo.git("apply", str(patch))
    assert (repo.folder / "kinds.py").read_text() == kinds({})


def test_unittest_is_run_as_it_is(repo: Repo) -> None:
    tests = (
        "import unittest\nfrom calc import double\n\n\nclass Test(unittest.TestCase):\n"
        "    def test_it(self):\n        for x in (1, 2):\n            with self.subTest(x=x):\n"
        "                self.assertEqual(double(x), 2 * x)\n\n    def test_zero(self):\n"
        "        self.assertEqual(double(0), 0)\n"
    )
    settings = '[tool.reflexfix.hook]\ntests = "python -m unittest"\n'
    repo.stage({"calc.py": WRONG, "test_calc.py": tests, "pyproject.toml": settings})
    code, said, endpoint = ran(repo, scripted(improve=[RIGHT], reflect=["Two."]), "hook")
    assert code == 1 and "1 of 2 failed" in said and "test_calc.Test.test_it" in said
    assert "mended: calc.py: double" in said
    assert "self.assertEqual(double(x), 2 * x)" in prompts(endpoint)


def test_a_plain_script_is_one_test(repo: Repo) -> None:
    repo.stage({"calc.py": WRONG, "check.py": "from calc import double\nassert double(2) == 4\n"})
    answers = scripted(improve=[RIGHT], reflect=["Two."])
    code, said, _ = ran(repo, answers, "hook", "--tests", "python check.py")
    assert code == 1 and "1 of 1 failed" in said and "mended: calc.py: double" in said


def test_a_syntax_error_within_one_function_is_mended(repo: Repo) -> None:
    repo.project(CALC.replace("return x * 2", "return (x * 2"))
    code, said, _ = ran(repo, scripted(improve=[RIGHT], reflect=["Close it."]), "hook")
    assert code == 1 and "tests/test_calc.py" in said
    assert "mended: shop/calc.py: double (a syntax error lies in it" in said
    (patch,) = repo.patches()
    repo.git("apply", str(patch))
    assert (repo.folder / "shop/calc.py").read_text() == CALC


@pytest.mark.parametrize("endless", ["9 ** 9 ** 9", "sum(0 for _ in iter(int, 1))"])
def test_a_test_that_does_not_end_leads_to_the_function_that_it_is_in(
    endless: str, repo: Repo
) -> None:
    """The first hangs in one step of the interpreter, during which nothing of ours can run."""
    repo.stage(
        {"calc.py": CALC.replace("x * 2", endless), "test_calc.py": "from calc import double\n\n\n"
         "def test_double():\n    assert double(2) == 4\n",
         "pyproject.toml": "[tool.reflexfix.sandbox]\ntest_seconds = 4\n"}
    )  # fmt: skip
    code, said, _ = ran(repo, scripted(improve=[RIGHT], reflect=["Two."]), "hook")
    assert code == 1 and "timeout: limit of 4 s" in said
    assert "mended: calc.py: double" in said and "1 of 1 failures lead to it" in said


def test_an_error_at_import_that_is_no_functions_fault_is_named_and_not_repaired(
    repo: Repo,
) -> None:
    repo.project(CALC + "\n\nTOTAL = nothing_like_that\n")
    code, said, endpoint = ran(repo, scripted(), "hook")
    assert code == 1 and "nothing_like_that" in said
    assert endpoint.asked == [] and repo.patches() == []


# ---------------------------------------------------------------- what is no fix

OTHER = "\n\ndef test_five():\n    assert double(5) == 10\n"


def test_a_fix_that_breaks_another_test_is_no_fix(repo: Repo) -> None:
    """The answer mends the test that fails and breaks one that passed: it is asked again."""
    wrong = CALC.replace("return x * 2", "return 10 if x == 5 else x * 3")
    repo.project(wrong)
    repo.stage({"tests/test_five.py": "from shop.calc import double\n" + OTHER})
    special = fenced("def double(x):\n    return {2: 4, 1: 2}.get(x, 0)")
    answers = scripted(improve=[special, RIGHT], reflect=["No.", "Say more.", "Yes."])
    code, said, _ = ran(repo, answers, "hook")
    assert code == 1 and "that breaks tests/test_five.py::test_five: it is no fix" in said
    assert "mended: shop/calc.py: double" in said and "+    return x * 2" in said
    answers = scripted(improve=[special], reflect=["No.", "Say more.", "Yes."])
    repo.git("reset", "-q", "--", ".")
    repo.git("add", "-A")
    for patch in repo.patches():
        patch.unlink()
    code, said, _ = ran(repo, answers, "hook")
    assert code == 1 and "no fix was found" in said and repo.patches() == []


def test_at_the_end_of_the_budget_the_best_so_far_is_kept_as_partial(repo: Repo) -> None:
    repo.project(WRONG)
    half = fenced("def double(x):\n    return 4")

    def slow(question: str, _body: object) -> Reply:
        if question == "improve":
            return Reply(half)
        time.sleep(0.5)
        return Reply("Think of something else, " + str(time.monotonic()))

    code, said, _ = ran(repo, slow, "hook", "--trials", "2")
    assert code == 1
    assert "PARTIAL: it mends tests/test_calc.py::test_double" in said
    assert "and not tests/test_calc.py::test_both" in said
    (patch,) = repo.patches()
    assert "+    return 4" in patch.read_text()


def test_the_budget_of_seconds_ends_the_search(repo: Repo) -> None:
    repo.project(WRONG)

    def slow(question: str, _body: object) -> Reply:
        time.sleep(1.0)
        return Reply(USELESS if question == "improve" else "Think " + str(time.monotonic()))

    began = time.monotonic()
    code, said, _ = ran(repo, slow, "hook", "--max-seconds", "3", "--trials", "50")
    assert code == 1 and "The budget of 3 seconds is spent" in said
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("delay", [1.0, 3.0, 5.0])
def test_an_interrupt_leaves_the_repository_exactly_as_it_was(delay: float, repo: Repo) -> None:
    repo.committed()
    repo.stage({"shop/calc.py": WRONG})
    before = repo.state()

    def slow(question: str, _body: object) -> Reply:
        time.sleep(1.0)
        return Reply(USELESS if question == "improve" else "Think " + str(time.monotonic()))

    with serving(slow) as endpoint:
        process = subprocess.Popen(
            [sys.executable, "-m", "reflexfix", "hook", "--base-url", endpoint.url],
            cwd=repo.folder,
            env={**repo.env, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        time.sleep(delay)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT, 1), err
    assert b"Traceback" not in err
    assert repo.state() == before
    assert repo.patches() == []


# ---------------------------------------------------------------- trouble


@pytest.mark.parametrize(("rule", "code"), [("tests", 1), ("fail", 3), ("pass", 0)])
def test_without_a_model_the_test_result_stands(rule: str, code: int, repo: Repo) -> None:
    repo.project(WRONG)
    repo.stage({"pyproject.toml": PYPROJECT + f'[tool.reflexfix.hook]\non_trouble = "{rule}"\n'})
    found, said = repo.run("hook", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert found == code
    assert "2 of 2 failed" in said and "not repaired: " in said


@pytest.mark.parametrize(("rule", "code"), [("tests", 0), ("fail", 4), ("pass", 0)])
def test_without_an_engine_nothing_was_tested_and_one_line_says_so(
    rule: str, code: int, repo: Repo
) -> None:
    repo.project(WRONG)
    repo.stage({"pyproject.toml": f'[tool.reflexfix.hook]\non_trouble = "{rule}"\n'})
    found, said = repo.run("hook", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert found == code
    assert said.count("\n") == 1 and "not tested: no engine" in said


def test_a_plugin_that_the_configuration_names_and_the_image_lacks_is_trouble(repo: Repo) -> None:
    repo.project()
    repo.stage({"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--no-such-plugin"\n'})
    code, said, endpoint = ran(repo, scripted(), "hook")
    assert code == 1 and endpoint.asked == []
    assert "tests: they could not be run" in said and "--no-such-plugin" in said


def test_a_repository_without_tests_is_passed(repo: Repo) -> None:
    repo.stage({"notes.txt": "1"})
    code, said = repo.run("hook")
    assert code == 0 and "no tests are staged" in said


def test_own_tests_never_outvote_the_projects(repo: Repo) -> None:
    """Own tests that contradict the project's do not keep the fix from being taken."""
    repo.project(WRONG)
    wrong = fenced("assert double(2) == 6\nassert double(3) == 9\nassert double(4) == 12")
    answers = scripted(improve=[RIGHT], reflect=["Two."], write_tests=[wrong])
    code, said, endpoint = ran(repo, answers, "hook", "--own-tests")
    assert "write_tests" in {question for question, _, _ in endpoint.asked}
    assert code == 1 and "mended: shop/calc.py: double" in said and "+    return x * 2" in said
