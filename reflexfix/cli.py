"""The commands. Only this module and `display` print; heavy imports wait until they are used."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from reflexfix import __version__
from reflexfix.errors import ReflexfixError, UsageProblem

if TYPE_CHECKING:
    from reflexfix.assemble import ModelChoice
    from reflexfix.attempt import Limits
    from reflexfix.solving import Outcome, Settings

F = TypeVar("F", bound=Callable[..., Any])
INTERRUPTED, INTERNAL = 130, 70


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


class Commands(click.Group):
    """Lists commands in the order in which a user meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reflexfix")
@click.option("--debug", is_flag=True, help="Show the traceback of an error; goes anywhere.")
def cli(debug: bool) -> None:
    """Write or repair one function: a model writes it, tests judge it in a sandbox,
    a failure becomes a lesson, and the next try knows it."""


# ---------------------------------------------------------------- solve


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@option("--function", metavar="NAME", help="Function to write, dotted for methods.")
@option(
    "--tests",
    "tests_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your own pytest or plain-assert file: trusted, never edited.",
)
@option("--own-tests", is_flag=True, help="Own tests of the model beside --tests.")
@option("--write", is_flag=True, help="Edit the file in place, if solved.")
@option("--write-unsolved", is_flag=True, help="Edit the file in place with the best attempt.")
@option("--diff", "as_diff", is_flag=True, help="Print a unified diff instead of the file.")
@option("--json", "as_json", is_flag=True, help="Print the result with all attempts as JSON.")
@option(
    "--trials", type=click.IntRange(1, 50), default=4, show_default=True, help="Attempts in all."
)
@option(
    "--window", type=click.IntRange(1, 3), default=1, show_default=True, help="Lessons in sight."
)
@option(
    "--test-count",
    type=click.IntRange(1, 6),
    default=6,
    show_default=True,
    help="Own tests at most.",
)
@model_options
@option("--temperature", type=click.FloatRange(0, 2), default=0.0, show_default=True)
@option("--seed", type=int, default=0, show_default=True)
@option(
    "--answer-tokens",
    type=click.IntRange(16),
    default=1024,
    show_default=True,
    help="Length of one answer at most.",
)
@option("--max-tokens", type=click.IntRange(1), help="Tokens of the whole run at most.")
@option("--max-seconds", type=click.FloatRange(1), help="Seconds of the whole run at most.")
@option(
    "--context-tokens",
    type=click.IntRange(100),
    default=2000,
    show_default=True,
    help="Tokens of the file that the model is shown.",
)
@option("--hint", default="", metavar="TEXT", help="A lesson of your own.")
@option("--continue", "continued", metavar="RUN", help="Go on from an earlier run of this task.")
@option("--with", "with_", multiple=True, metavar="PACKAGE", help="Package that the file imports.")
@option("--body-only", is_flag=True, help="Add no helpers; imports go inside.")
@option("--distrust-examples", is_flag=True, help="Count docstring examples like own tests.")
@option("--no-tests", is_flag=True, help="Ablation: no tests, only reflection.")
@option("--no-reflection", is_flag=True, help="Ablation: no lessons, only failures.")
@option("--strict", is_flag=True, help="A weak result is not solved.")
@option("--quiet", is_flag=True, help="Print nothing on standard error but trouble.")
@limit_options
@option(
    "--pool",
    type=click.IntRange(0, 16),
    default=1,
    show_default=True,
    help="Containers started ahead; 0 starts each when it is needed.",
)
@click.pass_context
def solve(ctx: click.Context, /, file: Path, **options: Any) -> None:
    """Complete the unfinished function in FILE, and print the file."""
    from reflexfix.display import Display

    exclusive(options)
    display = Display(options["quiet"])
    outcome, folder, home = run_solve(file, options, table_of(ctx), display)
    write_result(outcome, file, folder, home, options)
    weak = options["strict"] and outcome.label == "weak"
    ctx.exit(0 if outcome.solved and not weak else 1)


def exclusive(options: Mapping[str, Any]) -> None:
    """Hold that options which contradict each other do not come together."""
    for first, second in (
        ("as_diff", "as_json"),
        ("no_tests", "tests_file"),
        ("no_tests", "own_tests"),
        ("no_tests", "no_reflection"),
    ):
        if options[first] and options[second]:
            names = [n.removeprefix("as_").removesuffix("_file") for n in (first, second)]
            raise UsageProblem("--{} and --{} exclude each other.".format(*names).replace("_", "-"))


def run_solve(
    file: Path, options: Mapping[str, Any], table: Mapping[str, Any], display: Any
) -> tuple[Outcome, Path, Path]:
    """Prepare and run; give the outcome, the run's folder and the project's one."""
    from reflexfix import assemble, config, runlog, solving
    from reflexfix.model import Budget
    from reflexfix.task import open_task

    settings = settings_of(options)
    task = open_task(file, options["function"], options["body_only"])
    user = task.user_tests(options["tests_file"]) if options["tests_file"] else None
    home = runlog.home_of(file)
    continued = runlog.find(home, options["continued"]) if options["continued"] else None
    packages = tuple(dict.fromkeys([*config.packages(table), *options["with_"]]))
    budget = Budget(options["max_tokens"], options["max_seconds"])
    with assemble.sandbox(
        settings.limits, packages, display.say, options["pool"], task.language
    ) as sandbox:
        solving.need_packages(task, user, sandbox)
        standing = solving.as_it_stands(task, user, sandbox, settings.rules)
        if not task.unfinished and user is not None and standing.solved:
            display.say("nothing to do: your tests pass", "green")
            return solving.Outcome("verified", idle_run(task, sandbox, settings)), home, home
        choice = model_choice(options)
        with (
            assemble.models(choice, budget, display.say) as models,
            runlog.RunLog(home) as log,
        ):
            named = solving.say_first_line(models, sandbox, display.say)
            log.begin(
                **named,
                task={
                    "id": task.id,
                    "name": task.name,
                    "path": str(file),
                    "language": task.language,
                },
                parameters=public(options),
                original=task.original,
            )
            run = solving.prepare(task, settings, models, sandbox, log, user, continued)
            outcome = solving.Outcome("failed", run)
            with display.live(models.received):
                display.doing("asking for a body and for tests")
                for event in solving.solve(run, log, budget, outcome):
                    display.event(event, run)
            from reflexfix.display import last_line

            line = last_line(outcome.label, run, outcome.trials, outcome.tokens, outcome.seconds)
            display.say(line, "bold green" if outcome.solved else "bold")
            if log.folder.parent.parent.name != runlog.FOLDER:
                display.say(f"run kept in {log.folder}")
            return outcome, log.folder, home


def idle_run(task: Any, sandbox: Any, settings: Settings) -> Any:
    """A run in which nothing had to be asked."""
    from reflexfix.ask import Ask
    from reflexfix.loop import Run
    from reflexfix.memory import Memory
    from reflexfix.model import ScriptedModel

    nobody = ScriptedModel([])
    return Run(Ask(task, nobody, nobody, nobody), sandbox, Memory(), settings.rules)


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Gather the options that steer a run."""
    from reflexfix.loop import Rules
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
            reflect=not options["no_reflection"],
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


def write_result(
    outcome: Outcome, file: Path, folder: Path, home: Path, options: Mapping[str, Any]
) -> None:
    """Write the file if that was asked for, and print what was asked for."""
    from reflexfix import edit

    before, after = outcome.run.ask.task.original, outcome.file
    asked = options["write"] or options["write_unsolved"]
    if (options["write"] and outcome.solved) or options["write_unsolved"]:
        edit.write(file, before, after, home)
    if options["as_json"]:
        click.echo(json.dumps(outcome.as_json(folder), indent=2))
    elif options["as_diff"]:
        data = edit.diff(before, after, file.name).encode("utf-8", "surrogateescape")
        sys.stdout.buffer.write(data)
    elif not asked:
        sys.stdout.buffer.write(after)
    sys.stdout.flush()


def table_of(ctx: click.Context) -> Mapping[str, Any]:
    """Give what pyproject.toml sets, as `main` read it."""
    table: Mapping[str, Any] = ctx.find_root().obj or {}
    return table


# ---------------------------------------------------------------- after a run


@cli.command()
@click.argument("run", required=False)
@click.option("--file", type=click.Path(path_type=Path), default=".", help="Where to look from.")
def show(run: str | None, file: Path) -> None:
    """Tell the story of RUN, or of the newest one: attempts, tests, lessons."""
    from reflexfix import runlog
    from reflexfix import show as stories
    from reflexfix.display import safe

    folder = runlog.find(runlog.home_of(inside(file)), run)
    for line in stories.story(runlog.read(folder / runlog.FILE)):
        click.echo(safe(line))


def inside(path: Path) -> Path:
    """Give a path whose parent is where to look from."""
    return path / "x" if path.is_dir() else path


@cli.command()
@click.option("--file", type=click.Path(path_type=Path), default=".", help="Where to look from.")
def undo(file: Path) -> None:
    """Take the last write back, if what was written is unchanged since."""
    from reflexfix import edit, runlog

    entry = edit.undo(runlog.home_of(inside(file)))
    click.echo(f"{entry.path} is as it was before {entry.time}", err=True)


@cli.command()
@click.option("--images", is_flag=True, help="Remove the sandbox's images.")
@click.option("--model", is_flag=True, help="Remove the embedded model.")
@click.option("--runs", is_flag=True, help="Remove the runs kept for this folder.")
def clean(images: bool, model: bool, runs: bool) -> None:
    """Say what is kept and how much, and remove what is named."""
    from reflexfix import cleaning

    for line in cleaning.clean(Path.cwd(), images=images, model=model, runs=runs):
        click.echo(line)


@cli.command()
@model_options
@option("--with", "with_", multiple=True, metavar="PACKAGE", help="Package that files import.")
@click.option("--conformance", is_flag=True, help="Try to break the sandbox on this engine.")
@click.pass_context
def doctor(
    ctx: click.Context, /, with_: tuple[str, ...], conformance: bool, **options: Any
) -> None:
    """Check engine, image, limits, model and disk; one line each, with the remedy."""
    from reflexfix import config
    from reflexfix import doctor as doctors

    codes = []
    packages = (*config.packages(table_of(ctx)), *with_)
    whole = doctors.check_up(model_choice(options), packages)
    for finding in doctors.promises(packages) if conformance else whole:
        mark = "ok " if finding.good else "BAD" if finding.exit_code else "low"
        click.echo(f"{mark} {finding.what}: {finding.said}")
        codes.append(finding.exit_code)
    ctx.exit(next((code for code in codes if code), 0))


# ---------------------------------------------------------------- set-up


@cli.group()
def sandbox() -> None:
    """The container image in which tests run."""


@sandbox.command("build")
@option("--with", "with_", multiple=True, metavar="PACKAGE", help="Package that files import.")
@click.pass_context
def sandbox_build(ctx: click.Context, with_: tuple[str, ...]) -> None:
    """Build the image, or say that it is there."""
    from reflexfix import assemble, config

    packages = tuple(dict.fromkeys([*config.packages(table_of(ctx)), *with_]))
    image = assemble.ready_image(
        assemble.engine(), packages, lambda line: click.echo(line, err=True)
    )
    click.echo(image)


@cli.group()
def model() -> None:
    """The embedded model."""


@model.command("pull")
def model_pull() -> None:
    """Fetch the embedded model once, checked by its sha256."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from reflexfix import local

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True, soft_wrap=True)) as bar:
        task = bar.add_task(local.MODEL_NAME, total=local.MODEL_BYTES)
        for step in local.pull():
            bar.update(task, completed=step.done_bytes)
            if step.what:
                bar.console.print(step.what, highlight=False, markup=False)
    click.echo(local.model_path())


# ---------------------------------------------------------------- the one error boundary


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and end with its exit code; every error is one clear line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments or bool(os.environ.get("REFLEXFIX_DEBUG"))
    arguments = [argument for argument in arguments if argument != "--debug"]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminated)
    raised: BaseException | None = None
    try:
        code = run(arguments)
    except ReflexfixError as error:
        raised, code = error, complain(str(error), error.exit_code)
    except click.ClickException as error:
        raised, code = error, error.exit_code
        error.show()
    except (KeyboardInterrupt, click.Abort) as error:
        raised, code = error, complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read our output is gone
        code = 1
    except Exception as error:  # the boundary: anything else is a fault of ours
        what = f"{type(error).__name__}: {error} (a fault of reflexfix; --debug shows where)"
        raised, code = error, complain(what, INTERNAL)
    if debug and raised is not None:
        traceback.print_exception(raised)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line with the project's defaults. Raises what commands raise."""
    if sys.platform == "win32":
        raise UsageProblem("Windows is supported through WSL.", hint="install WSL and run there")
    from reflexfix import config

    table = config.settings(start_of(arguments)) if arguments else {}
    defaults = config.options(table)
    refuse_unknown(defaults)
    maps = dict.fromkeys(cli.commands, defaults)
    result = cli.main(
        arguments, prog_name="reflexfix", standalone_mode=False, default_map=maps, obj=table
    )
    return result if isinstance(result, int) else 0


def start_of(arguments: list[str]) -> Path:
    """Find what the command is about: the first argument that is a file; else where we are."""
    files = (Path(a) for a in arguments if not a.startswith("-"))
    return next((path for path in files if path.is_file()), Path.cwd())


def refuse_unknown(defaults: dict[str, Any]) -> None:
    """Hold that every setting is an option, and give it the name that click knows it by."""
    known = {
        spelling.lstrip("-").replace("-", "_"): str(parameter.name)
        for command in cli.commands.values()
        for parameter in command.params
        for spelling in parameter.opts
    }
    for name in list(defaults):
        if name not in known:
            raise UsageProblem(f"[tool.reflexfix] in pyproject.toml has no setting {name}.")
        defaults[known[name]] = defaults.pop(name)


def terminated(number: int, _frame: object) -> NoReturn:
    """End on a signal as on an error, so that containers and files are cleaned up."""
    sys.exit(128 + number)


def complain(text: str, code: int) -> int:
    first, _, rest = text.partition("\n")
    click.echo(f"reflexfix: {first}" + (f"\n{rest}" if rest else ""), err=True)
    return code
