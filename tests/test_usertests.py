"""A user's own test file is run as the user runs it, with all that it needs beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_surroundings import laid_out

from reflexfix.attempt import UserTests
from reflexfix.errors import UsageProblem
from reflexfix.python.task import open_task

STUB = "def f(x):\n    ...\n"


def taken(
    folder: Path, files: dict[str, str | bytes], path: str, module: str = "m.py"
) -> UserTests:
    laid_out(folder, {module: STUB, **files})
    return open_task(folder / module, None, False).user_tests(folder / path)


def test_a_file_beside_the_module_needs_nothing_else(tmp_path: Path) -> None:
    text = "from m import f\n\ndef test_it():\n    assert f(1) == 2\n"
    tests = taken(tmp_path, {"test_m.py": text}, "test_m.py")
    assert tests.paths == ("test_m.py",)
    assert tests.files["test_m.py"] == text.encode()
    assert (tests.prefix, tests.roots, tests.packages) == ("", ("",), ())
    assert not tests.script


def test_a_project_in_two_folders_is_laid_out_as_it_was(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "src/pkg/__init__.py": "",
        "tests/conftest.py": "import pytest",
        "tests/helpers.py": "import numpy",
        "conftest.py": "x = 1",
        "tests/test_m.py": "import helpers, pkg.m\n\ndef test_it():\n    assert pkg.m.f(1) == 2\n",
    }
    tests = taken(tmp_path, files, "tests/test_m.py", "src/pkg/m.py")
    kept = ["conftest.py", "tests/conftest.py", "tests/helpers.py", "tests/test_m.py"]
    assert sorted(tests.files) == kept
    assert tests.paths == ("tests/test_m.py",)
    assert tests.prefix == "src"
    assert set(tests.roots) == {"src", "tests", ""}
    assert "numpy" in tests.packages


def test_conftest_files_up_to_the_common_folder_come_along(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "conftest.py": "",
        "a/conftest.py": "",
        "a/b/test_m.py": "def test_it():\n    pass\n",
    }
    tests = taken(tmp_path, files, "a/b/test_m.py")
    assert sorted(tests.files) == ["a/b/test_m.py", "a/conftest.py", "conftest.py"]


def test_what_a_conftest_imports_comes_along(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "conftest.py": "import near, yaml",
        "near.py": "x = 1",
        "test_m.py": "def test_it():\n    pass\n",
    }
    tests = taken(tmp_path, files, "test_m.py")
    assert sorted(tests.files) == ["conftest.py", "near.py", "test_m.py"]
    assert tests.packages == ("yaml",)


def test_tests_in_a_package_above_the_module_are_no_crash(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a/__init__.py": "",
        "a/test_m.py": "def test_it():\n    pass\n",
    }
    tests = taken(tmp_path, files, "a/test_m.py", "a/b/m.py")
    assert (tests.paths, tests.prefix) == (("a/test_m.py",), "a/b")


KINDS = {
    "a function": ("def test_it():\n    pass\n", False),
    "a class": ("class TestIt:\n    def test_it(self):\n        pass\n", False),
    "asserts alone": ("from m import f\nassert f(1) == 2\n", True),
    "asserts with a helper class": (
        "from m import f\nclass A:\n    def get(self):\n        return 1\nassert f(A()) == 2\n",
        True,
    ),
}


@pytest.mark.parametrize(("text", "script"), KINDS.values(), ids=KINDS)
def test_a_file_without_anything_to_collect_is_run_as_a_script(
    tmp_path: Path, text: str, script: bool
) -> None:
    assert taken(tmp_path, {"t.py": text}, "t.py").script is script


REFUSED: dict[str, tuple[bytes, str]] = {
    "no Python": (b"def test_it(:\n", "is not Python"),
    "no text": (b"\xff\xfe\0", "cannot be decoded"),
}


@pytest.mark.parametrize(("data", "why"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_cannot_be_tests_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    with pytest.raises(UsageProblem, match=why):
        taken(tmp_path, {"t.py": data}, "t.py")


@pytest.mark.parametrize("path", ["none.py", ".", "x" * 400 + ".py"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageProblem, match="does not exist"):
        taken(tmp_path, {}, path)


def test_the_control_calls_the_target_and_must_fail(tmp_path: Path) -> None:
    text = "from m import f\n\ndef test_it():\n    a = '''\n  x'''\n    assert f(a) == a\n"
    control = taken(tmp_path, {"test_m.py": text}, "test_m.py").control
    assert control.startswith("from m import f\n")
    namespace = {"f": lambda x: x}
    exec(control.replace("from m import f", ""), namespace)
    with pytest.raises(AssertionError):
        namespace["test_control"]()  # type: ignore[operator]


NO_CONTROL = {
    "nothing about the target": "def test_it():\n    assert 1 == 1\n",
    "a relative import": "from .m import f\n\ndef test_it():\n    assert f(1) == 2\n",
    "a fixture": "from m import f\n\ndef test_it(db):\n    assert f(db) == 2\n",
    "a name of conftest": "from m import f\n\ndef test_it():\n    assert f(made) == 2\n",
    "deep code": "from m import f\n\ndef test_it():\n    assert f(" + "-" * 500 + "1) == 2\n",
}


@pytest.mark.parametrize("text", NO_CONTROL.values(), ids=NO_CONTROL)
def test_without_a_test_that_stands_alone_there_is_no_control(tmp_path: Path, text: str) -> None:
    assert taken(tmp_path, {"test_m.py": text}, "test_m.py").control == ""
