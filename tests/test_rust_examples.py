"""What the documentation shows becomes tests that are trusted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix.attempt import Case
from reflexfix.rust import examples
from reflexfix.rust.task import open_task


def cases_of(
    folder: Path, documentation: str, file: str = "fn f(x: i32) -> i32 {{ todo!() }}"
) -> list[Case]:
    lines = "".join(f"/// {line}".rstrip() + "\n" for line in documentation.splitlines())
    (folder / "Cargo.toml").write_text('[package]\nname = "my-crate"\nedition = "2021"\n')
    (folder / "x.rs").write_text(lines + file.format())
    return open_task(folder / "x.rs", None, False).examples()


@pytest.mark.parametrize(
    ("documentation", "shown"),
    [
        ("```\nassert_eq!(f(1), 2);\n```", ["assert_eq!(f(1), 2);"]),
        ("```rust\nlet a = 1;\nassert_eq!(f(a), 2);\nassert!(f(2) > 3);\n```",
         ["let a = 1;\nassert_eq!(f(a), 2);", "assert!(f(2) > 3);"]),
        ("```\n# use a::b;\n# fn main() {\nassert_eq!(f(1), 2);\n# }\n```",
         ["assert_eq!(f(1), 2);"]),
        ("```edition2021\nuse my_crate::f;\nassert_eq!(f(1), 2);\n```", ["assert_eq!(f(1), 2);"]),
        ("```should_panic\nf(-1);\n```", ["f(-1);\n(must panic)"]),
        ("```rust,should_panic\nf(-1);\n```", ["f(-1);\n(must panic)"]),
        ("```no_run\nassert_eq!(f(1), 2);\n```", []),
        ("```ignore\nassert_eq!(f(1), 2);\n```", []),
        ("```rust,ignore\nassert_eq!(f(1), 2);\n```", []),
        ("```text\nassert_eq!(f(1), 2);\n```", []),
        ("```python\nassert_eq!(f(1), 2);\n```", []),
        ("```compile_fail\nassert_eq!(f(1), 2);\n```", []),
        (">>> f(1)\n2\n>>> f(3)\n4", ["assert_eq!(f(1), 2);", "assert_eq!(f(3), 4);"]),
        (">>> f(1)\nvec![1,\n2]\n", ["assert_eq!(f(1), vec![1, 2]);"]),
        (">>> let a = 4\n>>> f(a)\n-1", ["let a = 4;\nassert_eq!(f(a), -1);"]),
        (">>> f(1)\n\n2", []),
        (">>> g(1)\n2", []),
        ("```\n>>> f(1)\n2\n```", ["assert_eq!(f(1), 2);"]),
        ("f(1) is 2.", []),
        ("```\nassert_eq!(f(1), 2);\n```\n>>> f(1)\n2", ["assert_eq!(f(1), 2);"]),
    ],
)  # fmt: skip
def test_an_example_is_read(documentation: str, shown: list[str], tmp_path: Path) -> None:
    found = cases_of(tmp_path, documentation)
    assert [case.shown for case in found] == shown
    assert all(case.trusted and case.mode == "split" for case in found)


def test_the_own_crate_is_known_by_its_name(tmp_path: Path) -> None:
    found = cases_of(tmp_path, "```\nuse my_crate::f;\nassert_eq!(my_crate::f(1), f(2));\n```")
    assert found[0].source.startswith("use crate as my_crate;\n")


@pytest.mark.parametrize(
    "file",
    [
        "/** One.\n * ```\n * assert_eq!(f(1), 2);\n * ```\n */\nfn f(x: i32) -> i32 { todo!() }",
        '#[doc = "```\\nx\\n```"]\n/// ```\n/// assert_eq!(f(1), 2);\n/// ```\n#[inline]\n'
        "pub fn f(x: i32) -> i32 { todo!() }",
        "mod m {\n    /// ```\r\n    /// assert_eq!(f(1), 2);\r\n    /// ```\r\n"
        "    fn f(x: i32) -> i32 { todo!() }\n}",
    ],
)
def test_all_forms_of_documentation_are_read(file: str, tmp_path: Path) -> None:
    (tmp_path / "x.rs").write_bytes(file.encode())
    found = open_task(tmp_path / "x.rs", None, False).examples()
    assert [case.shown for case in found] == ["assert_eq!(f(1), 2);"]


def test_an_own_test_that_repeats_an_example_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "x.rs").write_text("/// >>> f(1)\n/// 2\nfn f(x: i32) -> i32 { todo!() }")
    task = open_task(tmp_path / "x.rs", None, False)
    found, left = task.own_tests("assert_eq!(f(1), 2);\nassert_eq!(f(2), 3);", task.examples())
    assert [case.shown for case in found] == ["assert_eq!(f(2), 3);"]
    assert left[0].reason == "repeats another test"


PARTS = st.sampled_from([">>> f(", "1)", "\n", "```", "rust\n", "# ", "assert!("])


@given(st.text() | st.lists(PARTS).map("".join))
def test_no_documentation_ever_raises(text: str) -> None:
    examples.units(text, "f")
