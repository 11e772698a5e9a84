"""The same batch on the workers of a Dask cluster, each with its own engine and model."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from distributed import Client, Future, KilledWorker, WorkerPlugin, as_completed, get_worker

from reflexfix import assemble
from reflexfix.assemble import ModelChoice
from reflexfix.attempt import Limits
from reflexfix.batch.arms import Arm
from reflexfix.batch.result import Result
from reflexfix.batch.run import Known
from reflexfix.batch.work import After, Bench, work
from reflexfix.benchmarks.problem import BadRow, Problem
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import BudgetSpent, ReflexfixError, UsageProblem
from reflexfix.model import Answer, Budget, Request
from reflexfix.recording import RecordedModel, Recording, key_of
from reflexfix.scoring import Sandboxes

PLUGIN = "reflexfix"
AHEAD = 2
"""How many tasks a thread of the cluster are handed over at a time."""
CONNECT_SECONDS = 20


@dataclass(frozen=True)
class Spec:
    """What a worker needs to open a bench of its own. The key is each worker's environment's."""

    choice: ModelChoice
    limits: Limits
    after: After


@dataclass
class InMemory:
    """A recording that is handed back with the results: only the client writes."""

    known: dict[str, Answer] = field(default_factory=dict)
    new: list[tuple[str, Request, Answer]] = field(default_factory=list)

    def find(self, model: str, request: Request) -> Answer | None:
        return self.known.get(key_of(model, request))

    def keep(self, model: str, request: Request, answer: Answer) -> None:
        self.known[key_of(model, request)] = answer
        self.new.append((model, request, answer))


Done = tuple[list[Result], list[tuple[str, Request, Answer]]]


class BenchPlugin(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """Opens sandbox and model on a worker when its first task comes, and closes them with it."""

    name = PLUGIN

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def setup(self, worker: object) -> None:
        self.lock = threading.Lock()
        self.stack = contextlib.ExitStack()
        self.bench: Bench | None = None
        self.threads = int(getattr(getattr(worker, "state", None), "nthreads", 1))

    def teardown(self, worker: object) -> None:
        self.stack.close()

    def ready(self) -> Bench:
        """Open the bench once. Raises ReflexfixError."""
        with self.lock:
            if self.bench is None:
                self.bench = self._open()
            return self.bench

    def _open(self) -> Bench:
        budget = Budget()
        choice = replace(self.spec.choice, key=os.environ.get("OPENAI_API_KEY", ""))
        models = self.stack.enter_context(assemble.models(choice, budget, ignore))
        sandboxes = self.stack.enter_context(Sandboxes(self._sandbox, self.spec.limits))
        return Bench(models, sandboxes, budget, self.spec.after)

    def _sandbox(
        self, language: str, packages: tuple[str, ...], limits: Limits
    ) -> contextlib.AbstractContextManager[ContainerSandbox]:
        return assemble.sandbox(limits, packages, ignore, self.threads, language)


def ignore(_line: str) -> None:
    """A worker has nobody to talk to."""


def on_worker(problem: Problem, arms: tuple[Arm, ...], known: Mapping[str, Result]) -> Done:
    """Run one problem on a worker; what goes wrong with the machine is a troubled result."""
    plugin: BenchPlugin = get_worker().plugins[PLUGIN]
    kept = InMemory()
    try:
        bench = plugin.ready()
    except ReflexfixError as error:
        return [troubled(problem, arm, error.message) for arm in arms], []
    models = bench.models.each(lambda model: RecordedModel(kept, model.name, model))
    return list(work(problem, arms, replace(bench, models=models), known)), kept.new


def troubled(problem: Problem, arm: Arm, message: str) -> Result:
    return Result(problem.id, arm.name, problem.language, trouble="sandbox", message=message)


@dataclass
class Cluster:
    """Hands problems to a cluster and takes the results in as they come."""

    address: str
    spec: Spec
    arms: tuple[Arm, ...]
    known: Known
    problems: Iterator[Problem | BadRow]
    budget: Budget
    recording: Recording | None = None
    interrupted: bool = False
    draining: threading.Event = field(default_factory=threading.Event)

    def interrupt(self) -> None:
        """Let what is in flight end, and begin nothing new."""
        self.interrupted = True
        self.draining.set()

    def results(self) -> Iterator[Result | BadRow]:
        """Yield results as they come; a lost worker's tasks are run again by the scheduler.

        Raises UsageProblem when no scheduler answers, BudgetSpent.
        """
        with self._client() as client:
            client.register_plugin(BenchPlugin(self.spec))
            flying: dict[Future, Problem] = {}
            queue = as_completed(loop=client.loop)
            yield from self._hand_over(client, queue, flying)
            for future in queue:
                problem = flying.pop(future)
                yield from self._taken(future, problem)
                yield from self._hand_over(client, queue, flying)

    def _client(self) -> Client:
        try:
            return Client(self.address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UsageProblem(
                f"No scheduler answers at {self.address}: {error}",
                hint="start one with `dask scheduler`, and `dask worker ADDRESS` on each machine",
            ) from None

    def _hand_over(
        self, client: Client, queue: as_completed, flying: dict[Future, Problem]
    ) -> Iterator[BadRow]:
        """Keep so many tasks on the cluster as it has work for."""
        most = AHEAD * max(1, sum(client.nthreads().values()))
        while len(flying) < most and not self.draining.is_set():
            problem = next(self.problems, None)
            if problem is None:
                return
            if isinstance(problem, BadRow):
                yield problem
                continue
            known = {a.name: self.known[problem.id, a.name] for a in self.arms
                     if (problem.id, a.name) in self.known}  # fmt: skip
            if len(known) == len(self.arms):
                continue
            future = client.submit(on_worker, problem, self.arms, known, pure=False)
            flying[future] = problem
            queue.add(future)

    def _taken(self, future: Future, problem: Problem) -> Iterator[Result]:
        """Take in what a worker did: its answers are kept first, then its results."""
        try:
            results, answers = future.result()
        except KilledWorker as error:
            yield from (troubled(problem, arm, str(error)) for arm in self.arms)
            return
        for model, request, answer in answers:
            self.budget.count(answer)
            if self.recording is not None:
                self.recording.keep(model, request, answer)
        yield from results
        try:
            self.budget.left(1)
        except BudgetSpent:
            if not self.draining.is_set():
                self.draining.set()
                raise
