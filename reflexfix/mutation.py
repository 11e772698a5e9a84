"""Mutants: small wrong versions of an answer, which a suite that proves something tells apart.

DeMillo, Lipton, Sayward, "Hints on Test Data Selection", 1978. The languages say where a program
may be changed and how; what is chosen of that, and whether the suite notices, is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from reflexfix.attempt import Sandbox, Suite
from reflexfix.task import Site, Task


@dataclass(frozen=True)
class Gate:
    """Whether the suite noticed a wrong version: it is tried until one is noticed."""

    tried: int
    noticed: bool
    """Whether the last one tried failed a test."""
    survivors: tuple[bytes, ...] = field(default=(), repr=False)
    """Files with the wrong versions that passed."""

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the suite; so it is too where nothing could be changed."""
        return self.noticed or not self.tried


def gate(task: Task, sandbox: Sandbox, suite: Suite, file: bytes, most: int) -> Gate:
    """Judge at most so many mutants of an answer that passes. Raises SandboxTrouble.

    One that cannot be run at all (in Rust: does not compile) says nothing of the suite.
    """
    survivors: list[bytes] = []
    for mutant in chosen(task.sites(file), file, most):
        verdict = sandbox.run(task.candidate(mutant), suite)
        if verdict.problem:
            continue
        if not verdict.solved:
            return Gate(len(survivors) + 1, True, tuple(survivors))
        survivors.append(mutant)
    return Gate(len(survivors), False, tuple(survivors))


def chosen(sites: Iterable[Site], file: bytes, most: int) -> Iterator[bytes]:
    """Give mutants, one change each: one of every kind first, the latest in the file first.

    What stands last is nearest to what is returned, and least likely to be a guard.
    """
    kinds: dict[str, list[Site]] = {}
    for site in sites:
        kinds.setdefault(site.kind, []).append(site)
    rounds = zip_longest(*(some[::-1] for some in kinds.values()))
    taken = [site for one in rounds for site in one if site is not None]
    for site in taken[:most]:
        yield file[: site.start] + site.text + file[site.end :]
