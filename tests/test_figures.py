"""The statistics, against values worked out by hand or known from the literature."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix.batch.figures import mcnemar, paired_difference, pass_at_k, wilson


def test_wilson_agrees_with_a_published_interval() -> None:
    """Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662."""
    low, high = wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_wilson_of_nothing_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 400), st.data())
def test_wilson_holds_the_share_and_stays_in_bounds(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    low, high = wilson(right, n)
    assert 0 <= low <= right / n <= high <= 1


@pytest.mark.parametrize(
    ("won", "lost", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (8, 1, 0.0390625), (3, 3, 1.0)]
)
def test_mcnemar_is_the_exact_binomial(won: int, lost: int, p: float) -> None:
    assert mcnemar(won, lost) == pytest.approx(p)
    assert mcnemar(lost, won) == mcnemar(won, lost)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_a_probability(won: int, lost: int) -> None:
    assert 0 < mcnemar(won, lost) <= 1


def by_counting(n: int, right: int, k: int) -> float:
    samples = [1] * right + [0] * (n - right)
    chosen = list(itertools.combinations(samples, k))
    return sum(any(some) for some in chosen) / len(chosen)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, right, k) == pytest.approx(by_counting(n, right, k))


@pytest.mark.parametrize(("n", "right", "k"), [(3, 1, 4), (3, 4, 1), (3, 1, 0), (0, 0, 1)])
def test_pass_at_k_refuses_what_cannot_be(n: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass@"):
        pass_at_k(n, right, k)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 100))
def test_a_paired_difference_lies_in_its_interval(won: int, lost: int, tied: int) -> None:
    n = won + lost + tied
    low, high = paired_difference(won, lost, n)
    assert -1 <= low <= high <= 1
    assert math.isclose(low, -high) if won == lost and n else True
