"""Options that commands share, and what is made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from reflexfix.assemble import ModelChoice
    from reflexfix.attempt import Limits
    from reflexfix.solving import Settings

F = TypeVar("F", bound=Callable[..., Any])


def option(name: str, *more: str, **rest: Any) -> Callable[[F], F]:
    """Make an option with an environment variable of the same name."""
    variable = "REFLEXFIX_" + name.lstrip("-").replace("-", "_").upper()
    envvar = rest.pop("envvar", variable)
    return click.option(name, *more, envvar=envvar, show_envvar=False, **rest)


def model_options(command: F) -> F:
    """Add the options that say which model answers."""
    for one in reversed(
        [
            option(
                "--model", default="", metavar="NAME", help="Model, or a .gguf file to run here."
            ),
            option("--test-model", default="", metavar="NAME", help="Another model for the tests."),
            option(
                "--reflect-model", default="", metavar="NAME", help="Another model for the lessons."
            ),
            option(
                "--base-url",
                default="",
                metavar="URL",
                envvar=["REFLEXFIX_BASE_URL", "OPENAI_BASE_URL"],
                help="Endpoint that speaks the OpenAI protocol; its key is OPENAI_API_KEY.",
            ),
        ]
    ):
        command = one(command)
    return command


def language_option(command: F) -> F:
    """Add the option that says which language's image is meant."""
    languages = click.Choice(["python", "rust"])
    return option(
        "--language", type=languages, default="python", show_default=True, help="Whose image."
    )(command)


def limit_options(command: F) -> F:
    """Add the limits of one evaluation; `[tool.reflexfix.sandbox]` sets them too."""
    for name, kind, default, text in reversed(LIMITS):
        more = {"type": kind, "default": default, "show_default": True, "help": text}
        command = option(name, **more)(command)
    return command


LIMITS: list[tuple[str, Any, Any, str]] = [
    ("--test-seconds", click.FloatRange(0.1), 10.0, "Seconds of one test at most."),
    ("--total-seconds", click.FloatRange(0.1), 20.0, "Seconds of all tests of a try at most."),
    ("--compile-seconds", click.FloatRange(0.1), 20.0, "Seconds of one compilation (Rust)."),
    ("--memory-mb", click.IntRange(64), 512, "Memory of the container."),
    ("--processes", click.IntRange(16), 64, "Processes and threads in the container."),
    ("--cpus", click.FloatRange(0.1), 1.0, "Processors of the container."),
    ("--output-bytes", click.IntRange(1), 2**20, "What a test may print."),
    ("--file-mb", click.IntRange(1), 16, "Largest file that can be written."),
    ("--tmp-mb", click.IntRange(1), 64, "Size of /tmp in the container."),
    ("--tmp-files", click.IntRange(64), 4096, "Files in /tmp of the container."),
]


def loop_options(command: F) -> F:
    """Add the options that steer the loop; `solve` and `batch` share them."""
    after = [option(name, **more) for name, more in ASKING]
    before = [option(name, **more) for name, more in LOOP]
    for one in reversed([*before, model_options, *after]):
        command = one(command)
    return command


def shown(default: Any, text: str, kind: Any = None) -> dict[str, Any]:
    """Describe an option whose default stands in the help."""
    return {"default": default, "show_default": True, "help": text or None, "type": kind}


LOOP: list[tuple[str, dict[str, Any]]] = [
    ("--trials", shown(4, "Attempts in all.", click.IntRange(1, 50))),
    ("--window", shown(1, "Lessons in sight.", click.IntRange(1, 3))),
    ("--memory", shown("both", "What a try is told of the failure before it.",
                       click.Choice(["none", "transcript", "lesson", "both"]))),
    ("--differences/--no-differences", shown(True, "Say in words how values differ.")),
    ("--values/--no-values", shown(False, "Tell with which values a failing call ended.")),
    ("--restart", shown("auto", "When a try does not see the old code.",
                        click.Choice(["never", "stuck", "always", "auto"]))),
    ("--agreement/--no-agreement", shown(True, "Independent answers outvote own tests.")),
    ("--mutants", shown(6, "Wrong versions that the tests are tried on; 0 for none.",
                        click.IntRange(0, 50))),
    ("--more-tests/--no-more-tests", shown(True, "Ask for tests that notice a wrong version "
                                           "where none does.")),
    ("--last", {"is_flag": True, "help": "The last attempt is the answer, as in the paper; not "
                "the best."}),
    ("--test-count", shown(6, "Own tests at most.", click.IntRange(1, 6))),
    ("--derive/--no-derive", shown(False, "Have values of own tests worked out step by step.")),
]  # fmt: skip

ASKING: list[tuple[str, dict[str, Any]]] = [
    ("--temperature", shown(0.0, "", click.FloatRange(0, 2))),
    ("--seed", shown(0, "", int)),
    ("--answer-tokens", shown(1024, "Length of one answer at most.", click.IntRange(16))),
    ("--max-tokens", {"type": click.IntRange(1), "help": "Tokens of the whole run at most."}),
    ("--max-seconds", {"type": click.FloatRange(1), "help": "Seconds of the whole run at most."}),
    ("--context-tokens", shown(2000, "Tokens of the file that the model is shown.",
                               click.IntRange(100))),
]  # fmt: skip


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Gather the options that steer a run."""
    from reflexfix.rules import Rules
    from reflexfix.solving import Settings
    from reflexfix.suite import SuiteRules

    suite = SuiteRules(
        own=options["own_tests"] or not options["tests_file"],
        most_own=options["test_count"],
        distrust_examples=options["distrust_examples"],
        derive=options["derive"],
        watch=options["values"],
    )
    return Settings(
        rules=Rules(
            trials=options["trials"],
            told="transcript" if options["no_reflection"] else options["memory"],
            restart=options["restart"],
            agreement=options["agreement"],
            differences=options["differences"],
            more_tests=options["more_tests"],
            last=options["last"],
            mutants=options["mutants"],
            test=not options["no_tests"],
            suite=suite,
        ),
        limits=limits_of(options),
        window=options["window"],
        temperature=options["temperature"],
        seed=options["seed"],
        answer_tokens=options["answer_tokens"],
        context_tokens=options["context_tokens"],
        hint=options["hint"],
        plain=options.get("plain", False),
    )


def limits_of(options: Mapping[str, Any]) -> Limits:
    """Gather the limits of one evaluation."""
    from dataclasses import fields

    from reflexfix.attempt import Limits

    given = {field.name: options[field.name] for field in fields(Limits) if field.name in options}
    chosen = Limits(**given)
    return chosen.with_test_seconds(options["test_seconds"])


def model_choice(options: Mapping[str, Any]) -> ModelChoice:
    from reflexfix.assemble import ModelChoice

    return ModelChoice(
        model=options["model"],
        test_model=options["test_model"],
        reflect_model=options["reflect_model"],
        base_url=options["base_url"],
        key=os.environ.get("OPENAI_API_KEY", ""),
    )


def public(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give the options as the artefact keeps them: no credentials."""
    from reflexfix import runlog

    return {**options, "base_url": runlog.masked(options["base_url"])}


def table_of(ctx: click.Context) -> Mapping[str, Any]:
    """Give what pyproject.toml sets, as `main` read it."""
    table: Mapping[str, Any] = ctx.find_root().obj or {}
    return table
