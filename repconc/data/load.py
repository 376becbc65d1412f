"""From what the user typed to a data set: a folder, a known name, irds:NAME or hf:NAME."""

from pathlib import Path

from repconc.data.beir import BeirFolder
from repconc.data.catalogue import CATALOGUE, folder_of
from repconc.data.dataset import RetrievalDataset, Source
from repconc.data.msmarco import MsMarcoFolder
from repconc.lines import InputError


def load_dataset(name: str | Path) -> RetrievalDataset:
    """Open a data set; nothing of it is read yet."""
    return RetrievalDataset(_source(str(name)))


def _source(name: str) -> Source:
    scheme, _, rest = name.partition(":")
    if rest and scheme == "irds":
        from repconc.data.irds import IrDataset

        return IrDataset(rest)
    if rest and scheme == "hf":
        from repconc.data.huggingface import HuggingFaceDataset

        return HuggingFaceDataset(rest)
    if (folder := Path(name)).is_dir():
        return _folder(folder)
    if name in CATALOGUE:
        if not folder_of(name).is_dir():
            raise InputError(f"The data set {name} has not been fetched yet: run 'repconc data get {name}'.")
        return _folder(folder_of(name))
    known = ", ".join(CATALOGUE)
    raise InputError(f"{name!r} is neither a folder nor a known data set ({known}, irds:NAME, hf:NAME).")


def _folder(folder: Path) -> Source:
    for reader in (BeirFolder, MsMarcoFolder):
        if reader.recognises(folder):
            return reader(folder)
    raise InputError(
        f"{folder} is not a data set: it holds neither corpus.jsonl (BEIR) "
        "nor collection.tsv or msmarco-docs.tsv (MS MARCO)."
    )
