"""A task opened from a text: the same as from a file, with nothing read around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflexfix.errors import UsageProblem
from reflexfix.task import open_task, task_of

PYTHON = b'import helper\nimport numpy\n\n\ndef half(n):\n    """Halve."""\n'
RUST = b"/// Halve.\nfn half(n: i32) -> i32 {\n    todo!()\n}\n"


@pytest.mark.parametrize(("name", "text"), [("solution.py", PYTHON), ("solution.rs", RUST)])
def test_a_text_and_a_file_are_one_task(tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / name).write_bytes(text)
    from_file, from_text = open_task(tmp_path / name), task_of(text, Path(name))
    assert from_file.id == from_text.id and from_file.name == from_text.name == "half"
    assert (
        dict(from_text.candidate(text).files).keys() == dict(from_file.candidate(text).files).keys()
    )


def test_nothing_beside_a_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "x"\nedition = "2015"\n')
    monkeypatch.chdir(tmp_path)
    task = task_of(PYTHON, Path("solution.py"))
    assert set(task.candidate(PYTHON).files) == {"solution.py"}
    assert task.packages == ("helper", "numpy")
    assert task_of(RUST, Path("solution.rs")).candidate(RUST).edition == "2021"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (b"", "solution.py", "is empty"),
        (b"", "solution.rs", "is empty"),
        (b"def half(n:\n", "solution.py", "solution.py:1"),
        (b"fn half(", "solution.rs", "this is not Rust"),
        (b"\xff", "solution.rs", "not UTF-8"),
        (b"x = 1\n", "solution.lua", "no ending that is known"),
        (b"x = 1\n", "solution.py", "no function"),
    ],
)
def test_a_text_that_is_no_task_says_why(text: bytes, name: str, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        task_of(text, Path(name), "half")
