"""Record which functions of the project a test runs, and where the value it judged came from."""

from __future__ import annotations

import bisect
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

TOOL = 4
"""One of the numbers that `sys.monitoring` leaves to tools without a name."""
MOST_RETURNS = 20_000
MOST_YIELDS = 200
MOST_PARTS = 8
SAMPLES = 5
"""How often a test that does not end is looked at before it is ended."""
MOST_FRAMES = 40

Returned = tuple[int, int, CodeType, Any]
"""When a call began, when it ended (numbers of events), what was called, what it gave."""


class Tracer:
    """Watches one process. `begin` and `end` enclose a test; `deep` keeps returned values too."""

    def __init__(self, folder: str) -> None:
        self.folder = folder + "/"
        self.mine: dict[CodeType, bool] = {}
        self.ran: dict[CodeType, None] = {}
        self.returned: list[Returned] = []
        self.open: list[tuple[int, CodeType]] = []
        self.yielded: dict[int, list[Any]] = {}
        self.clock = 0
        self.deep = False
        self.samples: list[list[CodeType]] = []
        self.seen: list[Any] = []
        """Both sides of the comparison that did not hold."""
        self.told: Callable[[list[CodeType]], None] | None = None
        """Told of the calls that are open whenever a function begins for the first time.

        Where a test hangs in one long step of the interpreter, nothing else can be told of it.
        """
        self.watching = 0
        self.monitoring: Any = vars(sys)["monitoring"]  # there since Python 3.12
        self.install()

    def install(self) -> None:
        """Hook into the interpreter. Python 3.12 has what this needs."""
        watch, event = self.monitoring, self.monitoring.events
        watch.use_tool_id(TOOL, "reflexfix")
        for which, heard in (
            (event.PY_START, self.started),
            (event.PY_RESUME, self.started),
            (event.PY_THROW, self.thrown),
            (event.PY_RETURN, self.gave),
            (event.PY_YIELD, self.gave_one),
            (event.PY_UNWIND, self.left),
        ):
            watch.register_callback(TOOL, which, heard)

    def begin(self, deep: bool) -> None:
        """Forget what was, and watch."""
        event = self.monitoring.events
        self.ran, self.returned, self.open = {}, [], []
        self.yielded, self.samples, self.seen = {}, [], []
        self.deep, self.clock = deep, 0
        more = event.PY_RESUME | event.PY_THROW | event.PY_RETURN | event.PY_YIELD | event.PY_UNWIND
        self.monitoring.set_events(TOOL, event.PY_START | (more if deep else 0))
        self.monitoring.restart_events()

    def end(self) -> None:
        self.monitoring.set_events(TOOL, 0)

    # ------------------------------------------------------------ what the interpreter tells

    def is_mine(self, code: CodeType) -> bool:
        known = self.mine.get(code)
        if known is None:
            known = self.mine[code] = code.co_filename.startswith(self.folder)
        return known

    def started(self, code: CodeType, _offset: int) -> Any:
        if not self.is_mine(code):
            return self.monitoring.DISABLE
        is_new = code not in self.ran
        self.ran[code] = None
        if not self.deep:
            return self.monitoring.DISABLE
        self.clock += 1
        self.open.append((self.clock, code))
        if is_new and self.told is not None:
            self.told([one for _, one in self.open[-MOST_FRAMES:]])
        return None

    def thrown(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if self.is_mine(code):
            self.clock += 1
            self.open.append((self.clock, code))

    def gave(self, code: CodeType, _offset: int, value: Any) -> Any:
        if not self.is_mine(code):
            return self.monitoring.DISABLE
        if code.co_flags & 0x20:  # a generator: what it gave one by one is what it gave
            value = self.yielded.pop(id(sys._getframe(1)), [])
        self._close(code, value)
        return None

    def gave_one(self, code: CodeType, _offset: int, value: Any) -> Any:
        if not self.is_mine(code):
            return self.monitoring.DISABLE
        items = self.yielded.setdefault(id(sys._getframe(1)), [])
        if len(items) < MOST_YIELDS:
            items.append(value)
        if self.open:
            self.open.pop()
        return None

    def left(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if self.is_mine(code) and self.open:
            self.open.pop()

    def _close(self, code: CodeType, value: Any) -> None:
        self.clock += 1
        began = self.open.pop()[0] if self.open else self.clock
        self.returned.append((began, self.clock, code, value))
        if len(self.returned) > MOST_RETURNS:
            del self.returned[: MOST_RETURNS // 2]

    # ------------------------------------------------------------ what can be said of a test

    def flow(self, test: Callable[[CodeType], bool]) -> list[CodeType]:
        """Follow the value that the test judged to the call that made it, outermost call first.

        Where the test compared, it is either side of the comparison; else what the last call
        that it made gave back. `test` tells the code of tests from that of the project.
        """
        returns = [r for r in self.returned if not test(r[2])]
        outer = outermost(returns)
        with contextlib.suppress(Exception):  # comparing values runs the project's own code
            for value in self.seen:
                for one in reversed(outer):
                    if same(one[3], value):
                        return chain(one, returns, self.seen)
            for one in outer[-1:]:
                return chain(one, returns, self.seen)
        return []

    def hanging(self) -> list[CodeType]:
        """Give the calls that every look at a test that does not end has found open."""
        if not self.samples:
            return []
        common = self.samples[0]
        for sample in self.samples[1:]:
            pairs = zip(common, sample, strict=False)
            until = next((n for n, (a, b) in enumerate(pairs) if a is not b), None)
            shorter = min(len(common), len(sample))
            common = common[: shorter if until is None else until]
        return common

    def look(self, frame: FrameType | None) -> None:
        """Note which calls are open, the outermost first."""
        calls = []
        while frame is not None:
            if self.is_mine(frame.f_code):
                calls.append(frame.f_code)
            frame = frame.f_back
        self.samples.append(calls[::-1])

    def watch(self, main: int, until: float, say: Callable[[], None]) -> None:
        """Look at a thread several times before its test is ended; run in a thread of its own."""
        number = self.watching
        for step in range(SAMPLES):
            time.sleep(max(0.0, until - time.monotonic()) / (SAMPLES - step + 1))
            if number != self.watching:
                return
            self.look(sys._current_frames().get(main))
        say()


def outermost(returns: list[Returned]) -> list[Returned]:
    """Give the calls that lie in no other call, in the order in which they ended."""
    found: list[Returned] = []
    for one in returns:
        while found and found[-1][0] > one[0]:
            found.pop()
        found.append(one)
    return found


def chain(top: Returned, returns: list[Returned], seen: list[Any]) -> list[CodeType]:
    """List the calls through which a value went, from the outermost to the one that made it."""
    found, current, others = [top[2]], top, list(seen)
    while len(found) < MOST_RETURNS:
        value = current[3]
        following = next((r for r in inside(current, returns) if same(r[3], value)), None)
        if following is None:
            inner = list(inside(current, returns))[::-1]
            following, others = part(current, outermost(inner), others)
        if following is None:
            break
        current = following
        found.append(current[2])
    return found[-MOST_FRAMES:]


def inside(call: Returned, returns: list[Returned]) -> Iterator[Returned]:
    """Give the calls that lie in a call, the last first: they ended just before it did."""
    place = bisect.bisect_left(returns, call[1], key=lambda one: one[1])
    for one in reversed(returns[:place]):
        if one[0] < call[0]:
            return
        yield one


def part(
    whole: Returned, inner: list[Returned], others: list[Any]
) -> tuple[Returned | None, list[Any]]:
    """Where a value was put together from what calls gave, find the one that gave the wrong part.

    That is known where the test compared the whole with something of the same shape.
    """
    for items, other in ((whole[3], other) for other in others):
        if type(items) is not type(other) or not isinstance(items, tuple | list | dict):
            continue
        keys = list(items) if isinstance(items, dict) else list(range(len(items)))
        if len(items) != len(other) or not 0 < len(keys) <= MOST_PARTS or items is other:
            continue
        sources = {key: source(items[key], inner) for key in keys}
        if sum(one is not None for one in sources.values()) * 2 <= len(keys):
            continue
        for key in keys:
            if sources[key] is not None and not same(items[key], other[key]):
                return sources[key], [other[key]]
    return None, []


def source(value: Any, returns: list[Returned]) -> Returned | None:
    return next((r for r in reversed(returns) if same(r[3], value)), None)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one object, or equal plain values of one type."""
    if one is other:
        return True
    return type(one) is type(other) and type(one) in PLAIN and bool(one == other)


PLAIN = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


def went_through(tracer: Tracer, trace: TracebackType | None) -> list[CodeType]:
    """List the project's calls that an exception passed, the outermost first."""
    found: list[CodeType] = []
    while trace is not None:
        if tracer.is_mine(trace.tb_frame.f_code):
            found.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    return found[-MOST_FRAMES:]


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an exception and what it was raised from, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
