"""The hook's parts that need no container: settings, needs, patches, masks, suspects, tasks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hookrepo import CALC, WRONG, Repo
from hypothesis import given
from hypothesis import strategies as st

from reflexfix import edit
from reflexfix.attempt import Result
from reflexfix.errors import UsageProblem
from reflexfix.hook import blame, culprit, environment, masking, patch, settings
from reflexfix.hook import plan as plans
from reflexfix.hook.patch import Change, Patch
from reflexfix.hook.runner import Function, Report, Runs
from reflexfix.hook.tree import PLAIN, File, Tree
from reflexfix.model import Request, ScriptedModel


def tree_of(files: dict[str, str], **more: object) -> Tree:
    return Tree({name: File(PLAIN, text.encode()) for name, text in files.items()}, **more)  # type: ignore[arg-type]


# ---------------------------------------------------------------- settings


def test_settings_are_read_from_the_tree_that_is_tested() -> None:
    text = '[tool.reflexfix.hook]\nseconds = 30\non-trouble = "fail"\npackages = ["numpy"]\n'
    found, limits = settings.of_tree(tree_of({"pyproject.toml": text}))
    assert (found.seconds, found.on_trouble, found.packages) == (30, "fail", ("numpy",))
    assert limits.memory_mb == 1024


@pytest.mark.parametrize(
    "line",
    ['tests = 1', "nothing = 1", 'on_trouble = "maybe"', "seconds = 0", "packages = 'numpy'",
     "tokens = 1.5", "own_tests = 1"],
)  # fmt: skip
def test_a_wrong_setting_is_refused(line: str) -> None:
    with pytest.raises(UsageProblem, match=r"tool\.reflexfix\.hook"):
        settings.of_tree(tree_of({"pyproject.toml": f"[tool.reflexfix.hook]\n{line}\n"}))


# ---------------------------------------------------------------- what the tests need


def test_needs_come_from_what_the_project_declares() -> None:
    pyproject = (
        '[project]\nname = "Shop"\ndependencies = ["requests>=2", "shop[x]"]\n'
        '[project.optional-dependencies]\ntest = ["pytest>=7", "hypothesis"]\ndev = ["ruff"]\n'
        '[dependency-groups]\ntests = ["freezegun", {include-group = "base"}]\nbase = ["attrs"]\n'
    )
    files = {
        "pyproject.toml": pyproject,
        "requirements.txt": "-r more.txt\nflask==3.0 --hash=sha256:0\n-e .\n# n\nx ; python>'3'\n",
        "more.txt": "numpy  # why\n--index-url https://example.org\n",
    }
    found = environment.need(tree_of(files), settings.Settings())
    assert found.packages == (
        "attrs", "flask==3.0", "freezegun", "hypothesis", "numpy", "requests>=2", "x ; python>'3'",
    )  # fmt: skip


def test_a_project_that_needs_nothing_but_pytest_uses_the_plain_image() -> None:
    pyproject = '[project]\nname = "a"\n[project.optional-dependencies]\ndev = ["pytest>=7.4"]\n'
    found = environment.need(tree_of({"pyproject.toml": pyproject}), settings.Settings())
    assert found.packages == ()
    assert found.recipe.tag == found.recipe.plain_tag


def test_packages_that_are_set_stand_in_place_of_what_is_declared() -> None:
    tree = tree_of({"requirements.txt": "numpy\n"})
    assert environment.need(tree, settings.Settings(packages=())).packages == ()


def test_another_dockerfile_is_another_image() -> None:
    one, other = (environment.Need((), text).recipe.tag for text in (b"FROM ${BASE}\n", b"#\n"))
    assert one != other


def test_the_projects_own_modules_are_not_taken_for_packages() -> None:
    tree = tree_of({"shop/a.py": "", "src/core/b.py": "", "one.py": ""})
    missing = {"t1": "shop.nothing", "t2": "core.x", "t3": "one.two", "t4": "yaml.x"}
    assert environment.lacking(tree, missing) == {"t4": "yaml.x"}


# ---------------------------------------------------------------- how tests are run


@pytest.mark.parametrize(
    ("command", "kind", "arguments"),
    [
        ("pytest", "pytest", ()),
        ("pytest -m 'not slow' tests", "pytest", ("-m", "not slow", "tests")),
        ("python -m pytest -x", "pytest", ("-x",)),
        ("python3.12 -m unittest discover -s t", "unittest", ("discover", "-s", "t")),
        ("python ./check.py", "script", ("check.py",)),
    ],
)
def test_a_command_is_understood_and_never_handed_to_a_shell(
    command: str, kind: str, arguments: tuple[str, ...]
) -> None:
    assert plans.read_command(command) == (kind, arguments)


@pytest.mark.parametrize(
    "command", ["make test", "A=1 pytest", "python -c 1", "tox", "sh -c pytest"]
)
def test_a_command_that_is_not_known_is_refused(command: str) -> None:
    with pytest.raises(UsageProblem):
        plans.read_command(command)


def test_paths_are_told_into_tests_and_files_to_be_mended() -> None:
    tree = tree_of(
        {
            "m.py": "",
            "n.py": "",
            "tests/test_m.py": "def test_x(): pass\n",
            "test_s.py": "assert 1\n",
        }
    )
    plan, only = plans.of_paths(tree, ["tests/test_m.py", "m.py"])
    assert (plan.kind, plan.arguments, only) == ("pytest", ("tests/test_m.py",), ("m.py",))
    plan, only = plans.of_paths(tree, ["test_s.py"])
    assert (plan.kind, plan.arguments, only) == ("script", ("test_s.py",), ())


def test_only_files_replace_the_paths_of_a_command_and_its_options_stay() -> None:
    tree = tree_of({"tests/test_m.py": "", "tests/test_n.py": ""})
    plan = plans.plan(tree, "pytest -m fast tests/")
    assert plan.only(["tests/test_n.py"]).arguments == ("-m", "fast", "tests/test_n.py")


# ---------------------------------------------------------------- suspects

MODULE = """class A:
    def get(self):
        return [inner() for _ in range(3)]

    def other(self):
        def deep():
            return 1
        return deep()


def inner():
    return 1
"""


def failed(*names: str) -> tuple[Result, ...]:
    return tuple(Result(name, "failed", "in-process") for name in names)


def f(name: str, line: int) -> Function:
    return Function("m.py", line, name)


def test_a_function_within_another_counts_as_the_outer_one() -> None:
    tree = tree_of({"m.py": MODULE})
    report = Report(
        failures=failed("t"),
        ran={f("A.other.<locals>.deep", 6): Runs(("t",), 0), f("A.other", 5): Runs(("t",), 2)},
    )
    (one,) = blame.suspects(tree, plans.plan(tree), report)
    assert (one.name, one.passing, one.tests) == ("A.other", 2, ("t",))


def test_what_changed_comes_first_then_where_failures_lead_then_ochiai() -> None:
    tree = tree_of({"m.py": MODULE}, compare=lambda: {"m.py": [(6, 6)]})
    ran = {f("inner", 11): Runs(("t",), 0), f("A.get", 2): Runs(("t",), 0),
           f("A.other", 5): Runs(("t",), 9)}  # fmt: skip
    report = Report(failures=failed("t"), ran=ran, evidence={"t": (f("A.get", 2), f("inner", 11))})
    found = blame.suspects(tree, plans.plan(tree), report)
    assert [s.name for s in found] == ["A.other", "inner", "A.get"]
    assert "changed in this commit" in found[0].why
    assert "1 of 1 failures lead to it" in found[1].why


def test_tests_and_modules_are_never_suspected() -> None:
    tree = tree_of({"m.py": MODULE, "tests/test_m.py": "def test_x():\n    pass\n"})
    ran = {Function("tests/test_m.py", 1, "test_x"): Runs(("t",), 0),
           f("<module>", 1): Runs(("t",), 0), f("<lambda>", 1): Runs(("t",), 0)}  # fmt: skip
    report = Report(failures=failed("t"), ran=ran)
    assert blame.suspects(tree, plans.plan(tree), report) == []


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50))
def test_ochiai_lies_between_nothing_and_one(failing: int, passing: int, every: int) -> None:
    score = blame.ochiai(min(failing, every), passing, every)
    assert 0 <= score <= 1.0000001
    assert blame.ochiai(every, 0, every) == pytest.approx(1)


# ---------------------------------------------------------------- a suspect as a task


def test_a_task_shows_the_function_and_what_it_names_and_nothing_else() -> None:
    text = (
        "import os\nimport json\n\nRATE = 3\nPRIVATE = 'x'\n\n\ndef used(x):\n    return x\n\n\n"
        "def unused(x):\n    return json.dumps(PRIVATE)\n\n\n"
        "def target(x):\n    return used(x) * RATE\n"
    )
    task = culprit.open_in(tree_of({"m.py": text}), "m.py", "target", 16)
    shown = task.scope(2000)
    assert "def used" in shown and "RATE = 3" in shown
    assert not any(word in shown for word in ("unused", "PRIVATE", "json", "import os"))
    assert task.old_body == "return used(x) * RATE"


def test_a_task_lies_where_its_package_does() -> None:
    tree = tree_of({"src/a/__init__.py": "", "src/a/b/__init__.py": "", "src/a/b/m.py": CALC})
    task = culprit.open_in(tree, "src/a/b/m.py", "double", 4)
    assert (task.surroundings.module, task.own_file) == ("a.b.m", "a/b/m.py")


BROKEN = '''"""A module."""


def fine():
    return 1


class A:
    async def bad(self, x):
        """Say what it does."""
        return (x +

    def after(self):
        return 2
'''


def test_the_one_function_that_is_no_python_is_found_and_its_docstring_kept() -> None:
    task = culprit.open_broken(tree_of({"m.py": BROKEN}), "m.py")
    assert task is not None
    assert task.name == "A.bad"
    assert task.old_body == "return (x +"
    reading = task.read("```python\nasync def bad(self, x):\n    return x + 1\n```")
    expected = BROKEN.replace("return (x +\n", "return x + 1\n")
    assert reading.file.decode() == expected


@pytest.mark.parametrize(
    "text",
    ["x = (\n\n\ndef f():\n    return 1\n", "def f(:\n    return 1\n",
     "def f():\n    return (\n\n\ndef g():\n    return )\n"],
)  # fmt: skip
def test_a_syntax_error_outside_one_function_is_nobodys(text: str) -> None:
    assert culprit.open_broken(tree_of({"m.py": text}), "m.py") is None


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "line",
    ["KEY = 'sk-proj-abcdefghijklmnop123456'", 'password = "hunter2hunter2"',
     "url = 'postgres://bob:topsecret9@db/x'", "x = 'AKIAIOSFODNN7EXAMPLE'",
     '{"api_key": "0123456789abcdef"}', "TOKEN: str = 'abcdef123'",
     "t = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'"],
)  # fmt: skip
def test_what_looks_like_a_key_is_masked_and_put_back(line: str) -> None:
    mask = masking.Mask()
    hidden = mask.hide(line)
    assert "MASKED_VALUE_1" in hidden
    for secret in (
        "abcdefghijklmnop",
        "hunter2",
        "topsecret9",
        "IOSFODNN7",
        "0123456789",
        "def123",
    ):
        assert secret not in hidden
    assert mask.show(hidden) == line


@pytest.mark.parametrize(
    "line",
    ["x = 'hello world'", "token = next(tokens)", "return x * 2", "key = 'ab'", "def secret():"],
)
def test_what_is_no_key_stays(line: str) -> None:
    assert masking.Mask().hide(line) == line


def test_a_model_never_sees_a_key_and_the_answer_has_it_again() -> None:
    key = "sk-live-abcdefghijklmnop1234"
    inner = ScriptedModel(["use MASKED_VALUE_1 here"])
    model = masking.MaskedModel(inner, masking.Mask())
    answer = model.complete(Request("improve", "", f"x = '{key}' and again {key}"))
    assert key not in inner.asked[0].prompt
    assert answer.text == f"use {key} here"


@given(st.text(max_size=200))
def test_masking_is_undone_whatever_the_text(text: str) -> None:
    mask = masking.Mask()
    hidden = mask.hide(text)
    if "MASKED_VALUE" not in text:
        assert mask.show(hidden) == text


# ---------------------------------------------------------------- patches


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "a project")
    made.committed(WRONG)
    return made


def patched(path: str = "shop/calc.py", before: str = WRONG, after: str = CALC) -> Patch:
    return Patch((Change(path, before.encode(), after.encode()),), ("t",))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("m.py", "a\nb\nc\n", "a\nB\nc\n"),
        ("a b/ü.py", "a\n", "b\n"),
        ('say "x".py', "a\n", "b\n"),
        ("crlf.py", "a\r\nb\r\n", "a\r\nB\r\n"),
        ("noend.py", "a\nb", "a\nB"),
        ("latin.py", "\udce4\n", "\udce4\nx\n"),
    ],
)
def test_git_takes_a_patch_with_and_without_three_ways(
    name: str, before: str, after: str, repo: Repo
) -> None:
    old, new = (text.encode("utf-8", "surrogateescape") for text in (before, after))
    repo.stage({name: old})
    repo.git("commit", "-q", "-m", "x")
    kept = patch.save(repo.folder / ".reflexfix", Patch((Change(name, old, new),), ("t",)))
    repo.git("apply", "--check", "--3way", str(kept))
    repo.git("apply", str(kept))
    assert (repo.folder / name).read_bytes() == new


def test_a_patch_is_merged_with_later_edits_and_undone(repo: Repo) -> None:
    home, file = repo.folder / ".reflexfix", repo.folder / "shop/calc.py"
    patch.save(home, patched())
    edited = WRONG + "\n\nMORE = 1\n"
    file.write_text(edited)
    assert patch.apply(patch.load(home, None), repo.folder, home) == [file]
    assert file.read_text() == CALC + "\n\nMORE = 1\n"
    assert patch.apply(patch.load(home, None), repo.folder, home) == []
    edit.undo(home)
    assert file.read_text() == edited


def test_a_patch_whose_lines_were_changed_is_refused_with_a_diff(repo: Repo) -> None:
    home, file = repo.folder / ".reflexfix", repo.folder / "shop/calc.py"
    file.write_text(WRONG.replace("x * 3", "x * 4"))
    with pytest.raises(UsageProblem, match=r"nothing was applied[\s\S]*\+    return x \* 4"):
        patch.apply(patched(), repo.folder, home)
    assert "x * 4" in file.read_text()


def test_a_patch_of_two_files_is_applied_to_both_or_to_none(repo: Repo) -> None:
    home = repo.folder / ".reflexfix"
    repo.write({"n.py": "changed\n"})
    both = Patch((*patched().changes, Change("n.py", b"a\n", b"b\n")), ("t",))
    with pytest.raises(UsageProblem):
        patch.apply(both, repo.folder, home)
    assert (repo.folder / "shop/calc.py").read_text() == WRONG


def test_a_checkout_with_other_line_endings_is_followed(repo: Repo) -> None:
    home, file = repo.folder / ".reflexfix", repo.folder / "shop/calc.py"
    file.write_bytes(WRONG.replace("\n", "\r\n").encode())
    patch.apply(patched(), repo.folder, home)
    assert file.read_bytes() == CALC.replace("\n", "\r\n").encode()


def test_a_patch_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    made = patched()
    patch.save(tmp_path, made)
    assert patch.load(tmp_path, made.id[:4]) == made
    with pytest.raises(UsageProblem, match="There is no patch ffff"):
        patch.load(tmp_path, "ffff")


def test_blobs_are_named_as_git_names_them() -> None:
    told = subprocess.run(
        ["git", "hash-object", "--stdin"], input=b"abc\n", capture_output=True, check=True
    )
    assert patch.blob_id(b"abc\n") == told.stdout.decode().strip()
