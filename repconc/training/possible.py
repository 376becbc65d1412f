"""What a recipe cannot do with a data set, said before the first hour of work."""

from repconc.errors import RepconcError
from repconc.training.examples import PIECES, batches_in
from repconc.training.recipe import Phase, Recipe


def refuse_impossible(recipe: Recipe, *, dimension: int, documents: int, pairs: int, ranks: int) -> None:
    """One sentence for the first thing that would stop the run later."""
    phases: list[Phase] = [*recipe.dense]
    if recipe.method == "dense" and not recipe.dense:
        raise RepconcError("Method dense without a dense phase trains nothing; leave out --trained.")
    if recipe.method != "dense":
        _refuse_quantizer(recipe, dimension, documents)
    if recipe.method == "repconc":
        _refuse_constraint(recipe, documents, pairs)
    if recipe.method in ("repconc", "dpq"):
        phases.append(recipe.stage_one)
    if recipe.method in ("repconc", "jpq"):
        phases.append(recipe.stage_two)
    smallest = min((_smallest(recipe, phase, documents, pairs) for phase in phases), default=ranks)
    if smallest < ranks:
        raise RepconcError(f"A batch of {smallest} pairs cannot be shared by {ranks} processes; raise batch.")


def _refuse_quantizer(recipe: Recipe, dimension: int, documents: int) -> None:
    quantizer = recipe.quantizer
    if quantizer.structure == "additive" and recipe.method in ("opq", "pq"):
        raise RepconcError("Methods opq and pq make product codes; take repconc, jpq or dpq with additive ones.")
    if quantizer.structure == "additive" and quantizer.bytes == 1:
        raise RepconcError("One whole codeword a document is a product code of one block; ask for --codes product.")
    known = min(documents, quantizer.sample)
    if quantizer.codewords > known:
        raise RepconcError(
            f"There are {known} documents for {quantizer.codewords} codewords; "
            "give more documents, or fewer codewords (quantizer.codewords in the recipe)."
        )
    if quantizer.structure == "product" and quantizer.bytes > dimension:
        raise RepconcError(
            f"Vectors of {dimension} dimensions cannot be cut into {quantizer.bytes} blocks; ask for fewer bytes."
        )


def _refuse_constraint(recipe: Recipe, documents: int, pairs: int) -> None:
    settings, codewords = recipe.stage_one, recipe.quantizer.codewords
    # Pieces of documents have no hard negatives, so with them only the positives are sure.
    smallest = _smallest(recipe, settings, documents, pairs) * (1 if recipe.pieces else 1 + settings.hard)
    if settings.constraint and smallest < codewords:
        raise RepconcError(
            f"A batch of stage 1 has {smallest} documents for {codewords} codewords, so they cannot be in equal use: "
            "raise stage_one.batch or stage_one.hard, lower quantizer.codewords, or set constraint = false."
        )


def _smallest(recipe: Recipe, phase: Phase, documents: int, pairs: int) -> int:
    return batches_in(pairs, min(documents, PIECES), phase.batch, recipe.pieces).smallest
