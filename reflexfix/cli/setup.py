"""What is fetched or built ahead: the sandbox's image, the embedded model."""

from __future__ import annotations

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
