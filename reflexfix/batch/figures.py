"""The statistics of a benchmark run, each by its textbook formula."""

from __future__ import annotations

import math
from collections.abc import Iterable

Z95 = 1.959963984540054
"""The 97.5 percent point of the normal distribution."""


def wilson(right: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Give the score interval of a proportion, both ends in 0..1; (0, 1) for n = 0.

    Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if n == 0:
        return (0.0, 1.0)
    p = right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (0.0 if right == 0 else middle - half, 1.0 if right == n else middle + half)


def mcnemar(won: int, lost: int) -> float:
    """Give the exact two-sided p of a paired comparison; ties do not enter.

    McNemar 1947, by the binomial distribution with one half; 1.0 where nothing differs.
    """
    n = won + lost
    tail = sum(math.comb(n, k) for k in range(min(won, lost) + 1))
    return min(1.0, 2 * tail / float(2**n))


def pass_at_k(n: int, right: int, k: int) -> float:
    """Estimate without bias the chance that one of k samples is right, of n judged ones.

    Chen et al., "Evaluating Large Language Models Trained on Code", 2021, equation 1. Needs
    1 <= k <= n and 0 <= right <= n; raises ValueError otherwise.
    """
    if not (1 <= k <= n and 0 <= right <= n):
        raise ValueError(f"pass@{k} of {right} right in {n}")
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def mean(values: Iterable[float]) -> float | None:
    """Give the arithmetic mean, None for no value."""
    some = list(values)
    return sum(some) / len(some) if some else None


def paired_difference(won: int, lost: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Give an interval for the difference of two paired proportions, in -1..1.

    Wald's, as corrected by Bonett and Price (2012): one is added to each kind of discordant pair,
    and two to n; (-1, 1) for n = 0.
    """
    if n == 0:
        return (-1.0, 1.0)
    p12, p21 = (won + 1) / (n + 2), (lost + 1) / (n + 2)
    half = z * math.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    return (max(-1.0, p12 - p21 - half), min(1.0, p12 - p21 + half))
