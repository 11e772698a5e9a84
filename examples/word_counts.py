"""Count words, for a small report."""


def word_counts(text: str) -> dict[str, int]:
    """Count how often each word occurs, in lower case. Words are separated by white space.

    >>> word_counts("The cat the dog")
    {'the': 2, 'cat': 1, 'dog': 1}
    >>> word_counts("")
    {}
    """
    ...
