"""What a person sees of a run: lines on standard error, and on a terminal a sign of life."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from reflexfix import feedback
from reflexfix.agreement import Aside
from reflexfix.attempt import MEANING, Attempt, Label, Verdict
from reflexfix.loop import Event, Run
from reflexfix.memory import Lesson
from reflexfix.mutation import Gate
from reflexfix.rules import Stopped
from reflexfix.suite import SuiteReport

_CONTROL = {n: f"\\x{n:02x}" for n in [*range(32), 127, *range(128, 160)] if n not in (9, 10)}


def safe(text: str) -> str:
    """Escape control characters: what a model or a program wrote must not drive the terminal."""
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode("utf-8")


class Moving:
    """A line that tells what is going on, for how long, and that something arrives."""

    def __init__(self, received: Callable[[], int]) -> None:
        self.received = received
        self.doing = ""
        self.since = time.monotonic()
        self.before = 0
        self.spinner = Spinner("dots")

    def start(self, doing: str) -> None:
        self.doing, self.since, self.before = doing, time.monotonic(), self.received()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tokens = self.received() - self.before
        seconds = time.monotonic() - self.since
        some = f", {tokens} tokens" if tokens else ""
        self.spinner.update(text=Text(f"{self.doing} ({seconds:.0f} s{some})", style="dim"))
        yield self.spinner


class Display:
    """Prints the story of a run as it happens."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.quiet = quiet
        self.moving: Moving | None = None

    def say(self, line: str, style: str = "") -> None:
        """Print one line, unless the run is quiet."""
        if not self.quiet:
            self.console.print(Text(safe(line), style=style))

    @contextlib.contextmanager
    def live(self, received: Callable[[], int]) -> Iterator[None]:
        """Show a moving line below what is printed, on a terminal only."""
        if self.quiet or not self.console.is_terminal:
            yield
            return
        self.moving = Moving(received)
        with Live(self.moving, console=self.console, transient=True, refresh_per_second=8):
            yield
        self.moving = None

    def doing(self, what: str) -> None:
        if self.moving is not None:
            self.moving.start(what)

    # ------------------------------------------------------------ events

    def event(self, event: Event, run: Run) -> None:
        """Print what happened, and set what is going on next."""
        if isinstance(event, SuiteReport):
            self.suite(event)
        elif isinstance(event, Attempt):
            self.attempt(event, run)
        elif isinstance(event, Lesson):
            self.say(f"lesson: {event.text}", "cyan")
            self.doing("asking for a better body")
        elif isinstance(event, Aside):
            shown = " ".join(event.case.shown.split())[:90]
            self.say(f"put aside: {shown} ({event.why})", "yellow")
        elif isinstance(event, Gate) and not event.holds:
            self.say(f"the tests pass {event.tried} wrong versions of it too", "yellow")
        elif isinstance(event, Stopped):
            self.say(f"stopped: {event.why}", "yellow")

    def suite(self, report: SuiteReport) -> None:
        for line in suite_lines(report):
            self.say(line)
        self.doing("running the tests")

    def attempt(self, attempt: Attempt, run: Run) -> None:
        style = "green" if attempt.verdict.solved else ""
        self.say(f"trial {attempt.number}: {score(attempt.verdict)}", style)
        if attempt.note:
            self.say(f"  {attempt.note}", "yellow")
        for line in failure_lines(attempt.verdict):
            self.say(f"  {line}")
        self.doing("reflecting" if run.rules.reflect else "asking for a better body")


def suite_lines(report: SuiteReport) -> Iterator[str]:
    """Say how many tests there are, from where, and why the others were dropped."""
    if report.suite.user is not None:
        yield f"tests: {', '.join(report.suite.user.paths)}"
    if report.examples:
        plural = "s" if report.examples > 1 else ""
        yield f"tests: {report.examples} example{plural} in the docstring"
    if report.written:
        reasons: dict[str, int] = {}
        for one in report.dropped:
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
        why = ", ".join(f"{n} {reason}" for reason, n in reasons.items())
        what = "more tests" if report.further else "tests"
        yield f"{what}: {report.own} kept of {report.written}" + (f" ({why})" if why else "")
    elif report.suite.empty:
        yield "tests: none"


def score(verdict: Verdict) -> str:
    """Say in one line how many tests passed, and what is odd about it."""
    if verdict.problem:
        return verdict.problem.splitlines()[0]
    if verdict.forged:
        return "FORGED: a test that cannot hold was made to pass, so nothing counts"
    if not verdict.judged:
        return "not tested"
    passed, total = len(verdict.counted) - len(verdict.failures), len(verdict.counted)
    inside = sum(j.result.mode == "in-process" for j in verdict.judged)
    notes = [f"{inside} in-process"] if inside else []
    notes += ["control: none"] if verdict.control == "none" and verdict.solved else []
    return f"{passed} of {total} passed" + (f" ({', '.join(notes)})" if notes else "")


def failure_lines(verdict: Verdict, most: int = 6) -> Iterator[str]:
    """Give the failing tests, one line each; the unstable ones are named too."""
    if verdict.problem:
        yield from verdict.problem.splitlines()[1:most]
        return
    for one in verdict.failures[:most]:
        yield ("example " if one.case.origin == "example" else "") + feedback.brief(one)
    if len(verdict.failures) > most:
        yield f"and {len(verdict.failures) - most} more"
    for one in verdict.judged:
        if one.result.unstable:
            yield f"unstable, not counted: {' '.join(one.case.shown.split())[:90]}"


def last_line(label: Label, run: Run, trials: int, tokens: tuple[int, int], seconds: float) -> str:
    """Say what came of it: verdict, trials, tokens in and out, seconds."""
    meaning = MEANING[label]
    if run.best is not None and label == "unproven":
        meaning = unproven(run.best.verdict) or meaning
    used = f"{trials} trial{'s' if trials != 1 else ''}, {tokens[0]} tokens in and {tokens[1]} out"
    return f"{label}: {meaning} · {used}, {seconds:.1f} s"


def unproven(verdict: Verdict) -> str:
    """Tell apart what failed when all that is trusted passed."""
    if not verdict.trusted_pass:
        return ""
    trusted = (verdict.passed(trusted=True), verdict.total(trusted=True))
    own = (verdict.passed(trusted=False), verdict.total(trusted=False))
    return f"{trusted[0]} of {trusted[1]} examples pass, {own[0]} of {own[1]} own tests pass"
