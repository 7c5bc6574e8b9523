"""A byte-level tokenizer with merges: small, but a real one.

Every text has one tokenisation and comes back unchanged. Bytes of characters outside ASCII stay single
tokens, so such characters span tokens and the text must be put together incrementally, as with real models.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import cache
from pathlib import Path

#: Runs are cut at 40 characters: merging costs the square of a word's length.
WORDS = re.compile(r"'(?:[stmd]|ll|re|ve)| ?[^\W\d_]{1,40}|\d| ?(?:[^\s\w]|_){1,40}|\s{1,40}(?!\S)|\s{1,40}")

#: Markers that are one token each, in order of id; the first two groups never show in text.
HIDDEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKERS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "<\uff5ctool\u2581call\u2581begin\uff5c>",
    "<\uff5ctool\u2581sep\uff5c>",
    "<\uff5ctool\u2581call\u2581end\uff5c>",
    "<\uff5ctool\u2581calls\u2581end\uff5c>",
    "<|vision_start|>",
    "<|image_pad|>",
    "<|vision_end|>",
)
SPECIALS = 64
BOS, EOS = 0, 2
VOCABULARY = Path(__file__).with_name("vocabulary.json")


class Tokenizer:
    """Text to token ids and back.

    `bytes_of[i]` are the bytes of token i; ids below 64 are markers, then come 256 single bytes, then merges.
    """

    def __init__(self, merges: list[bytes]) -> None:
        """Take the merged pieces in order of rank."""
        specials = [*HIDDEN, *MARKERS]
        specials += [f"<|reserved_{number}|>" for number in range(SPECIALS - len(specials))]
        self.bytes_of = [text.encode() for text in specials]
        self.bytes_of += [bytes([byte]) for byte in range(256)]
        self.bytes_of += merges
        self.size = len(self.bytes_of)
        self.ranks = {piece: id_ for id_, piece in enumerate(self.bytes_of) if id_ >= SPECIALS}
        self.special_ids = {text: id_ for id_, text in enumerate(specials)}
        self.hidden = frozenset(range(len(HIDDEN))) | frozenset(range(len(HIDDEN) + len(MARKERS), SPECIALS))
        self.longest = max(len(piece) for piece in self.bytes_of)
        self._special = re.compile("(" + "|".join(re.escape(text) for text in specials) + ")")
        self._words: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, *, specials: bool = True) -> list[int]:
        """Token ids of a text; markers in it become their own token unless `specials` is false."""
        if not specials:
            return self._plain(text)
        ids: list[int] = []
        for number, part in enumerate(self._special.split(text)):
            if number % 2:
                ids.append(self.special_ids[part])
            elif part:
                ids += self._plain(part)
        return ids

    def decode(self, ids: list[int], *, skip_specials: bool = True) -> str:
        """The text of token ids; unknown ids and, unless told otherwise, hidden markers give nothing."""
        skip = self.hidden if skip_specials else frozenset()
        size = self.size
        return b"".join(self.bytes_of[id_] for id_ in ids if id_ < size and id_ not in skip).decode(
            errors="replace"
        )

    def pieces(self, ids: list[int], *, skip_specials: bool = True) -> list[str]:
        """The text each token adds when decoded one after the other.

        A token that ends inside a character adds nothing; the one that completes it adds the character.
        """
        skip = self.hidden if skip_specials else frozenset()
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        return ["" if id_ in skip or id_ >= self.size else decoder.decode(self.bytes_of[id_]) for id_ in ids]

    def token_text(self, id_: int) -> str:
        """One token alone as text; broken characters become U+FFFD."""
        return self.bytes_of[id_].decode(errors="replace") if id_ < self.size else ""

    def _plain(self, text: str) -> list[int]:
        ids: list[int] = []
        known = self._words
        for word in WORDS.findall(text):
            found = known.get(word)
            if found is None:
                found = known[word] = tuple(self._merge(word.encode("utf-8", errors="surrogatepass")))
            ids += found
        return ids

    def _merge(self, word: bytes) -> list[int]:
        ranks = self.ranks
        if word in ranks:
            return [ranks[word]]
        parts = [bytes([byte]) for byte in word]
        while len(parts) > 1:
            best, at = min((ranks.get(parts[i] + parts[i + 1], self.size), i) for i in range(len(parts) - 1))
            if best == self.size:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [ranks[part] for part in parts]


@cache
def load() -> Tokenizer:
    """The simulator's tokenizer."""
    return Tokenizer([piece.encode("latin-1") for piece in json.loads(VOCABULARY.read_text("utf-8"))])
