"""How fast the embedded model is, and what each default of `local.Tuning` is worth.

    python benchmarks/local_model.py                     every variant, every kind of work
    python benchmarks/local_model.py --only default one-thread --work improve --rounds 5

Each round starts every variant once, one after the other and each time beginning with another
one, so that whatever else the machine does falls on all of them. Times are seconds of wall
clock; a ratio above 1 is slower than the default. The last lines say whether greedy answers
were the same in every round, and the same as the default's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from reflexfix.local import Endpoint, Tuning, model_path, serve

IMPLEMENT = """You are a careful Python programmer. You write the body of exactly one function.

- Answer with one fenced Python code block that holds the complete function: the imports that it
  needs, its signature exactly as given, its docstring, and its body.
- Keep the name, the parameters, the defaults and the annotations unchanged.
- Use only the Python standard library. Do not read files, open network connections, start
  processes, or print.
- The examples in the docstring are the specification. Work out each of them by hand before you
  answer, and handle empty input, one element, repeated elements and negative numbers.
- Prefer a clear solution over a clever one. Raise ValueError for arguments that the docstring
  forbids. Write no tests and no explanations before or after the code block.
- When lessons from earlier tries are given, they come from running real tests. Follow them even
  when your first idea was different."""

WRITE_TESTS = """You are a careful Python test writer. You see the signature and the docstring of
one function, and you write unit tests for it.

- Answer with one fenced Python code block of up to six assert statements, one on a line.
- The first ones repeat the examples of the docstring; the others cover edge cases.
- Work each expected value out by hand. A wrong test is worse than a missing one."""

TASKS = (
    '''def merge_intervals(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge all overlapping or touching intervals and return them sorted by their start.
    An interval is a pair (start, end) with start <= end; raise ValueError otherwise.
    >>> merge_intervals([(1, 3), (2, 6), (8, 10)])
    [(1, 6), (8, 10)]
    >>> merge_intervals([(1, 4), (4, 5)])
    [(1, 5)]
    """
''',
    '''def longest_palindrome(text: str) -> str:
    """Return the longest palindromic substring of the text; the leftmost one when several
    are equally long; the empty string for the empty text.
    >>> longest_palindrome("babad")
    'bab'
    >>> longest_palindrome("cbbd")
    'bb'
    """
''',
    '''def run_length(text: str) -> list[tuple[str, int]]:
    """Encode a text as runs: each run is the character and how often it repeats in a row.
    >>> run_length("aaabccd")
    [('a', 3), ('b', 1), ('c', 2), ('d', 1)]
    >>> run_length("")
    []
    """
''',
    '''def spiral(matrix: list[list[int]]) -> list[int]:
    """Return the elements of a rectangular matrix in clockwise spiral order, from the top
    left corner inwards. The matrix may be empty and need not be square.
    >>> spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    [1, 2, 3, 6, 9, 8, 7, 4, 5]
    >>> spiral([[1, 2, 3, 4]])
    [1, 2, 3, 4]
    """
''',
)

FAILED = (
    TASKS[0]
    + """    if not intervals:
        return []
    for start, end in intervals:
        if start < end:
            raise ValueError("start must not be after end")
    ordered = sorted(intervals, key=lambda interval: interval[0])
    merged = [ordered[0]]
    for start, end in ordered[1:]:
        last_start, last_end = merged[-1]
        if start <= last_end:
            merged[-1] = (last_start, max(last_end, end))
        else:
            merged.append((start, end))
    return merged
""",
    TASKS[2]
    + """    runs: list[tuple[str, int]] = []
    current = text[0]
    count = 0
    for letter in text:
        if letter == current:
            count += 1
        else:
            runs.append((current, count))
            current = letter
            count = 1
    runs.append((current, count))
    return runs
""",
)
LESSONS = (
    "The check compares the wrong way round. Raise only when start > end.",
    "Handle the empty text before reading its first letter: return an empty list.",
)

BODY_TOKENS = 130
TESTS_TOKENS = 350
IMPROVED_TOKENS = 300


@dataclass(frozen=True)
class Variant:
    """One way of starting the server."""

    tuning: Tuning = field(default_factory=Tuning)
    slots: int = 4


VARIANTS = {
    "default": Variant(),
    "speculation-12-48": Variant(Tuning(speculation="NGRAM_SIMPLE")),
    "speculation-5-8": Variant(Tuning(speculation="NGRAM_SIMPLE", match_tokens=5, draft_tokens=8)),
    "spins-300000": Variant(Tuning(spins=300_000)),
    "spins-300": Variant(Tuning(spins=300)),
    "one-thread": Variant(Tuning(threads=1)),
    "no-repack": Variant(Tuning(repack=False)),
    "mapped": Variant(Tuning(mapped=True)),
    "unified": Variant(Tuning(unified=True)),
    "one-slot": Variant(slots=1),
    "two-slots": Variant(slots=2),
}

Ask = Callable[[str, str, int], str]


def alone(ask: Ask) -> list[str]:
    """One function body after another."""
    return [ask(IMPLEMENT, task, BODY_TOKENS) for task in TASKS[:2]]


def four(ask: Ask) -> list[str]:
    """Four function bodies at once."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda task: ask(IMPLEMENT, task, BODY_TOKENS), TASKS))


def improve(ask: Ask) -> list[str]:
    """A failed body and a lesson: the answer repeats most of what it was shown."""
    return [
        ask(IMPLEMENT, f"{body}\nLesson: {lesson}\nWrite it again.", IMPROVED_TOKENS)
        for body, lesson in zip(FAILED, LESSONS, strict=True)
    ]


def pair(ask: Ask) -> list[str]:
    """A body and the tests of the same function at once, as a solve begins."""
    with ThreadPoolExecutor(2) as pool:
        body = pool.submit(ask, IMPLEMENT, TASKS[3], BODY_TOKENS)
        tests = pool.submit(ask, WRITE_TESTS, TASKS[3], TESTS_TOKENS)
        return [body.result(), tests.result()]


def busy(ask: Ask) -> list[str]:
    """One function body while another process keeps a processor busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            return [ask(IMPLEMENT, TASKS[2], BODY_TOKENS)]
        finally:
            other.kill()


WORK: dict[str, Callable[[Ask], list[str]]] = {
    work.__name__: work for work in (alone, four, improve, pair, busy)
}


@dataclass
class Results:
    """Every measured time and answer, by variant and kind of work."""

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[tuple[str, str], list[list[str]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def main() -> None:
    options = _options()
    results = Results()
    print(_machine(), flush=True)
    for number in range(options.rounds):
        names = (
            options.only[number % len(options.only) :] + options.only[: number % len(options.only)]
        )
        for name in names:
            _measure(name, options.model, options.work, results)
            latest = (f"{kind} {results.seconds[name, kind][-1]:.1f} s" for kind in options.work)
            print(f"round {number + 1}: {name}: {', '.join(latest)}", file=sys.stderr)
    print(_table(options.only, ["start", *options.work], results))
    print(_sameness(options.only, options.work, results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=model_path(), help="a GGUF file")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--work", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def _machine() -> str:
    cores = os.cpu_count()
    return (
        f"{_processor()}, {cores} processors, {platform.platform()}, "
        f"load {os.getloadavg()[0]:.1f}\n"
        f"Python {platform.python_version()}, xllamacpp {version('xllamacpp')}"
    )


def _processor() -> str:
    """The processor's name, where Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _measure(name: str, model: Path, work: Iterable[str], results: Results) -> None:
    """Start a variant, warm it up with one short question, and time each kind of work."""
    variant = VARIANTS[name]
    started = time.perf_counter()
    with serve(model, slots=variant.slots, tuning=variant.tuning) as endpoint:
        results.seconds[name, "start"].append(time.perf_counter() - started)
        ask = _asker(endpoint)
        ask(IMPLEMENT, "Answer with the word ready.", 2)
        for kind in work:
            started = time.perf_counter()
            answers = WORK[kind](ask)
            results.seconds[name, kind].append(time.perf_counter() - started)
            results.answers[name, kind].append(answers)


def _asker(endpoint: Endpoint) -> Ask:
    """A greedy question to the endpoint; a proxy of the environment is not asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(system: str, prompt: str, tokens: int) -> str:
        body = {
            "model": endpoint.model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": prompt},
            ],
            "max_tokens": tokens,
            "temperature": 0,
            "seed": 0,
        }
        request = urllib.request.Request(
            f"{endpoint.base_url}/chat/completions",
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {endpoint.api_key}",
                "Content-Type": "application/json",
            },
        )
        with opener.open(request) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])

    return ask


def _table(names: Sequence[str], kinds: Sequence[str], results: Results) -> str:
    """Medians, and in brackets their ratio to the first variant's."""
    rows = [f"{'':20}" + "".join(f"{kind:>16}" for kind in kinds)]
    for name in names:
        cells = []
        for kind in kinds:
            median = statistics.median(results.seconds[name, kind])
            ratio = median / statistics.median(results.seconds[names[0], kind])
            cells.append(f"{f'{median:.1f} s ({ratio:.2f})':>16}")
        rows.append(f"{name:20}" + "".join(cells))
    return "\n".join(rows)


def _sameness(names: Sequence[str], kinds: Sequence[str], results: Results) -> str:
    """For each variant and kind of work: were the answers the same, and the first one's?"""
    rows = ["greedy answers: same in every round / same as " + names[0]]
    for name in names:
        cells = []
        for kind in kinds:
            found = results.answers[name, kind]
            steady = "yes" if all(answers == found[0] for answers in found) else "no"
            wanted = results.answers[names[0], kind][0]
            equal = sum(a == b for a, b in zip(found[0], wanted, strict=True))
            cells.append(f"{f'{steady} / {equal} of {len(wanted)}':>16}")
        rows.append(f"{name:20}{'':16}" + "".join(cells))
    return "\n".join(rows)


if __name__ == "__main__":
    main()
