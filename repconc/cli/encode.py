"""`repconc encode`: a corpus to vectors on disk."""

from pathlib import Path
from typing import Annotated

import typer

from repconc.cli.options import Dataset, Quiet, progress_bar, remark
from repconc.config import EncoderSettings, Pooling


def encode(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="minilm, static, a sentence-transformers or Hugging Face folder or name."),
    ],
    dataset: Dataset,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the vectors.")],
    shard: Annotated[
        str, typer.Option("--shard", help="Part i/n of the work, i from 0, for several machines.")
    ] = "0/1",
    shard_size: Annotated[int, typer.Option(min=1, help="Documents a shard: what a kill can cost.")] = 8192,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Texts a batch.")] = 64,
    query_model: Annotated[str | None, typer.Option(help="Another encoder for the queries.")] = None,
    pooling: Annotated[Pooling | None, typer.Option(help="For a plain Hugging Face encoder.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale vectors to length 1.")] = False,
    document_prompt: Annotated[str | None, typer.Option(help="Text put before each document.")] = None,
    query_prompt: Annotated[str | None, typer.Option(help="Text put before each query.")] = None,
    document_tokens: Annotated[int | None, typer.Option(min=3, help="Longest document, in tokens.")] = None,
    query_tokens: Annotated[int | None, typer.Option(min=3, help="Longest query, in tokens.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps. [default: the best there is]")] = None,
    quiet: Quiet = False,
) -> None:
    """Encode the documents of a data set. Killed at any point, the same command goes on where it stopped.

    Example: repconc encode static hotpotqa -o vectors/
    """
    from repconc.data.load import load_dataset
    from repconc.models.encoder import Encoder
    from repconc.models.encoding import encode_corpus

    part = _parse_part(shard)
    loaded = load_dataset(dataset)
    settings = EncoderSettings(
        documents=model,
        queries=query_model,
        pooling=pooling,
        normalize=normalize,
        document_prompt=document_prompt,
        query_prompt=query_prompt,
        document_tokens=document_tokens,
        query_tokens=query_tokens,
    )
    with progress_bar(f"loading {model}", quiet) as progress:
        encoder = Encoder(settings, device, progress)
    with progress_bar("encoding", quiet) as progress:
        vectors = encode_corpus(
            encoder, loaded, output, part=part, shard_size=shard_size, batch_size=batch, progress=progress
        )
    if vectors is None:
        remark(f"Part {shard} is done; other parts are still missing.", quiet)
    else:
        remark(f"{len(vectors):,} vectors of {vectors.dimension} dimensions, {vectors.nbytes / 1e6:,.1f} MB.", quiet)
    typer.echo(output)


def _parse_part(text: str) -> tuple[int, int]:
    try:
        number, count = (int(field) for field in text.split("/"))
    except ValueError:
        number, count = -1, 0
    if not 0 <= number < count:
        raise typer.BadParameter(f"{text} is not i/n with 0 <= i < n, such as 0/4.", param_hint="--shard")
    return number, count
