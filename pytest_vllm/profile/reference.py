"""Files that profiles refer to by name: hardware and models, a project's own before the built-in ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.errors import ProfileError, faults_of
from pytest_vllm.profile.sources import FOLDER, Document
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from pathlib import Path

Model = TypeVar("Model", bound=BaseModel)


def files(kind: str, rootdir: Path) -> dict[str, Path]:
    """Files of a kind (`hardware`, `models`) by name."""
    found: dict[str, Path] = {}
    for folder in (data_dir("fixtures") / kind, rootdir / FOLDER / kind):
        found |= {file.stem: file for file in folder.glob("*.toml")}
    return found


def file_names(kind: str, rootdir: Path) -> list[str]:
    """Names of a kind, sorted."""
    return sorted(files(kind, rootdir))


def read_file(kind: str, name: str, rootdir: Path, model: type[Model]) -> Model:
    """A validated file. Raises ProfileError with file and line, or with the nearest names."""
    known = files(kind, rootdir)
    if name not in known:
        raise ProfileError(unknown(kind.removesuffix("s"), name, sorted(known)))
    document = Document(name, known[name], kind, rootdir.resolve())
    try:
        return model.model_validate(document.raw)
    except ValidationError as error:
        raise document.error(faults_of(error.errors(), model)) from error
