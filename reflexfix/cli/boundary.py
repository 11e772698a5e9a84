"""The one error boundary: every command ends here, with its exit code and one clear line."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import click

from reflexfix.cli.group import cli
from reflexfix.errors import ReflexfixError, UsageProblem

INTERRUPTED, INTERNAL = 130, 70


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
