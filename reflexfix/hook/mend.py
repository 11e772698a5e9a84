"""Try to mend what is at fault, one suspect after the other, within the budget."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from reflexfix import solving
from reflexfix.ask import Ask
from reflexfix.assemble import Models
from reflexfix.attempt import Attempt, Verdict
from reflexfix.errors import BudgetSpent, UsageProblem
from reflexfix.hook import blame, cargo, culprit, rust_code
from reflexfix.hook.blame import Suspect
from reflexfix.hook.culprit import Culprit
from reflexfix.hook.evaluator import Evaluator
from reflexfix.hook.masking import Mask, MaskedModel
from reflexfix.hook.plan import Plan
from reflexfix.hook.runner import ProjectSandbox, Report, Request
from reflexfix.hook.tree import Tree
from reflexfix.loop import Event, Run
from reflexfix.memory import Memory
from reflexfix.model import Budget, LoggedModel, Model
from reflexfix.runlog import RunLog

ROUNDS = 5
"""How many functions one patch may mend."""


@dataclass(frozen=True)
class Fix:
    """A new version of one function, and which of the failing tests pass with it."""

    suspect: Suspect
    before: bytes
    after: bytes
    fixes: tuple[str, ...]
    verified: bool = True
    """Whether the whole suite was run on it, and nothing else broke."""
    run: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether all failing tests that run the function pass now, and nothing else broke."""
        return self.verified and set(self.fixes) >= set(self.suspect.tests)

    @property
    def path(self) -> str:
        return self.suspect.path


@dataclass(frozen=True)
class Trying:
    """A suspect is tried."""

    suspect: Suspect


@dataclass(frozen=True)
class Broke:
    """A version mends the failing tests and breaks others: that is no fix."""

    tests: tuple[str, ...]


Suspected = Culprit | rust_code.Culprit
Step = Trying | Broke | Fix | Event


@dataclass
class Mending:
    """Everything that a search for a fix needs."""

    sandbox: ProjectSandbox
    tree: Tree
    plan: Plan
    settings: solving.Settings
    models: Models
    budget: Budget
    home: Path
    suite_seconds: float
    own_tests: bool = False
    only: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    """Tests whose failure is nobody's fault here: flaky ones, and those that lack a module."""
    mask: Mask = field(default_factory=Mask)
    watch: Callable[[Run], None] = lambda _run: None
    """Told of each run before it begins."""
    fixes: list[Fix] = field(default_factory=list)
    stopped: str = ""
    hung: tuple[str, ...] = ()
    """Tests that ran out of their time."""
    run_id: str = ""
    """The artefact of the latest run of the loop."""

    def steps(self, report: Report) -> Iterator[Step]:
        """Mend one function after the other until no test fails, yielding what happens.

        `fixes` holds what there is at every moment. Raises ModelTrouble and SandboxTrouble.
        """
        self.hung = tuple(r.name for r in report.failures if r.status == "timeout")
        try:
            for _ in range(ROUNDS):
                fixed = yield from self._one_fix(report)
                if fixed is None or not (left := self._left(report, fixed)):
                    return
                report = self.sandbox.test(self.tree, self.plan, left, self.suite_seconds)
                report = self.without_ignored(report)
                if not report.failures:
                    return
        except BudgetSpent as error:
            self.stopped = error.message

    def _left(self, report: Report, fixed: Fix) -> Request | None:
        """Ask again where the tests that still fail lead to."""
        self.tree = self.tree.with_file(fixed.path, fixed.after)
        failing = tuple(name for name in report.names if name not in fixed.fixes)
        return Request(first=failing, trace=True, hung=self.hung) if failing else None

    def without_ignored(self, report: Report) -> Report:
        kept = tuple(r for r in report.failures if r.name not in self.ignored)
        return replace(report, failures=kept)

    def _one_fix(self, report: Report) -> Generator[Step, None, Fix | None]:
        """Try the first suspects in order; give the first whole fix, or the best partial one."""
        best: Fix | None = None
        suspected = suspects(self.tree, self.plan, report, self.only)[: blame.MOST]
        try:
            for left, suspect in zip(range(len(suspected), 0, -1), suspected, strict=True):
                yield Trying(suspect)
                until = self.budget.seconds_left() * (1 - 1 / left)
                fix = yield from self._try(suspect, report, until)
                if fix is not None and (best is None or len(fix.fixes) > len(best.fixes)):
                    best = fix
                if (fix is not None and fix.is_whole) or self._is_over():
                    break
        finally:
            self.fixes += [best] if best is not None else []
        if best is not None:
            yield best
        return best

    def _is_over(self) -> bool:
        if self.budget.seconds_left() > 0:
            return False
        self.stopped = f"The budget of {self.budget.seconds:g} seconds is spent."
        return True

    def _try(
        self, suspect: Suspect, report: Report, until: float
    ) -> Generator[Step, None, Fix | None]:
        """Let the loop work on one function; if that breaks other tests, once more with those."""
        task = self._open(suspect)
        if task is None:
            return None
        tests, start = suspect.tests, start_of(task)
        for _ in range(2):
            best = yield from self._loop(task, tests, start, until)
            if best is None or not best.code or best.number == 0 or best.verdict.forged:
                return None
            fixes = tuple(j.case.name for j in best.verdict.judged if j.result.passed)
            if not fixes:
                return None
            fix = Fix(suspect, task.real, best.file, fixes, verified=False, run=self.run_id)
            if self.budget.seconds_left() <= 0:
                return fix
            whole = self._whole(best.file, suspect.path)
            broke = tuple(name for name in whole.names if is_new(name, report))
            fixes = tuple(name for name in report.names if is_mended(name, whole))
            if not broke and not whole.trouble:
                return replace(fix, fixes=fixes, verified=True) if fixes else None
            yield Broke(broke)
            tests, start = (*tests, *broke), replace(best, number=0, verdict=Verdict())
        return None

    def _open(self, suspect: Suspect) -> Suspected | None:
        """Take a suspect as a task; one that cannot be read is passed over."""
        try:
            if self.plan.kind == "cargo":
                return rust_code.open_in(self.tree, suspect.path, suspect.line)
            if suspect.failing == 0:
                return culprit.open_broken(self.tree, suspect.path, self.own_tests)
            return culprit.open_in(
                self.tree, suspect.path, suspect.name, suspect.line, self.own_tests
            )
        except UsageProblem:
            return None

    def _whole(self, file: bytes, path: str) -> Report:
        """Run the whole suite on a version."""
        changed = self.tree.with_file(path, file)
        return self.without_ignored(
            self.sandbox.test(changed, self.plan, Request(), self.suite_seconds)
        )

    # ------------------------------------------------------------ one run of the loop

    def _loop(
        self, task: Suspected, tests: tuple[str, ...], start: Attempt | None, until: float
    ) -> Generator[Step, None, Attempt | None]:
        """Run the product's loop with the failing tests as what judges; give the best attempt."""
        with RunLog(self.home) as log:
            self.run_id = log.id
            run = self._run(task, tests, start, log)
            self.watch(run)
            outcome = solving.Outcome("failed", run)
            for event in solving.solve(run, log, self.budget, outcome):
                yield event
                if run.best is not None and run.best.verdict.trusted_pass:
                    break  # own tests never outvote the project's
                if self.budget.seconds_left() <= until:
                    break
        return run.best

    def _run(
        self, task: Suspected, tests: tuple[str, ...], start: Attempt | None, log: RunLog
    ) -> Run:
        evaluator = Evaluator(
            self.sandbox, self.tree, self.plan, str(task.path), task.own_file, tests,
            self.budget, self.suite_seconds, self.hung,
        )  # fmt: skip
        log.begin(
            task={
                "id": task.id,
                "name": task.name,
                "path": str(task.path),
                "language": task.language,
            },
            parameters={"tests": list(tests), "settings": self.settings},
            original=task.real,
        )
        ask = self._ask(task, log)
        rules = self.settings.rules
        suite = replace(rules.suite, own=self.own_tests, distrust_examples=True)
        return Run(
            ask,
            evaluator,
            Memory(self.settings.window),
            replace(rules, suite=suite),
            evaluator.user,
            start,
        )

    def _ask(self, task: Suspected, log: RunLog) -> Ask:
        def masked(model: Model) -> MaskedModel:
            return MaskedModel(LoggedModel(model, log.answer), self.mask)

        return solving.ask_of(task, self.settings, self.models, masked)


def start_of(task: Suspected) -> Attempt | None:
    """Begin with the code as it stands, if there is any."""
    if task.unfinished:
        return None
    return Attempt(0, task.old_body, task.real, Verdict(), note="as it stands")


def is_new(test: str, before: Report) -> bool:
    """Whether a failure is a new one, not one in a file that could not be loaded before."""
    if cargo.BUILD in before.names:
        return False  # nothing at all could be run before
    return test not in before.names and test.partition("::")[0] not in before.names


def is_mended(test: str, whole: Report) -> bool:
    """Whether a test that failed passes now; for a file that was not loaded, all that is in it."""
    if test == cargo.BUILD:
        return test not in whole.names and not whole.trouble
    failed = any(name == test or name.startswith(test + "::") for name in whole.names)
    return not failed and any(n == test or n.startswith(test + "::") for n in whole.passed)


def suspects(tree: Tree, plan: Plan, report: Report, only: tuple[str, ...] = ()) -> list[Suspect]:
    """List who may be at fault: what keeps a file from being Python first, then what tests ran."""
    if plan.kind == "cargo" and cargo.BUILD in report.names:
        return uncompiled(tree, plan, report, only)
    unloaded = tuple(r.name for r in report.failures if is_no_python(r.message))
    code = [p for p in tree.files if p.endswith(".py") and p not in plan.tests]
    found = []
    for path, error in culprit.unparsable(tree, code) if unloaded else ():
        task = culprit.open_broken(tree, path)
        if task is not None and (not only or path in only):
            line = error.lineno or 1
            found.append(Suspect(path, task.name, line, unloaded))
    return [*found, *blame.suspects(tree, plan, report, only)]


def uncompiled(tree: Tree, plan: Plan, report: Report, only: tuple[str, ...]) -> list[Suspect]:
    """Name the one function that all errors of the compiler lie in; none if it is not one."""
    places = blame.Places(tree, frozenset(plan.tests), only)
    found = {places.find(function) for function in report.evidence.get(cargo.BUILD, ())}
    if len(found) != 1 or (place := found.pop()) is None:
        return []
    return [Suspect(place.path, place.name, place.line, (cargo.BUILD,))]


def is_no_python(message: str) -> bool:
    return any(name in message for name in ("SyntaxError", "IndentationError", "TabError"))
