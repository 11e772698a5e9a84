"""Which files are compiled together with the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflexfix.errors import UsageProblem
from reflexfix.rust import tree
from reflexfix.rust.task import open_task


def lay(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


MANIFEST = '[package]\nname = "geo"\nversion = "0.1.0"\nedition = "2021"\n'
TODO = "pub fn area(a: i32) -> i32 {\n    todo!()\n}\n"


def tree_of(path: Path) -> tree.Tree:
    return open_task(path, None, False).tree


def test_a_file_that_takes_nothing_from_others_is_compiled_alone(tmp_path: Path) -> None:
    lay(tmp_path, {"Cargo.toml": MANIFEST, "src/lib.rs": "mod shape;\n", "src/shape.rs": TODO})
    assert tree_of(tmp_path / "src/shape.rs") == tree.Tree("shape.rs", "shape.rs")
    tests = "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"
    inner = "mod inner {\n    use super::area;\n}\nuse crate::inner as other;\n"
    lay(tmp_path, {"src/shape.rs": TODO + tests + inner})
    assert tree_of(tmp_path / "src/shape.rs").others == {}


@pytest.mark.parametrize(
    "line", ["use crate::util::clamp;", "use super::util::clamp;", "use crate::{util::clamp};"]
)
def test_a_file_that_takes_from_its_crate_comes_with_it(tmp_path: Path, line: str) -> None:
    lay(
        tmp_path,
        {
            "Cargo.toml": MANIFEST,
            "src/lib.rs": "mod shape;\nmod util;\n#[cfg(test)]\nmod checks;\n",
            "src/shape.rs": f"{line}\n{TODO}",
            "src/util/mod.rs": "pub mod deep;\npub fn clamp() {}\n",
            "src/util/deep.rs": "",
            "src/unused.rs": "",
        },
    )
    found = tree_of(tmp_path / "src/shape.rs")
    assert (found.root, found.own) == ("lib.rs", "shape.rs")
    assert sorted(found.others) == ["lib.rs", "util/deep.rs", "util/mod.rs"]


def test_modules_are_looked_for_where_the_compiler_does(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "main.rs": 'mod a;\nmod b { mod c; }\n#[path = "x/y.rs"]\nmod d;\nmod r#loop;\n'
            'const T: &str = include_str!("text.txt");\n' + TODO,
            "a.rs": "mod e;\n",
            "a/e.rs": "",
            "b/c/mod.rs": "mod f;\n",
            "b/c/f.rs": "",
            "x/y.rs": "",
            "loop.rs": "",
            "text.txt": "",
        },
    )
    found = tree_of(tmp_path / "main.rs")
    assert (found.root, found.own) == ("main.rs", "main.rs")
    assert sorted(found.others) == [
        "a.rs", "a/e.rs", "b/c/f.rs", "b/c/mod.rs", "loop.rs", "text.txt", "x/y.rs",
    ]  # fmt: skip


def test_a_root_that_the_manifest_names_is_found(tmp_path: Path) -> None:
    manifest = MANIFEST + '[[bin]]\nname = "tool"\npath = "tool/start.rs"\n'
    files = {"Cargo.toml": manifest, "tool/start.rs": "mod shape;\npub fn one() {}\n"}
    lay(tmp_path, files | {"tool/shape.rs": "use crate::one;\n" + TODO})
    assert tree_of(tmp_path / "tool/shape.rs").root == "start.rs"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    lay(tmp_path, {"m.rs": "mod util;\n" + TODO})
    with pytest.raises(UsageProblem, match="declares `mod util;`, and there is neither"):
        open_task(tmp_path / "m.rs", None, False)
    lay(tmp_path, {"m.rs": "use crate::util::clamp;\n" + TODO})
    with pytest.raises(UsageProblem, match="takes crate::util from its crate, and no root"):
        open_task(tmp_path / "m.rs", None, False)
    lay(tmp_path, {"m.rs": "use super::clamp;\n" + TODO})
    with pytest.raises(UsageProblem, match="takes super::clamp from its crate"):
        open_task(tmp_path / "m.rs", None, False)


def test_a_crate_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MOST_FILES", 2)
    lay(tmp_path, {"m.rs": "mod a;\nmod b;\n" + TODO, "a.rs": "", "b.rs": ""})
    with pytest.raises(UsageProblem, match="too large to be compiled with it"):
        open_task(tmp_path / "m.rs", None, False)


@pytest.mark.parametrize(
    ("shape", "written"),
    [
        ("use crate::one;\n" + TODO, "use crate::shape::area;"),
        (TODO, "use crate as geo;"),
    ],
)
def test_a_test_takes_from_the_crate_by_its_name(tmp_path: Path, shape: str, written: str) -> None:
    lib = "pub mod shape;\npub fn one() {}\n"
    lay(tmp_path, {"Cargo.toml": MANIFEST, "src/lib.rs": lib, "src/shape.rs": shape})
    task = open_task(tmp_path / "src/shape.rs", None, False)
    tests = "use geo::shape::area;\n#[test]\nfn a() {\n    assert_eq!(area(1), 1);\n}\n"
    assert task.tests_in(tests.encode(), tmp_path / "t.rs")[0].source.startswith(written)
    inline = "#[test]\nfn a() {\n    assert_eq!(geo::shape::area(1), 1);\n}\n"
    case = task.tests_in(inline.encode(), tmp_path / "t.rs")[0]
    assert case.source.startswith("use crate as geo;")
