"""The tiny model is a folder as vLLM serves it, the same for the same arguments."""

from __future__ import annotations

import json
import random
import struct
from math import prod
from typing import TYPE_CHECKING, Any

import jinja2
import pytest

from pytest_vllm.scripted.model import build, shapes, write_weights
from pytest_vllm.scripted.tokens import OWN, byte_letters, tokenizer, vocabulary

if TYPE_CHECKING:
    from pathlib import Path

MARKERS = ("<think>", "</think>")
CLOSED = '<think>\n"quiet"\n</think>\n\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build(tmp_path / "model", markers=MARKERS, special=("<|call|>",), closed=CLOSED)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def header_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    assert all(
        one["data_offsets"][1] <= len(data) - 8 - size for name, one in header.items() if name[0] != "_"
    )
    return header


def test_the_same_arguments_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = build(tmp_path / "again", markers=MARKERS, special=("<|call|>",), closed=CLOSED)

    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        p.name: p.read_bytes() for p in again.iterdir()
    }


def test_another_seed_gives_other_weights(folder: Path, tmp_path: Path) -> None:
    other = build(tmp_path / "other", markers=MARKERS, special=("<|call|>",), closed=CLOSED, seed=1)

    same = {p.name for p in folder.iterdir() if p.read_bytes() == (other / p.name).read_bytes()}
    assert same == {p.name for p in folder.iterdir()} - {"model.safetensors"}


def test_weights_have_the_shapes_of_the_config(folder: Path) -> None:
    config, header = read(folder / "config.json"), header_of(folder / "model.safetensors")
    told = {name: tuple(one["shape"]) for name, one in header.items() if not name.startswith("__")}

    assert told == shapes(config["vocab_size"])
    assert told["model.embed_tokens.weight"] == (config["vocab_size"], config["hidden_size"])
    assert config["num_attention_heads"] * config["head_dim"] == config["hidden_size"]


def test_weights_lie_one_after_the_other(folder: Path) -> None:
    header = header_of(folder / "model.safetensors")
    at = 0
    for name, one in header.items():
        if name.startswith("__"):
            continue
        assert one["data_offsets"] == [at, at + 2 * prod(one["shape"])], name
        at = one["data_offsets"][1]


def test_norms_are_one_and_matrices_are_small(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_weights(path, {"norm": (4,), "matrix": (64, 64)}, random.Random(0))  # noqa: S311
    data = path.read_bytes()
    numbers = [
        struct.unpack("<f", b"\0\0" + data[at : at + 2])[0] for at in range(len(data) - 8200, len(data), 2)
    ]

    assert numbers[:4] == [1.0] * 4
    assert 0.015 < (sum(n * n for n in numbers[4:]) / 4096) ** 0.5 < 0.025


def test_a_marker_is_one_token_and_only_special_ones_are_hidden(folder: Path) -> None:
    added = {one["content"]: one for one in read(folder / "tokenizer.json")["added_tokens"]}

    assert {*OWN, *MARKERS, "<|call|>"} == set(added)
    assert {text for text, one in added.items() if one["special"]} == {*OWN, "<|call|>"}


def test_ids_are_dense_and_unique(folder: Path) -> None:
    tokens = read(folder / "tokenizer.json")
    ids = [*tokens["model"]["vocab"].values(), *(one["id"] for one in tokens["added_tokens"])]

    assert sorted(ids) == list(range(read(folder / "config.json")["vocab_size"]))


def test_every_byte_is_a_token() -> None:
    assert len(set(byte_letters())) == 256
    assert vocabulary()[:256] == byte_letters()


def test_what_is_marker_and_special_is_added_once() -> None:
    added = tokenizer(["<think>", "<think>"], ["<think>"])["added_tokens"]

    assert [one["content"] for one in added] == [*OWN, "<think>"]


def render(folder: Path, **given: Any) -> str:
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - no HTML
    template = environment.from_string((folder / "chat_template.jinja").read_text("utf-8"))
    return template.render(**given)


def test_the_template_says_every_turn_and_no_marker(folder: Path) -> None:
    call = {"function": {"name": "ping", "arguments": {"a": 1}}}
    text = render(
        folder,
        tools=[{"type": "function", "function": {"name": "ping"}}],
        messages=[
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": [{"type": "text", "text": "up"}]},
        ],
        add_generation_prompt=True,
    )

    assert [word in text for word in ('"ping"', "Hi", "called ping", "up")] == [True] * 4
    assert not any(marker in text for marker in (*MARKERS, "<|call|>"))
    assert text.endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("given", "end"), [({"enable_thinking": False}, CLOSED), ({"enable_thinking": True}, ""), ({}, "")]
)
def test_a_thought_is_closed_where_thinking_is_off(folder: Path, given: dict[str, bool], end: str) -> None:
    text = render(folder, messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True, **given)

    assert text.endswith(f"<|im_start|>assistant\n{end}")
