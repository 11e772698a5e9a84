"""The nouns of the loop: a case, its result, a verdict, an attempt, and what judges them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

Origin = Literal["user", "example", "own"]
Mode = Literal["split", "in-process"]
Status = Literal[
    "passed", "failed", "error", "timeout", "memory", "output", "no-verdict", "skipped",
    "compile-error", "compile-timeout",
]  # fmt: skip
Control = Literal["held", "forged", "none"]
Label = Literal["verified", "likely", "weak", "unproven", "failed"]

SOLVED: tuple[Label, ...] = ("verified", "likely", "weak")
MEANING: Mapping[Label, str] = {
    "verified": "your tests pass",
    "likely": "all tests pass",
    "weak": "all tests pass, but they prove little",
    "unproven": "nothing proves it",
    "failed": "tests fail",
}


@dataclass(frozen=True)
class Limits:
    """What one evaluation may use."""

    test_seconds: float = 10.0
    total_seconds: float = 20.0
    compile_seconds: float = 20.0
    memory_mb: int = 512
    processes: int = 64
    cpus: float = 1.0
    output_bytes: int = 2**20
    file_mb: int = 16
    tmp_mb: int = 64
    tmp_files: int = 4096
    tmp_exec: bool = False
    """Whether code may be loaded from /tmp: what a compiler made has to lie somewhere."""

    def with_test_seconds(self, seconds: float) -> Limits:
        """Give each test this long, and the whole evaluation at least twice that."""
        return replace(
            self, test_seconds=seconds, total_seconds=max(self.total_seconds, 2 * seconds)
        )


@dataclass(frozen=True)
class Case:
    """One test of the target."""

    name: str
    source: str
    """Complete source: with the imports and the values that it needs."""
    shown: str
    """The same as people and the model should see it."""
    origin: Origin
    mode: Mode = "split"
    may_fall_back: bool = False
    """Whether the test uses the value in a way that only the object itself can answer."""
    entry: str = ""
    fixtures: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        return self.origin != "own"


@dataclass(frozen=True)
class Result:
    """What came of one case."""

    name: str
    status: Status
    mode: Mode = "split"
    seconds: float = 0.0
    expected: str | None = None
    actual: str | None = None
    compared: bool = False
    message: str = ""
    frames: tuple[str, ...] = ()
    printed: str = ""
    unstable: bool = False
    values: str = ""
    """Where the call ended, and with which values; only where that was asked for."""

    @property
    def passed(self) -> bool:
        return self.status == "passed"


@dataclass(frozen=True)
class Judged:
    """A case with its result."""

    case: Case
    result: Result

    @property
    def counts(self) -> bool:
        return not self.result.unstable and self.result.status != "skipped"


@dataclass(frozen=True)
class Verdict:
    """What all cases said of one candidate. Zero cases are never a pass."""

    judged: tuple[Judged, ...] = ()
    problem: str = ""
    """Why there was nothing to run: no usable code in the answer, or the import failed."""
    control: Control = "none"
    seconds: float = 0.0

    @property
    def counted(self) -> tuple[Judged, ...]:
        return tuple(j for j in self.judged if j.counts)

    @property
    def failures(self) -> tuple[Judged, ...]:
        return tuple(j for j in self.counted if not j.result.passed)

    @property
    def forged(self) -> bool:
        """Whether a test that cannot hold was said to hold; then nothing counts as passed."""
        return self.control == "forged"

    def passed(self, *, trusted: bool) -> int:
        """Count the passing cases of one class."""
        if self.forged:
            return 0
        return sum(j.result.passed for j in self.counted if j.case.trusted is trusted)

    def total(self, *, trusted: bool) -> int:
        return sum(j.case.trusted is trusted for j in self.counted)

    @property
    def solved(self) -> bool:
        """At least one test, every one of them passed, and none of it forged."""
        return bool(self.counted) and not self.failures and not self.forged and not self.problem

    @property
    def trusted_pass(self) -> bool:
        """Whether all that the user vouches for holds, and there is something of it."""
        total = self.total(trusted=True)
        return total > 0 and self.passed(trusted=True) == total and not self.problem

    def label(self) -> Label:
        """Say how much this verdict is worth.

        verified: the user's own test files pass. likely: examples of the docstring pass, or at
        least three own tests. weak: fewer. unproven: nothing to go by, or trusted tests pass
        and own ones do not. failed: the rest.
        """
        if not self.solved:
            return (
                "unproven" if self.trusted_pass or not (self.counted or self.problem) else "failed"
            )
        if any(j.case.origin == "user" for j in self.counted):
            return "verified"
        enough = self.total(trusted=True) > 0 or self.total(trusted=False) >= 3
        return "likely" if enough else "weak"

    def without(self, names: Set[str]) -> Verdict:
        """Give the same verdict without some of its cases."""
        return replace(self, judged=tuple(j for j in self.judged if j.case.name not in names))

    def rank(self) -> tuple[int, int]:
        """Order attempts: trusted tests first, then own ones."""
        return (self.passed(trusted=True), self.passed(trusted=False))

    def signature(self) -> tuple[tuple[str, str, str], ...]:
        """Say how it failed, so that the same failure is known again."""
        return tuple(
            (j.case.name, j.result.status, j.result.actual or j.result.message)
            for j in self.failures
        )


@dataclass(frozen=True)
class Attempt:
    """One trial: the code, the file with it, and what the tests said."""

    number: int
    code: str
    """The body with its helpers and imports, as read from the answer; "" if unreadable."""
    file: bytes
    """The user's whole file with this code in it."""
    verdict: Verdict
    seconds: float = 0.0
    note: str = ""
    """What to know beside the verdict: a cut-off answer, a raised temperature."""
    lessons: tuple[str, ...] = ()
    """Ids of the lessons that the answer was conditioned on."""
    answer: str = ""
    """The model's answer, word for word."""
    fresh: bool = False
    """Whether it was written without an earlier answer in sight."""


@dataclass(frozen=True)
class Candidate:
    """A program to be judged: files by path below the working folder, and what to call."""

    files: Mapping[str, bytes]
    module: str
    """Dotted name of the module that holds the target."""
    target: str
    """Dotted name of the target in its module."""
    is_async: bool = False
    stub_files: Mapping[str, bytes] = field(default_factory=dict)
    """The files as the user wrote them: what the test's side is made of."""
    edition: str = ""
    """The edition of a Rust crate."""
    place: tuple[str, int, int] = ("", 0, 0)
    """File, first and last line of the target as the user wrote it."""


@dataclass(frozen=True)
class UserTests:
    """A user's own test files, run as the user runs them."""

    files: Mapping[str, bytes]
    paths: tuple[str, ...]
    """What to run, below the working folder."""
    prefix: str = ""
    """Where the candidate's files lie, below the working folder."""
    roots: tuple[str, ...] = ()
    """Folders that are on the import path."""
    packages: tuple[str, ...] = ()
    """Modules from elsewhere that the tests need."""
    script: bool = False
    """A file of plain asserts that is run, not collected."""
    control: str = ""
    """Source of a test file that must fail; "" when none could be made."""
    cases: tuple[Case, ...] = ()
    """The tests one by one, where the language has no runner of the user's own."""


@dataclass(frozen=True)
class Suite:
    """All that a candidate is judged by."""

    cases: tuple[Case, ...] = ()
    user: UserTests | None = None
    control: Case | None = None
    """A test that must fail by its comparison with `control_value`."""
    control_value: str = ""
    watch: bool = False
    """Tell of a call that fails with which values it ended."""

    @property
    def empty(self) -> bool:
        return not self.cases and self.user is None

    def without(self, names: set[str]) -> Suite:
        return replace(self, cases=tuple(c for c in self.cases if c.name not in names))


@dataclass(frozen=True)
class Values:
    """What a reference solution gave: text to be kept as it is, or why there is none."""

    text: str = ""
    problem: str = ""
    seconds: float = 0.0


@runtime_checkable
class Oracle(Protocol):
    """A sandbox that can ask a reference solution for its values."""

    def values(self, candidate: Candidate, source: str) -> Values:
        """Run a program in the names of the candidate's module, and give the text that it leaves.

        Raises SandboxTrouble.
        """
        ...


class Sandbox(Protocol):
    """Whatever can judge a program that nobody trusts."""

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        """Judge the candidate. Raises SandboxTrouble when no verdict could be had."""
        ...

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        """Say which of these modules cannot be imported there."""
        ...


@runtime_checkable
class TypeChecker(Protocol):
    """A sandbox that can tell, before any candidate is there, which tests fit the signature."""

    def type_check(self, candidate: Candidate, cases: tuple[Case, ...]) -> dict[str, str]:
        """Name the cases that do not compile against the stub, with the reason."""
        ...

    def broken(self, candidate: Candidate) -> str:
        """Say what is wrong with a file elsewhere than in its target; "" when it compiles."""
        ...
