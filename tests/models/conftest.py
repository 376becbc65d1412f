"""Static encoders, distilled from the tiny BERT."""

from pathlib import Path

import pytest

from repconc.models.static import distil


@pytest.fixture(scope="session")
def static_folder(tiny_bert, tmp_path_factory) -> Path:
    return save(tiny_bert, 32, tmp_path_factory.mktemp("static"))


@pytest.fixture(scope="session")
def other_dimension(tiny_bert, tmp_path_factory) -> Path:
    return save(tiny_bert, 16, tmp_path_factory.mktemp("static16"))


def save(teacher: Path, dimension: int, folder: Path) -> Path:
    distil(str(teacher), dimension).save(str(folder), create_model_card=False)
    return folder
