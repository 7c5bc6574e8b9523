"""The tokenizer of the scripted engine: bytes, common words, what JSON is made of, and a parser's markers.

It is a byte-level BPE without merges in the `tokenizers` format: a word or a run of punctuation that is in
the vocabulary is one token (`ignore_merges`), everything else is one token per byte. So tokens end where they
end with real models: `"}}` spans the end of a value and of a call, a character outside ASCII spans several.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

END, BEGIN_TURN, END_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
OWN = (END, BEGIN_TURN, END_TURN)

#: Common words, and the runs of punctuation that JSON, XML and code are made of.
VOCABULARY = Path(__file__).with_name("vocabulary.json")


def byte_letters() -> list[str]:
    """The letter that stands for each byte in byte-level vocabularies, by byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in shown}
    hidden = [byte for byte in range(256) if byte not in letters]
    letters |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return [letters[byte] for byte in range(256)]


def vocabulary() -> list[str]:
    """Bytes, words with and without a space before them, runs of punctuation; no markers."""
    letters = byte_letters()
    known = json.loads(VOCABULARY.read_text("utf-8"))
    texts = [form for word in known["words"] for form in (word, f" {word}")]
    texts += [form for run in known["runs"] for form in dict.fromkeys((run, f" {run.lstrip()}"))]
    written = ["".join(letters[byte] for byte in text.encode()) for text in texts]
    return list(dict.fromkeys([*letters, *(text for text in written if len(text) > 1)]))


def tokenizer(markers: Sequence[str], special: Sequence[str]) -> dict[str, Any]:
    """What `tokenizer.json` holds.

    Args:
        markers: texts that are one token each and show in decoded text.
        special: texts that are one token each and are left out of decoded text unless asked for.
    """
    plain = vocabulary()
    known = {text: number for number, text in enumerate(plain)}
    hidden = list(dict.fromkeys([*OWN, *special]))
    added = [*hidden, *(marker for marker in dict.fromkeys(markers) if marker not in hidden)]
    fresh = [text for text in added if text not in known]
    ids = {**known, **{text: len(plain) + number for number, text in enumerate(fresh)}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": ids[text],
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": text in hidden,
            }
            for text in added
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": known,
            "merges": [],
        },
    }
