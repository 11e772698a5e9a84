"""The values that a failing call ended with: told where that is asked for, and judging nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reflexfix import feedback
from reflexfix.attempt import Candidate, Case, Suite, Verdict
from reflexfix.containers.sandbox import ContainerSandbox

pytestmark = pytest.mark.container
SUITE = Suite((Case("own 1", "assert f(4) == 6", "assert f(4) == 6", "own"),), watch=True)


def judged(sandbox: ContainerSandbox, code: str, suite: Suite = SUITE) -> Verdict:
    file = code.encode()
    stub = b"def f(n):\n    ...\n"
    return sandbox.run(Candidate({"m.py": file}, "m", "f", stub_files={"m.py": stub}), suite)


SUM = "def f(n):\n    total = 0\n    for i in range(n - 1):\n        total += i\n    return total\n"


def test_a_call_that_gives_a_wrong_value_tells_its_values(sandbox: ContainerSandbox) -> None:
    verdict = judged(sandbox, SUM)
    assert verdict.judged[0].result.values == "at `return total`: n = 4, total = 3, i = 2"
    assert "the call ended at `return total`: n = 4, total = 3" in feedback.failures(verdict)


def test_it_is_not_told_unless_asked_for(sandbox: ContainerSandbox) -> None:
    verdict = judged(sandbox, SUM, replace(SUITE, watch=False))
    assert verdict.judged[0].result.values == "" and "ended" not in feedback.failures(verdict)


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("def f(n):\n    d = {}\n    return d[n]\n", "at `return d[n]`: n = 4, d = {}"),
        ("def f(n):\n    if n == 0:\n        return 0\n    m = n - 1\n    return f(m) + 1\n",
         "at `return f(m) + 1`: n = 4, m = 3"),
        ("import functools\n@functools.lru_cache\ndef f(n):\n    k = n\n    return k\n",
         "at `return k`: n = 4, k = 4"),
        ("def f(n):\n    s = 'x' * 100\n    return s\n",
         "at `return s`: n = 4, s = '" + "x" * 56 + "..."),
        ("class R:\n    def __repr__(self):\n        raise ValueError\n\ndef f(n):\n    r = R()\n"
         "    return 1\n", "at `return 1`: n = 4, r = <R, whose repr raised ValueError>"),
        ("f = len\n", ""),
    ],
)  # fmt: skip
def test_every_kind_of_end_is_told(code: str, values: str, sandbox: ContainerSandbox) -> None:
    assert judged(sandbox, code).judged[0].result.values == values


def test_what_a_candidate_says_of_its_values_changes_no_verdict(sandbox: ContainerSandbox) -> None:
    code = "import sys\ndef f(n):\n    sys.settrace(None)\n"
    code += "    print('\\x1evalues: all is well')\n    return 1\n"
    verdict = judged(sandbox, code)
    assert not verdict.solved and "all is well" in verdict.judged[0].result.values


def test_a_candidate_that_sees_that_it_is_watched_gains_nothing(sandbox: ContainerSandbox) -> None:
    code = "import sys\ndef f(n):\n    return 6 if sys.gettrace() else 1\n"
    verdict = judged(sandbox, code)
    assert verdict.judged[0].result.status == "failed"
    assert not verdict.judged[0].result.unstable and not verdict.solved
