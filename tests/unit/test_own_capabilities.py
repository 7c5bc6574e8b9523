"""Capabilities of a project's own: found out as the bundled ones are, never guessed where a probe broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm import MUST, capability, case_file, cases, check
from pytest_vllm.declare.capabilities import OWN
from pytest_vllm.declare.exchanges import CASE_SETS
from pytest_vllm.run.findings import PROBE_FAILED
from tests.unit.fake_vllm import FakeVLLM, how

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_vllm import Recording, Request, Server


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    yield
    OWN.clear()
    CASE_SETS.pop("ours", None)


@pytest.fixture
def own() -> Callable[..., str]:
    """Declares `our-rag`, to be forgotten afterwards."""

    def declare(**more: Any) -> str:
        return capability("our-rag", **{"probe": asks_rag, **more})

    return declare


def asks_rag(server: Server) -> Request:
    """The request that finds it out."""
    return server.get("/rag/health")


def has_index(answer: Recording) -> bool:
    """Whether the index is loaded."""
    return bool(answer.ok["index"])


def breaks(server: Server) -> Request:
    """A probe that is wrong itself."""
    raise KeyError("rag")


@pytest.mark.parametrize(
    ("rule", "present"),
    [((200, {}), True), ((500, {}), True), ((404, {}), False), ((501, {}), False), ((None, None), True)],
)
def test_broken_is_not_absent(own: Callable[..., str], rule: tuple[Any, Any], present: bool) -> None:
    own()

    assert how(FakeVLLM({"GET /rag/health": rule}), "our-rag")[0] is present


@pytest.mark.parametrize(("index", "present"), [(["a"], True), ([], False)])
def test_an_answer_is_asked_what_it_means(own: Callable[..., str], index: list[str], present: bool) -> None:
    own(present=has_index)

    found, said = how(FakeVLLM({"GET /rag/health": (200, {"index": index})}), "our-rag")

    assert found is present
    assert said.startswith("trial request: 200, which ")


@pytest.mark.parametrize(
    ("more", "words"), [({"probe": breaks}, "KeyError: 'rag'"), ({"present": has_index}, "KeyError: 'index'")]
)
def test_a_probe_that_breaks_says_where(own: Callable[..., str], more: dict[str, Any], words: str) -> None:
    own(**more)

    found, said = how(FakeVLLM({"GET /rag/health": (200, {})}), "our-rag")

    assert not found
    assert said.startswith(f"{PROBE_FAILED}: {words} (test_own_capabilities.py:")


def test_a_check_may_need_it_once_it_is_declared(own: Callable[..., str]) -> None:
    def judged() -> None:
        """Ours."""

    with pytest.raises(ValueError, match="declared by capability"):
        check("a.b", MUST, spec="profile:ours", needs=["our-rag"])(judged)
    check("a.b", MUST, spec="profile:ours", needs=[own()])(judged)


@pytest.mark.parametrize("name", ["chat", "Our-rag", "our rag", ""])
def test_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="capability "):
        capability(name, probe=asks_rag)


def test_own_files_of_cases_lie_beside_the_test_or_above(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "rows.jsonl").write_text('{"id": "a"}\n\n{"id": 2}\n')
    (tmp_path / "inner").mkdir()
    module = tmp_path / "inner" / "test_ours.py"
    names: dict[str, Any] = {"case_file": case_file}
    exec(compile("path = case_file('rows.jsonl')", str(module), "exec"), names)  # noqa: S102 - has that file name

    assert names["path"] == tmp_path / "rows.jsonl"
    cases("ours", names["path"])
    with pytest.raises(FileNotFoundError, match=r"no other\.json beside test_ours\.py nor above it, in "):
        exec(compile("case_file('other.json')", str(module), "exec"), names)  # noqa: S102 - as above


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "not JSON"),
        ('[{"ask": 1}]', "row 1 is not a table with an `id`"),
        ('[{"id": 1}, {"id": "1"}]', "row 2: the id 1 is given twice"),
        ('{"id": 1}', "not a list of rows"),
    ],
)
def test_a_wrong_file_of_cases_names_the_row(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "rows.json").write_text(text)

    with pytest.raises(ValueError, match=f"rows.json.*{words}"):
        cases("ours", tmp_path / "rows.json")
