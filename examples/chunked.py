"""Cut long lists into short ones."""


def chunked(items: list[int], size: int) -> list[list[int]]:
    """Cut the items into lists of `size`; the last one may be shorter.

    A size below one raises ValueError.

    >>> chunked([1, 2, 3, 4, 5], 2)
    [[1, 2], [3, 4], [5]]
    """
    ...
