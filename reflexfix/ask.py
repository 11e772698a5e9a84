"""The four questions that a model is asked: write tests, implement, reflect, improve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from string import Template
from typing import Literal

from reflexfix import assets, feedback
from reflexfix.attempt import Attempt
from reflexfix.memory import Lesson, Memory
from reflexfix.model import Answer, Model, Question, Request
from reflexfix.task import Task

Told = Literal["none", "transcript", "lesson", "both"]
"""What a try is told of the failure before it: nothing, what failed, the lesson, or both."""

WARMER = 0.8
"""The temperature of independent answers, and of a try after the same failing answer came twice."""
LESSON_TOKENS = 160
TEST_TOKENS = 64
"""The longest test that is worth waiting for; small models go on and on otherwise."""
DERIVED_TOKENS = 160
"""The same for a test with the way to its value."""
LESSON_CHARACTERS = 600


@dataclass(frozen=True)
class Ask:
    """Asks about one task. Actor, test writer and reflector may be different models."""

    task: Task
    actor: Model
    tester: Model
    reflector: Model
    temperature: float = 0.0
    seed: int = 0
    answer_tokens: int = 1024
    context_tokens: int = 2000
    test_count: int = 6
    shown: str = ""
    """Tests that came with the task, as text; the model sees them beside the target."""
    told: Told = "both"
    differences: bool = True
    """Say in words how the values that came differ from those that were expected."""
    derive: bool = False
    """Have each expected value of an own test worked out before its assert."""
    plain: bool = False
    """Ask for the first body in one sentence, as people do who have no program for it."""

    def warmer(self, number: int) -> Ask:
        """Ask at a higher temperature, by a seed of this number's own."""
        return replace(self, temperature=max(WARMER, self.temperature), seed=self.seed + number)

    def implement(self, memory: Memory, warmer: float | None = None) -> Answer:
        """Ask for the first body."""
        prompt = "plain" if self.plain else ""
        return self._ask("implement", self.actor, warmer, prompt, lessons=lessons(memory))

    def write_tests(self, again: bool = False) -> Answer:
        """Ask for unit tests; the second time, say that none of the first were usable."""
        note = assets.prompt(self.task.language, "again") if again else ""
        prompt = "derive_tests" if self.derive else ""
        count = str(self.test_count)
        return self._ask("write_tests", self.tester, None, prompt, count=count, note=note)

    def tell_apart(self, attempt: Attempt, versions: str) -> Answer:
        """Ask for tests that tell an answer from wrong versions of it, which pass all others."""
        return self._ask(
            "write_tests",
            self.tester,
            None,
            prompt="tell_apart",
            count=str(self.test_count),
            code=attempt.code,
            versions=versions,
        )

    def improve(self, attempt: Attempt, memory: Memory, warmer: float | None = None) -> Answer:
        """Ask for a better body than this attempt's, in the light of the lessons."""
        return self._ask(
            "improve",
            self.actor,
            warmer,
            code=attempt.code or "(no usable code)",
            failures=self._failures(attempt),
            lessons=lessons(memory),
        )

    def anew(self, attempt: Attempt, memory: Memory) -> Answer:
        """Ask for a body without the old code in sight, in the light of what it failed at."""
        failures = self._failures(attempt)
        return self._ask(
            "improve",
            self.actor,
            None,
            prompt="anew",
            failures=failures and f"{_MIND}\n\n{failures}",
            lessons=lessons(memory),
        )

    def _failures(self, attempt: Attempt) -> str:
        told = self.told in ("transcript", "both")
        return feedback.failures(attempt.verdict, self.differences) if told else ""

    def reflect(self, attempt: Attempt, memory: Memory, again: str = "") -> Lesson:
        """Ask what this attempt's failure teaches; `again` is a lesson that is known already."""
        note = f"This was said before and did not help: {again}\n" if again else ""
        answer = self._ask(
            "reflect",
            self.reflector,
            0.8 if again else None,
            code=attempt.code,
            failures=feedback.failures(attempt.verdict, self.differences) or _UNTESTED,
            lessons=known_lessons(memory),
            note=note,
        )
        return Lesson(
            text=lesson_text(answer.text),
            task=self.task.id,
            attempt=attempt.number,
            model=answer.model,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _ask(
        self,
        question: Question,
        model: Model,
        warmer: float | None,
        prompt: str = "",
        **fields: str,
    ) -> Answer:
        temperature = self.temperature if warmer is None else max(warmer, self.temperature)
        language = self.task.language
        scope = self.task.scope(self.context_tokens)
        if self.shown:
            scope += f"\n\n{_COMMENT[language]} These tests have to pass:\n{self.shown}"
        known = {"scope": scope, "name": self.task.name}
        system = _PLAIN_SYSTEM if prompt == "plain" else assets.prompt(language, "system").strip()
        return model.complete(
            Request(
                question=question,
                system=system,
                prompt=filled(assets.prompt(language, prompt or question), **known, **fields),
                temperature=temperature,
                seed=self.seed,
                answer_tokens=self._longest(question),
            )
        )

    def _longest(self, question: Question) -> int:
        """Say how long an answer to this question may be, in tokens."""
        if question == "reflect":
            return LESSON_TOKENS
        if question == "write_tests":
            longest = DERIVED_TOKENS if self.derive else TEST_TOKENS
            return min(self.answer_tokens, longest * (self.test_count + 1))
        return self.answer_tokens


_MIND = "Mind where an earlier try was wrong, and write what gives the expected values:"
_PLAIN_SYSTEM = "You are a helpful assistant."
_COMMENT = {"python": "#", "rust": "//"}
_UNTESTED = "(no test was run; judge by the task alone, and answer `done` if the code is right)"


def filled(template: str, **fields: str) -> str:
    """Fill in a prompt. Raises KeyError for a variable that nothing fills."""
    text = Template(template).substitute(fields)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.strip()


def lessons(memory: Memory) -> str:
    """List the lessons in sight, as the actor reads them."""
    found = [f"- {lesson.text}" for lesson in memory.in_sight()]
    return "\n".join(["Keep in mind:", *found]) if found else ""


def known_lessons(memory: Memory) -> str:
    """List all lessons so far, as the reflector reads them."""
    found = [f"- {lesson.text}" for lesson in memory.lessons]
    return "\n".join(["Lessons so far, not to be repeated:", *found]) if found else ""


def lesson_text(answer: str) -> str:
    """Keep the words of a reflection: no code, no heading, a bounded length."""
    kept, in_code = [], False
    for line in answer.strip().splitlines():
        if line.strip().startswith("```"):
            in_code = not in_code
        elif not in_code and line.strip():
            kept.append(line.strip().lstrip("#*- ").strip())
    text = " ".join(kept).removeprefix("Lesson:").strip()
    if len(text) <= LESSON_CHARACTERS:
        return text
    return text[:LESSON_CHARACTERS].rpartition(". ")[0] + "."
