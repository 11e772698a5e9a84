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
    for one in reversed(
        [
            option(
                "--trials",
                type=click.IntRange(1, 50),
                default=4,
                show_default=True,
                help="Attempts in all.",
            ),
            option(
                "--window",
                type=click.IntRange(1, 3),
                default=1,
                show_default=True,
                help="Lessons in sight.",
            ),
            option(
                "--memory",
                type=click.Choice(["none", "transcript", "lesson", "both"]),
                default="both",
                show_default=True,
                help="What a try is told of the failure before it.",
            ),
            option(
                "--restart",
                type=click.Choice(["never", "stuck", "always", "auto"]),
                default="auto",
                show_default=True,
                help="When a try does not see the old code.",
            ),
            option(
                "--agreement/--no-agreement",
                default=True,
                show_default=True,
                help="Independent answers outvote own tests.",
            ),
            option(
                "--mutants",
                type=click.IntRange(0, 50),
                default=6,
                show_default=True,
                help="Wrong versions that the tests are tried on; 0 for none.",
            ),
            option(
                "--last",
                is_flag=True,
                help="The last attempt is the answer, as in the paper; not the best.",
            ),
            option(
                "--test-count",
                type=click.IntRange(1, 6),
                default=6,
                show_default=True,
                help="Own tests at most.",
            ),
            model_options,
            option("--temperature", type=click.FloatRange(0, 2), default=0.0, show_default=True),
            option("--seed", type=int, default=0, show_default=True),
            option(
                "--answer-tokens",
                type=click.IntRange(16),
                default=1024,
                show_default=True,
                help="Length of one answer at most.",
            ),
            option("--max-tokens", type=click.IntRange(1), help="Tokens of the whole run at most."),
            option(
                "--max-seconds", type=click.FloatRange(1), help="Seconds of the whole run at most."
            ),
            option(
                "--context-tokens",
                type=click.IntRange(100),
                default=2000,
                show_default=True,
                help="Tokens of the file that the model is shown.",
            ),
        ]
    ):
        command = one(command)
    return command


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Gather the options that steer a run."""
    from reflexfix.rules import Rules
    from reflexfix.solving import Settings
    from reflexfix.suite import SuiteRules

    suite = SuiteRules(
        own=options["own_tests"] or not options["tests_file"],
        most_own=options["test_count"],
        distrust_examples=options["distrust_examples"],
    )
    return Settings(
        rules=Rules(
            trials=options["trials"],
            told="transcript" if options["no_reflection"] else options["memory"],
            restart=options["restart"],
            agreement=options["agreement"],
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
