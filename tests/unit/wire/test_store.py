"""Recordings on disk: one file per key, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.store import RecordingStore, file_name

if TYPE_CHECKING:
    from pathlib import Path

ODD = [
    "a.b",
    "a.b[c]",
    "a.b[C]",
    "a.b[c/d]",
    "../up",
    ".hidden",
    "a:b*?",
    "é" * 200,
    "x" * 300,
    "",
    "\udcff",
    "a.b[ c]",
]


def recording(key: str, status: int = 200) -> Recording:
    return Recording(key, Request("GET", "/"), status=status, chunks=((0.5, b"\xffbytes"),))


def test_any_key_is_saved_and_read_by_another_process(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    for key in ODD:
        path = RecordingStore(folder).save(recording(key))
        assert path.parent == folder
    fresh = RecordingStore(folder)

    assert list(fresh.keys()) == sorted(ODD)
    assert [fresh.get(key) for key in ODD] == [recording(key) for key in ODD]
    assert len(list(folder.iterdir())) == len(ODD)


@given(st.sets(st.text(st.characters(codec=None), max_size=8), min_size=2, max_size=2))
def test_file_names_are_safe_and_unique(keys: set[str]) -> None:
    names = {file_name(key).lower() for key in keys}

    assert len(names) == 2
    for name in names:
        assert name.isascii()
        assert not set(name) & set('/\\:*?"<>|\0 ')
        assert not name.startswith(".")
        assert len(name) < 128


def test_plain_keys_are_plain_files() -> None:
    assert file_name("chat.stop-string") == "chat.stop-string.jsonl"
    assert file_name("errors.bad-request[no-model]").startswith("errors.bad-request_no-model~")


def test_saving_again_replaces(tmp_path: Path) -> None:
    store = RecordingStore(tmp_path)
    store.save(recording("a.b"))
    store.save(recording("a.b", status=500))

    assert store.get("a.b").status == 500
    assert RecordingStore(tmp_path).load("a.b").status == 500


def test_a_recording_is_read_once(tmp_path: Path) -> None:
    RecordingStore(tmp_path).save(recording("a.b"))
    store = RecordingStore(tmp_path)

    assert store.get("a.b") is store.get("a.b")


def test_keys_see_what_others_save(tmp_path: Path) -> None:
    reader, writer = RecordingStore(tmp_path), RecordingStore(tmp_path)
    assert reader.keys() == ()
    writer.save(recording("a.b"))
    (tmp_path / ".half.jsonl.1.new").write_text("{")
    (tmp_path / "notes.txt").write_text("mine")

    assert reader.keys() == ("a.b",)
    assert "a.b" in reader
    assert "a.c" not in reader


def test_a_missing_recording_names_a_near_one(tmp_path: Path) -> None:
    store = RecordingStore(tmp_path)
    store.save(recording("chat.plain"))

    with pytest.raises(LookupError, match=r"no recording of 'chat\.plane' in .*; did you mean 'chat\.plain'"):
        store.get("chat.plane")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a recording|cut short"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (
            b'{"format": "pytest-vllm-recording", "version": 3, "key": "a.b"}\n{}\n',
            "version 3 is newer than 2",
        ),
        (b'{"format": "pytest-vllm-recording", "version": 1, "key": "a.b"}\n{}\n', "damaged"),
    ],
)
def test_a_damaged_file_is_named_with_its_reason(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "a.b.jsonl"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=why) as caught:
        RecordingStore(tmp_path).load("a.b")
    assert str(path) in str(caught.value)


def test_a_file_under_another_name_is_refused(tmp_path: Path) -> None:
    RecordingStore(tmp_path).save(recording("a.b")).rename(tmp_path / "c.d.jsonl")

    with pytest.raises(ValueError, match=r"holds the recording of 'a\.b' instead of 'c\.d'"):
        RecordingStore(tmp_path).load("c.d")


def test_keys_name_a_file_that_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("what?\n")

    with pytest.raises(ValueError, match=r"a\.jsonl: its first line names no key"):
        RecordingStore(tmp_path).keys()


def test_damaged_files_count_as_recordings_that_are_not_there(tmp_path: Path) -> None:
    for key in ("a.whole", "a.cut", "a.empty"):
        RecordingStore(tmp_path).save(recording(key))
    cut = tmp_path / file_name("a.cut")
    cut.write_bytes(cut.read_bytes()[:100])
    (tmp_path / file_name("a.empty")).write_bytes(b"")
    store = RecordingStore(tmp_path)
    store.set_damaged_aside()

    assert store.keys() == ("a.whole",)
    assert ("a.whole" in store, "a.cut" in store, "a.empty" in store) == (True, False, False)
    assert sorted(store.damaged) == [file_name("a.cut"), file_name("a.empty")]
    with pytest.raises(LookupError, match="is damaged"):
        store.get("a.cut")
