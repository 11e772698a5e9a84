"""The arms of an experiment: one model, the same tasks, and a set of flags each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflexfix.errors import UsageProblem
from reflexfix.solving import Settings

BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    "reflexion": {},
    "resample": {"resample": True, "agreement": False},
    "paper": {"restart": "never", "agreement": False, "mutants": 0, "last": True},
    "base": {"trials": 1, "no_tests": True},
    "plain": {"trials": 1, "no_tests": True, "plain": True},
    "no-tests": {"no_tests": True},
    "no-reflection": {"no_reflection": True},
}
"""What each arm changes of the options given.

base is the loop's own first answer: the same question at the same temperature and seed.
plain is one answer to a plain prompt, without ours.
resample is chosen by the suite that the loop has, with as many tokens as it used.
paper is the loop of the paper: it never starts over, takes its own tests at their word, and its
last answer stands.
"""


@dataclass(frozen=True)
class Arm:
    """One way to come to an answer."""

    name: str
    settings: Settings
    resample: bool = False
    tokens: int | None = None
    """What resampling may use on a task; None for what the arm `reflexion` used on it."""


def definitions(names: tuple[str, ...], file: Path | None) -> dict[str, Mapping[str, Any]]:
    """Give what each arm asked for changes, in the order in which they have to run.

    An arm file is TOML, a table an arm with options as the command spells them:

        [arms.wide]
        window = 3
        trials = 6

    Raises UsageProblem for an arm that nothing defines.
    """
    known = {**BUILT_IN, **(_read(file) if file else {})}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageProblem(f"There is no arm {unknown[0]}.", hint=f"there are {', '.join(known)}")
    wanted = dict.fromkeys(names)
    first = [name for name in wanted if name == "reflexion"]  # resampling has to know its tokens
    return {name: known[name] for name in [*first, *(n for n in wanted if n not in first)]}


def _read(file: Path) -> dict[str, Mapping[str, Any]]:
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{file} cannot be read: {error}") from None
    arms = data.get("arms", {})
    if not isinstance(arms, dict) or not all(isinstance(arm, dict) for arm in arms.values()):
        raise UsageProblem(f"{file}: `arms` has to be a table of tables.")
    return {
        name: {option.replace("-", "_"): value for option, value in arm.items()}
        for name, arm in arms.items()
    }
