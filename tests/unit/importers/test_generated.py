"""Generated files of every kind: nothing of one is lost in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_vllm.profile.importers.draft import Draft
from tests.unit.importers.generated import KINDS, fate

if TYPE_CHECKING:
    from pathlib import Path

FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", KINDS)
def test_every_part(name: str, tmp_path: Path) -> None:
    """It is in the profile, in a note, or the file is refused."""
    files, kind = KINDS[name]

    @FEW
    @given(files)
    def check(one) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - hypothesis asks for its type
        assert fate(one, kind, tmp_path)[1] == []

    check()


@pytest.mark.parametrize("name", ["compose file", "Kubernetes", "run line", "Quadlet"])
def test_a_loss_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test itself: an importer that says nothing of what it leaves out is found out."""
    monkeypatch.setattr(Draft, "lost", lambda *_: None)
    files, kind = KINDS[name]
    found: list[str] = []

    @FEW
    @given(st.lists(files, min_size=2, max_size=2))
    def check(several) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
        found.extend(line for one in several for line in fate(one, kind, tmp_path)[1])

    check()
    assert found != []
