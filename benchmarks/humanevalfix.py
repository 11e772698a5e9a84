"""How many of HumanEvalFix's buggy functions the hook turns into correct patches.

    python benchmarks/humanevalfix.py HUMANEVALPACK_PYTHON_JSONL [--real] [--seconds S]
        [--skip N] [--every N] [--limit N]

Each task is a little git repository: the buggy function in one file, its tests in a pytest file.
What is staged is tested, the fault is looked for, and the loop works on it as in a commit. Without
`--real` the answers are scripted: the reference, whichever function is asked for. With it the model
is the one that the environment names (OPENAI_BASE_URL), else the embedded one. A patch is correct
when `git apply` takes it, it is not partial, and the tests, run once more on the patched work tree,
all pass. Prints a line a task, and the sums.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from endpoint import Endpoint, Reply, handler

from reflexfix import assemble, solving
from reflexfix.assemble import ModelChoice
from reflexfix.hook import environment, git, patch, repair, runner, settings, tree, work
from reflexfix.hook import plan as plans
from reflexfix.hook.environment import Need
from reflexfix.hook.runner import ProjectSandbox
from reflexfix.model import Budget
from reflexfix.rules import Rules

Row = dict[str, Any]


def tests_of(row: Row) -> str:
    """Turn the task's own check into a pytest file."""
    body = re.sub(rf"^check\({row['entry_point']}\)\s*$", "", row["test"], flags=re.MULTILINE)
    call = f"\n\ndef test_it():\n    check({row['entry_point']})\n"
    return f"from solution import *\n\n{body.strip()}\n{call}"


def repository(folder: Path, row: Row) -> git.Repository:
    """Make a repository with the buggy function staged."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    (folder / "solution.py").write_text(row["prompt"] + row["buggy_solution"])
    (folder / "test_solution.py").write_text(tests_of(row))
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True)
    found = git.find(folder)
    assert found is not None
    return found


class Script:
    """Answers with the reference of the task that is being worked on."""

    def __init__(self) -> None:
        self.row: Row = {}

    def __call__(self, question: str, _body: Any) -> Reply:
        if question == "reflect":
            return Reply("The code does not do what its docstring says.")
        code = self.row["prompt"] + self.row["canonical_solution"]
        return Reply(f"```python\n{code}\n```")


@contextmanager
def scripted(script: Script) -> Iterator[str]:
    endpoint = Endpoint(script, ["reference"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(endpoint))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def one(
    row: Row, sandbox: ProjectSandbox, opener: Callable[[Budget], Any], seconds: float
) -> tuple[str, work.Outcome, Budget]:
    """Work on one task; say what came of it."""
    with tempfile.TemporaryDirectory(prefix="reflexfix-fix-") as name:
        folder = Path(name)
        repo = repository(folder, row)
        found = tree.staged(repo)
        chosen, limits = settings.of_tree(found)
        project = work.Project(
            found, folder, folder / ".reflexfix", chosen, limits, plans.plan(found), Need()
        )
        outcome, budget = work.Outcome(), Budget(None, seconds)
        work.test(project, sandbox, outcome)
        if not outcome.failing:
            return f"no test fails ({outcome.report.trouble})", outcome, budget
        seen = work.look(project, sandbox, outcome)
        if outcome.flaky:
            return "flaky", outcome, budget
        budget = Budget(None, seconds)
        steps = repair.repair(
            project, sandbox, seen, solving.Settings(Rules(mutants=0), limits), budget, opener,
            outcome, lambda _run: None,
        )  # fmt: skip
        for _ in steps:
            pass
        return checked(outcome, project, sandbox, repo), outcome, budget


def checked(
    outcome: work.Outcome, project: work.Project, sandbox: ProjectSandbox, repo: git.Repository
) -> str:
    """Apply the patch with git, and run the tests on what lies there then."""
    made = outcome.patch
    if made is None:
        return "no patch"
    if made.partial:
        return "partial"
    kept = patch.save(project.home, made)
    applied = subprocess.run(["git", "apply", str(kept)], cwd=project.top, capture_output=True)
    if applied.returncode:
        return f"git apply: {applied.stderr.decode().strip()[:100]}"
    after = tree.on_disk(project.top, repo)
    report = sandbox.test(after, project.plan, runner.Request(), 60.0)
    return "correct" if report.total and not report.failures else "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="Take each N-th task.")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.data.read_text("utf-8").splitlines()]
    rows = rows[options.skip :: options.every][: options.limit]
    engine = assemble.engine()
    for step in environment.prepare(engine, Need(), Path.cwd()):
        print(step)
    image = environment.ready(engine, Need())
    script, ends, spent = Script(), [], []
    limits = settings.roomy(settings.PROJECT)
    with scripted(script) as url, ProjectSandbox(engine, image, limits, pool=1) as sandbox:
        choice = ModelChoice(base_url=url)
        if options.real:
            base_url = os.environ.get("OPENAI_BASE_URL", "")
            choice = ModelChoice(base_url=base_url, key=os.environ.get("OPENAI_API_KEY", ""))
        for row in rows:
            script.row, began = row, time.monotonic()
            end, outcome, budget = one(
                row, sandbox, lambda b: assemble.models(choice, b, print), options.seconds
            )
            taken = time.monotonic() - began
            ends.append(end)
            spent.append(taken)
            first = outcome.tried[0].name if outcome.tried else "-"
            tokens = f"{budget.spent_prompt} tokens in and {budget.spent_answer} out"
            print(f"{row['task_id']} {row['entry_point']}: {end} "
                  f"(tried {len(outcome.tried)}, first {first}, {tokens}, {taken:.1f} s)",
                  flush=True)  # fmt: skip
    print(f"correct patches: {ends.count('correct')} of {len(rows)}")
    print(f"seconds: median {statistics.median(spent):.1f}, longest {max(spent):.1f}")
    for other in sorted(set(ends) - {"correct"}):
        print(f"  {other}: {ends.count(other)}")


if __name__ == "__main__":
    main()
