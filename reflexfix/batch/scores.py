"""The scores of a batch, counted from its results one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reflexfix.batch import figures
from reflexfix.batch.result import PostHoc, Result

LABELS = ("verified", "likely", "weak", "unproven", "failed")


@dataclass
class Share:
    """So many of so many."""

    right: int = 0
    n: int = 0

    def add(self, right: bool) -> None:
        self.right += right
        self.n += 1

    def record(self) -> dict[str, Any]:
        low, high = figures.wilson(self.right, self.n)
        share = self.right / self.n if self.n else None
        return {"right": self.right, "n": self.n, "share": share, "low": low, "high": high}


@dataclass
class ArmScores:
    """What one arm came to. Troubled tasks are in none of the shares."""

    name: str
    hidden: Share = field(default_factory=Share)
    base: Share = field(default_factory=Share)
    trouble: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Share] = field(default_factory=lambda: {name: Share() for name in LABELS})
    statuses: Counter[str] = field(default_factory=Counter)
    own_pass: Share = field(default_factory=Share)
    """Of answers that pass all own tests: those that fail the hidden ones (false positives)."""
    own_fail: Share = field(default_factory=Share)
    """Of answers that fail an own test: those that pass the hidden ones (false negatives)."""
    trusted_pass: Share = field(default_factory=Share)
    trusted_fail: Share = field(default_factory=Share)
    suites: Share = field(default_factory=Share)
    """Suites that let the reference solution pass."""
    claimed_at: Counter[int] = field(default_factory=Counter)
    """At which trial the loop took its answer to be right."""
    right_by: Counter[int] = field(default_factory=Counter)
    """Post hoc: how many tasks' best so far was right after each trial."""
    judged_by: int = 0
    most_trials: int = 1
    lessons: Counter[str] = field(default_factory=Counter)
    modes: dict[str, Share] = field(default_factory=dict)
    """By the mode of the scoring run, and whether the answer passed."""
    forged: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    solved_tokens: int = 0
    """Tokens of the tasks that passed."""
    seconds: float = 0.0
    model_seconds: float = 0.0
    sandbox_seconds: float = 0.0
    solved_seconds: float = 0.0
    limited: list[str] = field(default_factory=list)
    """Tasks in which a verdict turned on a time limit."""
    notes: Counter[str] = field(default_factory=Counter)
    """What has to be known of tasks, as that some of their hidden tests stand in the prompt."""
    samples: list[tuple[int, int]] = field(default_factory=list)
    """For pass@k: samples drawn and right, a task."""
    passed: dict[str, bool] = field(default_factory=dict)

    # ------------------------------------------------------------ counting

    def add(self, result: Result) -> None:
        """Take in one result."""
        if result.trouble or result.score is None:
            self.trouble[result.trouble or "sandbox"] += 1
            return
        self.passed[result.id] = result.passed
        self.notes.update(result.notes)
        self.hidden.add(result.passed)
        if result.score.base is not None:
            self.base.add(result.score.base)
        self.labels[result.label].add(result.passed)
        self.statuses[result.score.status] += 1
        self.modes.setdefault(result.score.mode, Share()).add(result.passed)
        self.forged += result.score.forged
        if result.accepts is not None:
            self.suites.add(result.accepts)
        self._add_tests(result)
        self._add_course(result)
        self._add_cost(result)

    def _add_tests(self, result: Result) -> None:
        """Compare what the loop's tests said of the answer with what the hidden ones say."""
        verdict = best_verdict(result)
        for kind, passing, failing in (
            ("own", self.own_pass, self.own_fail),
            ("trusted", self.trusted_pass, self.trusted_fail),
        ):
            passed, total = verdict["passed"][kind], verdict["total"][kind]
            if total and not verdict["problem"]:
                if passed == total:
                    passing.add(not result.passed)
                else:
                    failing.add(result.passed)

    def _add_course(self, result: Result) -> None:
        if result.claims:
            solved = [a["number"] for a in result.attempts if a["verdict"]["solved"]]
            self.claimed_at[min(solved, default=0)] += 1
        self.lessons.update(lesson["outcome"] for lesson in result.lessons)
        if result.limited:
            self.limited.append(result.id)
        if result.samples:
            self.samples.append((len(result.samples), sum(s.passed for s in result.samples)))
        if result.post_hoc:
            self.judged_by += 1
            self.most_trials = max(self.most_trials, *(one.number for one in result.post_hoc))
            self.right_by.update(right_after(result.post_hoc))

    def _add_cost(self, result: Result) -> None:
        self.prompt_tokens += result.tokens.prompt
        self.answer_tokens += result.tokens.answer
        self.seconds += result.seconds
        self.model_seconds += result.model_seconds
        self.sandbox_seconds += result.sandbox_seconds
        if result.passed:
            self.solved_tokens += result.tokens.all
            self.solved_seconds += result.seconds

    # ------------------------------------------------------------ telling

    def record(self, times: bool) -> dict[str, Any]:
        """Give all of it as one object; without times it is the same for each replay."""
        told = {
            "name": self.name,
            "pass@1": self.hidden.record(),
            "base": self.base.record() if self.base.n else None,
            "trouble": dict(self.trouble),
            "labels": {name: share.record() for name, share in self.labels.items() if share.n},
            "statuses": dict(sorted(self.statuses.items())),
            "own_tests": {
                "false_positives": self.own_pass.record(),
                "false_negatives": self.own_fail.record(),
            },
            "trusted_tests": {
                "false_positives": self.trusted_pass.record(),
                "false_negatives": self.trusted_fail.record(),
            },
            "suites_that_accept_the_reference": self.suites.record(),
            "claimed_at_trial": dict(sorted(self.claimed_at.items())),
            "post_hoc": self._curve(),
            "lessons": dict(sorted(self.lessons.items())),
            "modes": {mode: share.record() for mode, share in sorted(self.modes.items())},
            "forged": self.forged,
            "tokens": self._tokens(),
            "turned_on_a_time_limit": sorted(self.limited),
            "notes": dict(sorted(self.notes.items())),
        }
        return {**told, "seconds": self._seconds()} if times else told

    def _tokens(self) -> dict[str, Any]:
        n, right = self.hidden.n, self.hidden.right
        every = self.prompt_tokens + self.answer_tokens
        return {
            "prompt": self.prompt_tokens,
            "answer": self.answer_tokens,
            "per_task": every / n if n else None,
            "per_solved_task": every / right if right else None,
        }

    def _seconds(self) -> dict[str, Any]:
        n, right = self.hidden.n, self.hidden.right
        return {
            "all": round(self.seconds, 1),
            "model": round(self.model_seconds, 1),
            "sandbox": round(self.sandbox_seconds, 1),
            "per_task": self.seconds / n if n else None,
            "per_solved_task": self.seconds / right if right else None,
        }

    def _curve(self) -> dict[str, Any]:
        """Tell what was judged after the final answers: it is not pass@1 and steered nothing."""
        told: dict[str, Any] = {}
        if self.judged_by:
            curve = {str(k): self.right_by[k] for k in range(1, self.most_trials + 1)}
            told["right_after_trial"] = {"n": self.judged_by, "right": curve}
        if self.samples:
            most = min(n for n, _ in self.samples)
            told["pass@k"] = {
                str(k): figures.mean(figures.pass_at_k(n, right, k) for n, right in self.samples)
                for k in range(1, most + 1)
            }
        return told


MOST_TRIALS = 50


def right_after(post_hoc: Iterable[PostHoc]) -> list[int]:
    """List the trials after which the best so far was right; after the last one it stays."""
    by_trial = {one.number: one.passed for one in post_hoc}
    stands, found = by_trial.get(0, False), []
    for number in range(1, MOST_TRIALS + 1):
        stands = by_trial.get(number, stands)
        if stands:
            found.append(number)
    return found


def best_verdict(result: Result) -> Mapping[str, Any]:
    """Give what the loop's tests said of the answer that stands, those put aside included."""
    blank = {"passed": {"own": 0, "trusted": 0}, "total": {"own": 0, "trusted": 0}, "problem": ""}
    stands = (a["verdict"] for a in result.attempts if a["number"] == result.best and a["code"])
    return next(stands, blank)


# ---------------------------------------------------------------- two arms, or two runs


@dataclass(frozen=True)
class Pair:
    """The same tasks in two arms."""

    first: str
    second: str
    n: int
    won: tuple[str, ...]
    """Tasks that the second one passes and the first one does not."""
    lost: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        won, lost = len(self.won), len(self.lost)
        low, high = figures.paired_difference(won, lost, self.n)
        return {
            "first": self.first,
            "second": self.second,
            "n": self.n,
            "won": list(self.won),
            "lost": list(self.lost),
            "difference": (won - lost) / self.n if self.n else None,
            "low": low,
            "high": high,
            "p": figures.mcnemar(won, lost),
            "shown": bool(self.n) and not low <= 0 <= high and figures.mcnemar(won, lost) < 0.05,
        }


def paired(first: ArmScores, second: ArmScores) -> Pair:
    """Compare two arms on the tasks that both have a verdict on."""
    both = [task for task in first.passed if task in second.passed]
    return Pair(
        first.name,
        second.name,
        len(both),
        won=tuple(t for t in both if second.passed[t] and not first.passed[t]),
        lost=tuple(t for t in both if first.passed[t] and not second.passed[t]),
    )


def count(results: Iterable[Result]) -> dict[str, ArmScores]:
    """Count results by arm, in the order in which arms first come."""
    arms: dict[str, ArmScores] = {}
    for result in results:
        arms.setdefault(result.arm, ArmScores(result.arm)).add(result)
    return arms


def pairs(arms: Mapping[str, ArmScores]) -> list[Pair]:
    """Compare every arm with `base`, or with the first one where there is no base."""
    if len(arms) < 2:
        return []
    against = arms.get("base") or next(iter(arms.values()))
    found = [paired(against, arm) for arm in arms.values() if arm is not against]
    if "resample" in arms and "reflexion" in arms:
        found.append(paired(arms["resample"], arms["reflexion"]))
    return found
