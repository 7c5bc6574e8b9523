"""Profiles as files of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.load import ProfileError, load

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.model import Profile


class Project:
    """A project's root directory with profiles in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, text: str, name: str = "mine") -> Path:
        """A profile of `vllm-profiles/`."""
        file = self.root / "vllm-profiles" / f"{name}.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def load(self, name: str = "mine", **environ: str) -> Profile:
        """The profile of this name."""
        return load(name, self.root, environ=environ)

    def refusal(self, text: str | None = None, name: str = "mine", **environ: str) -> str:
        """The message with which a profile is refused."""
        if text is not None:
            self.write(text, name)
        with pytest.raises(ProfileError) as refused:
            load(name, self.root, environ=environ)
        return str(refused.value)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    return Project(tmp_path)
