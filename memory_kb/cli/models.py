"""Verbs about embedding models: model fetch, cache prune."""

from __future__ import annotations

import click

from memory_kb.cli.app import Options, shared_options
from memory_kb.cli.output import print_json, say
from memory_kb.errors import UsageError

_MEGABYTE = 1_000_000


@click.group("model")
def model_verb() -> None:
    """Embedding models on this machine.

    \b
    memory-kb model fetch
    """


@model_verb.command("fetch")
@shared_options
@click.argument("name", required=False)
@click.pass_obj
def fetch_verb(options: Options, /, name: str | None) -> None:
    """Download an embedding model, so that searches by meaning need no key and no network.

    NAME is a sentence-transformers model with an ONNX export, as the Hugging Face hub calls it. An interrupted
    download is continued.

    \b
    memory-kb model fetch
    memory-kb model fetch intfloat/multilingual-e5-small
    """
    import os

    from memory_kb.providers.model_config import DEFAULT_MODEL, models_folder
    from memory_kb.providers.model_fetch import fetch_model

    models = models_folder(os.environ)
    if models is None:
        raise UsageError("there is no home folder to keep models in", "set MEMORY_KB_MODELS to a folder")
    folder = fetch_model(name or DEFAULT_MODEL, models, environ=os.environ)
    if options.as_json:
        print_json({"path": str(folder)})
        return
    click.echo(str(folder))
    is_usual = name in (None, DEFAULT_MODEL)
    say(
        "`memory-kb index` makes the vectors."
        if is_usual
        else f"Set embeddings.model to {name}, then `memory-kb index` makes the vectors."
    )


@click.group("cache")
def cache_verb() -> None:
    """The embedding cache: every vector that was ever made, by its text.

    \b
    memory-kb cache prune --dry-run
    """


@cache_verb.command("prune")
@shared_options
@click.option(
    "--keep-days", type=click.FloatRange(0), default=30.0, show_default=True, help="Keep what was of use this recently."
)
@click.option("--max-mb", type=click.FloatRange(0), help="Keep no more than this, whatever its age.")
@click.option("--dry-run", is_flag=True, help="Tell what would be deleted.")
@click.pass_obj
def prune_verb(options: Options, /, keep_days: float, max_mb: float | None, dry_run: bool) -> None:
    """Delete cached vectors of texts that no note has any more.

    \b
    memory-kb cache prune
    memory-kb cache prune --keep-days 0 --max-mb 200
    """
    with options.open() as kb:
        pruned = kb.prune_cache(
            keep_days=keep_days, max_bytes=None if max_mb is None else int(max_mb * _MEGABYTE), dry_run=dry_run
        )
    if options.as_json:
        print_json(pruned._asdict() | {"dry_run": dry_run})
        return
    verb = "would be deleted" if dry_run else "deleted"
    click.echo(
        f"{pruned.deleted:,} vectors {verb} ({pruned.freed / _MEGABYTE:.1f} MB), {pruned.kept / _MEGABYTE:.1f} MB kept"
    )
