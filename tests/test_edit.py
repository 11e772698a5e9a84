"""Writes that lose nothing, and undo."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix import edit
from reflexfix.errors import UsageProblem

OLD = b"a\nb\nc\nd\ne\nf\n"
NEW = b"import x\na\nb\nC\nCC\nd\ne\nf\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.py"
    path.write_bytes(OLD)
    return path


def test_a_write_keeps_the_mode_and_leaves_no_other_file(file: Path, tmp_path: Path) -> None:
    file.chmod(0o754)
    edit.write(file, OLD, NEW, tmp_path / "home")
    assert file.read_bytes() == NEW
    assert file.stat().st_mode & 0o777 == 0o754
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.py", "home"]


def test_a_link_stays_a_link_and_its_target_is_edited(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(file)
    edit.write(link, OLD, NEW, tmp_path / "home")
    assert link.is_symlink() and file.read_bytes() == NEW


def test_a_file_that_changed_meanwhile_is_not_touched(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"mine\n")
    with pytest.raises(UsageProblem, match="changed while"):
        edit.write(file, OLD, NEW, tmp_path / "home")
    assert file.read_bytes() == b"mine\n"
    assert edit.entries(tmp_path / "home") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; only root can mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_file_as_it_was(small_disk: Path, tmp_path: Path) -> None:
    file = small_disk / "f.py"
    file.write_bytes(OLD)
    with pytest.raises(UsageProblem, match="No space left"):
        edit.write(file, OLD, OLD * 20_000, tmp_path / "home")
    assert file.read_bytes() == OLD
    assert [p.name for p in small_disk.iterdir()] == ["f.py"]
    edit.undo(tmp_path / "home")
    assert file.read_bytes() == OLD


def test_undo_takes_back_the_last_write_and_then_the_one_before(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    edit.write(file, OLD, NEW, home)
    edit.write(file, NEW, NEW + b"g\n", home)
    edit.undo(home)
    assert file.read_bytes() == NEW
    edit.undo(home)
    assert file.read_bytes() == OLD
    with pytest.raises(UsageProblem, match="no write to undo"):
        edit.undo(home)


def test_undo_keeps_what_was_changed_elsewhere_since(file: Path, tmp_path: Path) -> None:
    edit.write(file, OLD, NEW, tmp_path / "home")
    file.write_bytes(NEW + b"g\nh\n")
    edit.undo(tmp_path / "home")
    assert file.read_bytes() == OLD + b"g\nh\n"


def test_undo_refuses_with_a_diff_where_the_span_changed(file: Path, tmp_path: Path) -> None:
    edit.write(file, OLD, NEW, tmp_path / "home")
    changed = NEW.replace(b"CC", b"CCC")
    file.write_bytes(changed)
    with pytest.raises(UsageProblem, match=r"\+CCC"):
        edit.undo(tmp_path / "home")
    assert file.read_bytes() == changed


def test_a_journal_line_that_was_cut_is_passed_over(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    edit.write(file, OLD, NEW, home)
    with (home / edit.JOURNAL).open("a") as journal:
        journal.write('{"time": "x", "pa')
    edit.undo(home)
    assert file.read_bytes() == OLD


line = st.sampled_from([b"a\n", b"b\n", b"\n", b"x = 1\r\n", b"\xff\xfe\n", b"tail"])
text = st.lists(line, max_size=12).map(b"".join)


@given(text, text)
def test_a_diff_is_applied_by_git(before: bytes, after: bytes) -> None:
    """Checked through git for a few shapes below; here: it never fails and is empty for equals."""
    found = edit.diff(before, after, "f.py")
    assert (found == "") == (before == after)


@pytest.mark.parametrize(
    ("before", "after"),
    [(OLD, NEW), (b"a", b"a\nb"), (b"a\n", b"a"), (b"x\r\ny\r\n", b"x\r\nz\r\ny\r\n")],
)
def test_git_takes_the_diff(before: bytes, after: bytes, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_bytes(before)
    data = edit.diff(before, after, "f.py").encode("utf-8", "surrogateescape")
    (tmp_path / "patch").write_bytes(data)
    subprocess.run(["git", "apply", "patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "f.py").read_bytes() == after


@given(text, text)
def test_a_write_is_taken_back_exactly(before: bytes, after: bytes) -> None:
    entry = edit.Entry(Path("f"), before, after, "now")
    assert edit.taken_back(entry, after) == before
