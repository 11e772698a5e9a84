"""Sums of digits."""


def digit_sum(number: int) -> int:
    """Add up the decimal digits of a number; the sign does not matter.

    >>> digit_sum(123)
    6
    >>> digit_sum(-40)
    4
    """
    ...
