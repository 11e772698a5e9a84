"""The report's page: whole in one file, safe to open, readable on a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from batches import PostHoc, attempt, result, score, verdict

from reflexfix.batch import page, report, scores
from reflexfix.batch.result import Result
from reflexfix.batch.store import Store

EVIL = "<script>document.title='evil'</script>\ud800"


def some() -> list[Result]:
    odd = (attempt(1, verdict((1, 3)), code=EVIL), attempt(2, verdict((3, 3))))
    curve = (PostHoc(1, False), PostHoc(2, True))
    lessons = ({"text": EVIL, "attempt": 1, "outcome": "helped", "closed": ""},)
    suite = {"cases": [{"origin": "own", "shown": EVIL, "mode": "split"}], "dropped": []}
    found = [
        result(f"Own/{n}", "reflexion", n % 2 == 0, attempts=odd, post_hoc=curve,
               lessons=lessons, suite=suite, accepts=True)
        for n in range(12)
    ]  # fmt: skip
    found += [result(f"Own/{n}", "base", n % 3 == 0) for n in range(12)]
    found.append(result("Own/x", "base", False, score=None, trouble="model", message=EVIL))
    found.append(result("Own/y", "base", False, score=score(False, message=EVIL)))
    return found


def written(folder: Path) -> str:
    store = Store(folder)
    store.begin({"models": ["m"], "data": [{"name": "own.jsonl"}], "version": "0",
                 "arms": {"base": {}, "reflexion": {}}})  # fmt: skip
    for one in some():
        store.add(one)
    report.write(folder)
    return (folder / report.PAGE).read_text("utf-8")


def test_what_a_model_wrote_is_shown_and_never_run(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert "<script" not in text and "&lt;script&gt;" in text


def test_the_page_needs_nothing_from_anywhere(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_every_task_and_every_arm_is_on_the_page(tmp_path: Path) -> None:
    text = written(tmp_path)
    for n in range(12):
        assert f"<summary>Own/{n}<" in text
    assert "base: model trouble" in text and "reflexion against base" in text
    assert "post hoc" in text and "<polyline" in text


def test_more_tasks_than_a_page_takes_are_counted_and_not_shown() -> None:
    many = [result(f"T/{n}", "base", True) for n in range(page.MOST_TASKS + 7)]
    text = page.tasks(many)
    assert text.count("<summary>T/") == page.MOST_TASKS and "7 more results" in text
    assert scores.count(many)["base"].hidden.n == len(many)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PROBE = """<script>addEventListener('load', () => {
  document.querySelectorAll('details').forEach(d => d.open = true);
  const wide = document.documentElement.scrollWidth - innerWidth;
  const look = getComputedStyle(document.body);
  const ink = look.color, ground = look.backgroundColor;
  const rows = document.querySelectorAll("details").length;
  document.title = `overflow ${wide}; ink ${ink}; ground ${ground}; rows ${rows}`;
});</script>"""


def opened(path: Path, folder: Path, *flags: str) -> str:
    """Open a page in headless Chromium and give the title that the probe has set."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder / 'profile'}", *flags, "--virtual-time-budget=2000",
        "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found is not None, done.stderr[-500:]
    return found[1]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("size", ["390,800", "1200,900"])
def test_a_browser_shows_it_without_scrolling_sideways(size: str, tmp_path: Path) -> None:
    probed = tmp_path / "probed.html"
    probed.write_text(written(tmp_path).replace("<h1>", PROBE + "<h1>", 1))
    title = opened(probed, tmp_path, f"--window-size={size}")
    assert title.startswith("overflow 0;") or title.startswith("overflow -"), title
    dark = opened(probed, tmp_path, f"--window-size={size}", "--force-dark-mode",
                  "--blink-settings=preferredColorScheme=0")  # fmt: skip
    assert title.split("ink ")[1] != dark.split("ink ")[1], (title, dark)
