"""What a file needs beside it comes along, what it needs from elsewhere is named, no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reflexfix.python.surroundings import MAX_FILES, Surroundings
from reflexfix.python.task import open_task

STUB = "\n\ndef f(x):\n    ...\n"


def laid_out(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def around(folder: Path, files: dict[str, str | bytes], path: str) -> Surroundings:
    laid_out(folder, files)
    return open_task(folder / path, None, False).surroundings


def test_a_file_alone_needs_nothing(tmp_path: Path) -> None:
    found = around(tmp_path, {"m.py": "import os, json.decoder" + STUB, "other.py": ""}, "m.py")
    assert (found.module, found.files, found.packages) == ("m", {}, ())
    assert found.root == tmp_path.resolve()


def test_a_package_is_imported_from_above_it(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from . import low",
        "pkg/low.py": "",
        "pkg/sub/__init__.py": "",
        "pkg/sub/m.py": "from ..high import up\nfrom . import near\nfrom .near import x" + STUB,
        "pkg/sub/near.py": "x = 1",
        "pkg/high.py": "import pkg.low",
        "pkg/unused.py": "",
        "unused.py": "",
    }
    found = around(tmp_path, dict(files), "pkg/sub/m.py")
    assert found.module == "pkg.sub.m"
    needed = ["pkg/__init__.py", "pkg/high.py", "pkg/low.py", "pkg/sub/__init__.py"]
    assert sorted(found.files) == [*needed, "pkg/sub/near.py"]
    assert found.packages == ()


def test_the_file_may_be_the_package_itself(tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "from .low import x" + STUB, "pkg/low.py": "from . import f"}
    found = around(tmp_path, dict(files), "pkg/__init__.py")
    assert (found.module, sorted(found.files)) == ("pkg", ["pkg/low.py"])


def test_packages_from_elsewhere_are_named_once_by_their_top(tmp_path: Path) -> None:
    files = {
        "m.py": "import numpy.linalg\nfrom yaml import load\nimport near, os" + STUB,
        "near.py": "import attr, numpy",
    }
    found = around(tmp_path, dict(files), "m.py")
    assert found.packages == ("attr", "numpy", "yaml")


def test_what_may_be_missing_without_harm_is_not_needed_but_neighbours_come_along(
    tmp_path: Path,
) -> None:
    text = (
        "try:\n    import fast\n    import numpy\nexcept ImportError:\n    fast = None\n"
        "def g():\n    import late, pandas\n" + STUB
    )
    files = {"m.py": text, "fast.py": "x = 1", "late.py": "import torch", "numpy2.py": ""}
    found = around(tmp_path, dict(files), "m.py")
    assert sorted(found.files) == ["fast.py", "late.py"]
    assert found.packages == ("torch",)


def test_neighbours_that_import_each_other_are_taken_once(tmp_path: Path) -> None:
    files = {"m.py": "import a" + STUB, "a.py": "import b, m", "b.py": "import a"}
    assert sorted(around(tmp_path, dict(files), "m.py").files) == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfimport b\n", b"# coding: latin-1\nimport b # \xe9"],
    ids=["bom", "latin-1"],
)
def test_a_neighbour_in_any_encoding_is_followed(tmp_path: Path, data: bytes) -> None:
    files: dict[str, str | bytes] = {"m.py": "import a" + STUB, "a.py": data, "b.py": ""}
    found = around(tmp_path, files, "m.py")
    assert sorted(found.files) == ["a.py", "b.py"]
    assert found.files["a.py"] == data


def test_a_neighbour_that_is_no_python_is_taken_as_it_is(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"m.py": "import a" + STUB, "a.py": b"\xff\0("}
    assert around(tmp_path, files, "m.py").files == {"a.py": b"\xff\0("}


def test_a_long_chain_of_imports_is_no_crash_and_is_bounded(tmp_path: Path) -> None:
    chain: dict[str, str | bytes] = {f"a{n}.py": f"import a{n + 1}" for n in range(MAX_FILES + 50)}
    found = around(tmp_path, {"m.py": "import a0" + STUB, **chain}, "m.py")
    assert len(found.files) == MAX_FILES


def test_a_large_neighbour_is_left_out_and_smaller_ones_are_not(tmp_path: Path) -> None:
    files = {"m.py": "import a, b" + STUB, "a.py": "#" * (9 * 2**20), "b.py": "x = 1"}
    assert sorted(around(tmp_path, dict(files), "m.py").files) == ["b.py"]


ODD = {
    "a name that no file can have": f"import {'a' * 400}",
    "more dots than folders": "from ....... import x",
    "nothing but dots": "from . import x",
    "a star": "from . import *\nfrom near import *",
    "a name of another script": "import größe, 名前",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_an_odd_import_is_no_crash(tmp_path: Path, text: str) -> None:
    files = {"m.py": text + STUB, "near.py": "", "größe.py": "", "__init__.py": ""}
    assert around(tmp_path, dict(files), "m.py").module.endswith("m")


def test_a_neighbour_that_may_not_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(tmp_path, {"m.py": "import a, b" + STUB, "a.py": "", "b.py": ""})
    real = Path.read_bytes

    def locked(path: Path) -> bytes:
        if path.name == "a.py":
            raise PermissionError(13, "no")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", locked)
    found = open_task(tmp_path / "m.py", None, False).surroundings
    assert sorted(found.files) == ["b.py"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_a_link_is_followed_to_where_the_file_is(tmp_path: Path) -> None:
    laid_out(tmp_path, {"real/m.py": "import a" + STUB, "real/a.py": "x = 1"})
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "m.py")
    found = open_task(tmp_path / "link.py", None, False).surroundings
    assert (found.module, sorted(found.files)) == ("m", ["a.py"])


@pytest.mark.parametrize("name", ["my-module.py", "a.b.py", "1st.py", "class.py"])
def test_a_file_of_any_name_is_a_candidate_under_the_module_it_names(
    tmp_path: Path, name: str
) -> None:
    laid_out(tmp_path, {name: STUB})
    task = open_task(tmp_path / name, None, False)
    candidate = task.candidate(b"new")
    (path,) = candidate.files
    assert candidate.files[path] == b"new"
    assert candidate.stub_files[path] == STUB.encode()
    assert path == candidate.module.replace(".", "/") + ".py"
