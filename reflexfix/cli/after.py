"""What is asked after a run, or about the machine: show, undo, clean, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import language_option, model_choice, model_options, option, table_of


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
@language_option
@click.option("--conformance", is_flag=True, help="Try to break the sandbox on this engine.")
@click.pass_context
def doctor(
    ctx: click.Context, /, with_: tuple[str, ...], language: str, conformance: bool, **options: Any
) -> None:
    """Check engine, image, limits, model and disk; one line each, with the remedy."""
    from reflexfix import config
    from reflexfix import doctor as doctors

    codes = []
    packages = (*config.packages(table_of(ctx)), *with_)
    whole = doctors.check_up(model_choice(options), packages, language)
    for finding in doctors.promises(packages) if conformance else whole:
        mark = "ok " if finding.good else "BAD" if finding.exit_code else "low"
        click.echo(f"{mark} {finding.what}: {finding.said}")
        codes.append(finding.exit_code)
    ctx.exit(next((code for code in codes if code), 0))
