"""Start-up logs written after public faults and the deployment guides: `CAUSE@WHERE.log`.

They carry what real ones do: calm lines, warnings that look like causes, wrappers, repeats.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_vllm.launch.diagnose import boot_error, root_cause
from pytest_vllm.launch.protocol import Exit

FOLDER = Path(__file__).parent / "logs"
WRITTEN = sorted((FOLDER / "written").glob("*.log"))
REAL = sorted(path for path in FOLDER.glob("*.log") if path.stem != "healthy")


def named_first(path: Path) -> str:
    """The cause that is named, empty for none."""
    found = root_cause([line for line in path.read_text("utf-8").splitlines() if line.strip()])
    return found.cause.id if found else ""


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_the_true_cause_is_named(path: Path) -> None:
    """Before everything that follows from it."""
    lines = path.read_text("utf-8").splitlines()
    error = boot_error("it died", lines, Exit(1))

    assert named_first(path) == path.stem.partition("@")[0]
    assert error.means
    assert error.try_
    assert "{" not in error.means


def test_nine_of_ten_of_all() -> None:
    """Forty logs at least; the promise is a share, each log above is held to it alone."""
    right = [path for path in (*REAL, *WRITTEN) if named_first(path) == path.stem.partition("@")[0]]

    assert len(REAL) + len(WRITTEN) >= 40
    assert len(right) >= 0.9 * (len(REAL) + len(WRITTEN))


@pytest.mark.parametrize(
    "line",
    [
        "FlashInfer is not available. Falling back to the PyTorch-native implementation of top-p sampling.",
        "Found ulimit of 20000, which can cause `OSError: [Errno 24] Too many open files`.",
        "Maximum cuda capability supported is 12.0",
        "Your device 'cpu' doesn't support torch.bfloat16. Falling back to torch.float16 for compatibility.",
        "Retrying in 2s [Retry 2/5].",
    ],
)
def test_a_harmless_warning_is_no_cause(line: str) -> None:
    """Good starts say these, too."""
    assert root_cause([f"(EngineCore pid=7) WARNING 11-27 20:50:01 [x.py:1] {line}"]) is None
