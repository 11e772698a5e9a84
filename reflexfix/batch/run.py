"""A whole batch: workers take problems, results come back to one place and are kept at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reflexfix.background import in_background
from reflexfix.batch.arms import Arm
from reflexfix.batch.result import Result
from reflexfix.batch.store import Store
from reflexfix.batch.work import Bench, work
from reflexfix.benchmarks.problem import BadRow, Problem

Known = Mapping[tuple[str, str], Result]


@dataclass(frozen=True)
class Ended:
    """A worker has no more to do; `error` is what ended it early."""

    error: BaseException | None = None


@dataclass
class Workers:
    """Threads that take problems one at a time, and hand back what came of each arm."""

    bench: Bench
    arms: tuple[Arm, ...]
    known: Known
    problems: Iterator[Problem | BadRow]
    count: int
    draining: threading.Event = field(default_factory=threading.Event)
    """Once set, nothing new is begun."""
    interrupted: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    out: queue.Queue[Result | BadRow | Ended] = field(default_factory=queue.Queue)

    def interrupt(self) -> None:
        """Let what is in flight end, and begin nothing new."""
        self.interrupted = True
        self.draining.set()

    def results(self) -> Iterator[Result | BadRow]:
        """Yield results as they come. Raises BudgetSpent, and whatever a worker fell over."""
        for _ in range(self.count):
            in_background(self._work)
        error: BaseException | None = None
        left = self.count
        while left:
            found = self._next()
            if isinstance(found, Ended):
                left -= 1
                error = error or found.error
                if found.error is not None:
                    self.draining.set()
                continue
            yield found
        if error is not None:
            raise error

    def _next(self) -> Result | BadRow | Ended:
        """Wait for a result in steps, so that Ctrl-C is heard meanwhile."""
        while True:
            try:
                return self.out.get(timeout=0.5)
            except queue.Empty:
                continue

    def _work(self) -> None:
        try:
            while (problem := self._take()) is not None:
                if isinstance(problem, BadRow):
                    self.out.put(problem)
                    continue
                known = {arm.name: self.known[key] for arm in self.arms
                         if (key := (problem.id, arm.name)) in self.known}  # fmt: skip
                for result in work(problem, self.arms, self.bench, known):
                    self.out.put(result)
                    if self.draining.is_set():
                        break
        except BaseException as error:  # handed to the one that collects
            self.out.put(Ended(error))
        else:
            self.out.put(Ended())

    def _take(self) -> Problem | BadRow | None:
        with self.lock:
            if self.draining.is_set():
                return None
            return next(self.problems, None)


def kept(results: Iterable[Result | BadRow], store: Store) -> Iterator[Result | BadRow]:
    """Keep each result before it is passed on."""
    for result in results:
        if isinstance(result, Result):
            store.add(result)
        yield result


def wanted(
    problems: Iterable[Problem | BadRow], ids: frozenset[str], limit: int | None
) -> Iterator[Problem | BadRow]:
    """Choose by id and number. A bad row counts as none."""
    left = limit
    for problem in problems:
        if isinstance(problem, Problem):
            if ids and problem.id not in ids:
                continue
            if left is not None:
                if left == 0:
                    return
                left -= 1
        yield problem
