"""The processor follows vLLM's batch: what joins, leaves, moves, swaps and comes back keeps its place.

vLLM is not installed here; a stand-in of its interface carries the module. `tests/real` runs it inside vLLM.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import pytest_vllm.scripted

SOURCE = Path(pytest_vllm.scripted.__file__).with_name("processor.py")
EOS = 0


class MoveDirectionality(Enum):
    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass
class Update:
    removed: list[int] = field(default_factory=list)
    added: list[tuple[int, Any, Any, list[int]]] = field(default_factory=list)
    moved: list[tuple[int, int, MoveDirectionality]] = field(default_factory=list)


class Letters:
    """A tokenizer whose tokens are letters."""

    eos_token_id = EOS

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert add_special_tokens is False
        return [ord(letter) for letter in text]


class Masked(list[bool]):
    """What is compared: whether each logit is that of a masked token."""

    def __eq__(self, value: object) -> Any:
        assert value == float("-inf")
        return self

    __hash__ = None

    def tolist(self) -> list[bool]:
        return list(self)


class Logits:
    """Remembers what was forced: {row: token}. Tokens in `masked` are those that a grammar forbids."""

    def __init__(self, masked: str = "") -> None:
        self.forced: dict[int, int] = {}
        self.masked = {ord(letter) for letter in masked}

    def __getitem__(self, at: tuple[list[int], list[int]]) -> Masked:
        return Masked(token in self.masked for token in at[1])

    def __setitem__(self, at: tuple[list[int], list[int]], value: float) -> None:
        assert value > 1e5
        self.forced = dict(zip(*at, strict=True))


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Any:
    interface = ModuleType("vllm.v1.sample.logits_processor")
    interface.LogitsProcessor = object  # type: ignore[attr-defined]
    interface.MoveDirectionality = MoveDirectionality  # type: ignore[attr-defined]
    transformers = ModuleType("transformers")
    transformers.AutoTokenizer = SimpleNamespace(from_pretrained=lambda *_, **__: Letters())  # type: ignore[attr-defined]
    for name in ("vllm", "vllm.v1", "vllm.v1.sample"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "vllm.v1.sample.logits_processor", interface)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    spec = importlib.util.spec_from_file_location("processor_under_test", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = SimpleNamespace(tokenizer="m", trust_remote_code=False, tokenizer_revision=None)
    return module.ScriptedProcessor(SimpleNamespace(model_config=model), "cpu", is_pin_memory=False)


def joins(row: int, script: Any, output: list[int] | None = None) -> Update:
    params = SimpleNamespace(extra_args=None if script is None else {"script": script})
    return Update(added=[(row, params, [1, 2], [] if output is None else output)])


def bound(row: int, script: str, output: list[int]) -> Update:
    """A request that a grammar holds to a form."""
    params = SimpleNamespace(extra_args={"script": script}, structured_outputs=object())
    return Update(added=[(row, params, [1, 2], output)])


def told(processor: Any) -> str:
    """What the processor says when it is asked what was forbidden."""
    output: list[int] = []
    params = SimpleNamespace(extra_args={"forbidden": 1})
    processor.update_state(Update(added=[(9, params, [1, 2], output)]))
    text = ""
    while (letter := said(processor)[9]) != ".":
        text += letter
        output.append(7)
    processor.update_state(Update(removed=[9]))
    return text


def name(script: str) -> str:
    """The digest of a script."""
    return hashlib.sha256(script.encode()).hexdigest()[:12]


def said(processor: Any, masked: str = "") -> dict[int, str]:
    """The letter that each row has to say next; `.` for the end."""
    logits = Logits(masked)
    assert processor.apply(logits) is logits
    return {row: "." if token == EOS else chr(token) for row, token in logits.forced.items()}


def test_a_script_is_said_token_by_token_and_then_ends(processor: Any) -> None:
    output: list[int] = []
    processor.update_state(joins(0, "abc", output))
    heard = ""
    for _ in range(5):
        heard += said(processor)[0]
        output.append(7)  # its length is the position, whatever it holds: placeholders too
        processor.update_state(None)

    assert heard == "abc.."


def test_pieces_are_tokenised_one_by_one(processor: Any) -> None:
    processor.update_state(joins(0, ["a", "bc"]))

    assert said(processor) == {0: "a"}


def test_requests_without_a_script_are_left_alone(processor: Any) -> None:
    processor.update_state(joins(0, None))
    processor.update_state(joins(1, "x"))

    assert said(processor) == {1: "x"}


def test_a_row_that_is_taken_over_forgets_its_script(processor: Any) -> None:
    processor.update_state(joins(0, "x"))
    processor.update_state(joins(0, None))

    assert said(processor) == {}


def test_removed_and_added_in_one_step(processor: Any) -> None:
    processor.update_state(joins(0, "x"))
    update = joins(0, "y")
    update.removed = [0]
    processor.update_state(update)

    assert said(processor) == {0: "y"}


def test_a_move_takes_the_script_along(processor: Any) -> None:
    for row, script in enumerate("xyz"):
        processor.update_state(joins(row, script))
    processor.update_state(Update(removed=[0], moved=[(2, 0, MoveDirectionality.UNIDIRECTIONAL)]))

    assert said(processor) == {0: "z", 1: "y"}


def test_a_swap_exchanges_scripted_and_plain_rows(processor: Any) -> None:
    processor.update_state(joins(0, "x"))
    processor.update_state(joins(1, "y"))
    processor.update_state(joins(2, None))
    processor.update_state(Update(moved=[(0, 1, MoveDirectionality.SWAP), (1, 2, MoveDirectionality.SWAP)]))

    assert said(processor) == {0: "y", 2: "x"}


def test_a_move_from_a_plain_row_leaves_no_script_behind(processor: Any) -> None:
    processor.update_state(joins(0, "x"))
    processor.update_state(joins(1, None))
    processor.update_state(Update(moved=[(1, 0, MoveDirectionality.UNIDIRECTIONAL)]))

    assert said(processor) == {}


def test_a_preempted_request_goes_on_where_it_was(processor: Any) -> None:
    output = [1, 1]
    processor.update_state(joins(3, "abc", output))

    assert said(processor) == {3: "c"}


def test_choices_of_one_request_have_positions_of_their_own(processor: Any) -> None:
    processor.update_state(joins(0, "abc", [1]))
    processor.update_state(joins(1, "abc", [1, 1]))

    assert said(processor) == {0: "b", 1: "c"}


def test_what_a_grammar_forbids_is_told_with_its_place(processor: Any) -> None:
    output = [1]
    processor.update_state(bound(0, "a<b", output))
    processor.update_state(bound(1, "abc", output))

    assert said(processor, masked="<") == {0: "<", 1: "b"}  # forced all the same: the server ends it
    output.append(7)
    said(processor, masked="b")
    processor.update_state(Update(removed=[0, 1]))

    assert told(processor) == f"{name('a<b')}:1"


def test_nothing_is_told_where_nothing_was_forbidden(processor: Any) -> None:
    processor.update_state(bound(0, "abc", []))
    said(processor)

    assert told(processor) == "none"


def test_a_mask_without_a_grammar_is_not_told(processor: Any) -> None:
    """Limits on the length of an answer mask its end, for instance."""
    processor.update_state(joins(0, "<"))
    processor.update_state(bound(1, "abc", []))
    said(processor, masked="<")

    assert told(processor) == "none"


def test_pieces_have_a_name_of_their_own(processor: Any) -> None:
    update = bound(0, "", [])
    update.added[0][1].extra_args = {"script": ["<", "a"]}
    processor.update_state(update)
    said(processor, masked="<")

    assert told(processor) == f"{name(chr(0).join('<a'))}:0"


@pytest.mark.parametrize("script", [5, ["a", 5], {"a": 1}])
def test_what_is_no_script_is_refused(processor: Any, script: object) -> None:
    with pytest.raises(ValueError, match=r"vllm_xargs\.script is"):
        processor.validate_params(SimpleNamespace(extra_args={"script": script}))


@pytest.mark.parametrize("extra", [None, {}, {"other": 1}, {"script": "a"}, {"script": ["a", "b"]}])
def test_anything_else_is_taken(processor: Any, extra: object) -> None:
    processor.validate_params(SimpleNamespace(extra_args=extra))


def test_it_decides_what_is_said(processor: Any) -> None:
    assert processor.is_argmax_invariant() is False
