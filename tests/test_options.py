"""What is said on the command line reaches the loop as it was said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reflexfix.cli.options import settings_of
from reflexfix.cli.solve import solve
from reflexfix.rules import Rules
from reflexfix.suite import SuiteRules


def rules(tmp_path: Path, *arguments: str) -> Rules:
    file = tmp_path / "m.py"
    file.write_text("def f():\n    ...\n")
    return settings_of(solve.make_context("solve", [str(file), *arguments]).params).rules


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ([], {}),
        (["--memory", "lesson"], {"told": "lesson"}),
        (["--no-reflection"], {"told": "transcript"}),
        (["--restart", "never"], {"restart": "never"}),
        (["--no-agreement"], {"agreement": False}),
        (["--mutants", "0"], {"mutants": 0}),
        (["--last"], {"last": True}),
        (["--no-differences"], {"differences": False}),
        (["--no-more-tests"], {"more_tests": False}),
        (["--values"], {"suite": SuiteRules(watch=True)}),
        (["--derive"], {"suite": SuiteRules(derive=True)}),
        (["--no-tests"], {"test": False}),
        (["--trials", "7"], {"trials": 7}),
    ],
)
def test_a_flag_changes_its_rule_and_no_other(
    arguments: list[str], changed: dict[str, Any], tmp_path: Path
) -> None:
    assert rules(tmp_path, *arguments) == Rules(**changed)


def test_lessons_are_bought_where_the_next_try_is_told_of_them() -> None:
    told = {kind: Rules(told=kind).reflect for kind in ("none", "transcript", "lesson", "both")}
    assert told == {"none": False, "transcript": False, "lesson": True, "both": True}
