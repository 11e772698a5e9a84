"""Statistics over a stream of measurements."""

from collections.abc import Iterable


def running_median(values: Iterable[float]) -> list[float]:
    """Return the median of the first 1, 2, 3, ... values.

    The median of an even number of values is the mean of the two in the middle.

    >>> running_median([5, 1, 3])
    [5, 3.0, 3]
    >>> running_median([])
    []
    """
    ...
