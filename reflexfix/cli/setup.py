"""What is fetched, built or started ahead: the sandbox's image, the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import language_option, option, table_of
from reflexfix.errors import UsageProblem


@cli.group()
def sandbox() -> None:
    """The container image in which tests run."""


@sandbox.command("build")
@option("--with", "with_", multiple=True, metavar="PACKAGE", help="Package that files import.")
@language_option
@option(
    "--with-crates",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Rust: the crate, or its Cargo.toml, whose dependencies are built in.",
)
@option(
    "--crate-source",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Rust: take crates from a folder that `cargo vendor` made.",
)
@click.pass_context
def sandbox_build(
    ctx: click.Context,
    with_: tuple[str, ...],
    language: str,
    with_crates: Path | None,
    crate_source: Path | None,
) -> None:
    """Build the image, or say that it is there."""
    from reflexfix import assemble, config
    from reflexfix.containers import crates

    if crate_source and not with_crates:
        raise UsageProblem("--crate-source needs --with-crates.")
    if with_ and (with_crates or language == "rust"):
        raise UsageProblem("--with is for Python.", hint="crates are built in by --with-crates")
    asked = crates.named(with_crates, crate_source) if with_crates else None
    packages = tuple(dict.fromkeys([*config.packages(table_of(ctx)), *with_]))
    image = assemble.ready_image(
        assemble.engine(),
        packages,
        lambda line: click.echo(line, err=True),
        "rust" if asked else language,
        asked,
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


@model.command("serve")
@option("--model", "name", default="", metavar="FILE", help="Another .gguf file.")
@option(
    "--idle-minutes",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Ends by itself after that long without a run.",
)
@click.option("--foreground", is_flag=True, help="Stay, in place of going to the background.")
def model_serve(name: str, idle_minutes: float, foreground: bool) -> None:
    """Keep the model loaded in the background, for every run to find."""
    from reflexfix import assemble, local, warm

    path = assemble.gguf(assemble.ModelChoice(model=name), lambda line: click.echo(line, err=True))
    local.need_gguf(path)
    if foreground:
        for line in warm.keep(path, idle_minutes):
            click.echo(line, err=True)
        return
    if not warm.start(path, idle_minutes):
        click.echo("a server runs already:")
    for line in warm_lines():
        click.echo(line)


@model.command("stop")
def model_stop() -> None:
    """End the server that `serve` started."""
    from reflexfix import warm

    click.echo("stopped" if warm.stop() else "no server runs")


@model.command("status")
def model_status() -> None:
    """Say whether the model is here, and whether a server keeps it warm."""
    from reflexfix import local

    path = local.model_path()
    size = f"{local.MODEL_BYTES / 1e9:.2f} GB"
    here = f"{size} in {path.parent}" if local.is_pulled() else f"not here; {size} to fetch"
    click.echo(f"{local.MODEL_NAME}: {here}")
    for line in warm_lines():
        click.echo(line)


def warm_lines() -> Iterator[str]:
    """Say what the server is and does."""
    from reflexfix import warm

    pid, about = warm.running(), warm.record()
    if about:
        yield warm.described(about)
        yield "in use" if warm.in_use() else "idle"
    else:
        yield f"a server loads the model (process {pid})" if pid else "no server runs"
