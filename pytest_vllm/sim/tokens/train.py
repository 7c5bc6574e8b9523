"""Make `vocabulary.json`: byte-pair merges learnt from the docstrings of Python's standard library.

Run `python -m pytest_vllm.sim.tokens.train` to write it again. Only statistics of English go in: the file
holds word pieces in order of rank. The counts depend on the Python version, so it is made once and kept.
"""

from __future__ import annotations

import ast
import json
import sysconfig
from collections import Counter, defaultdict
from pathlib import Path

from pytest_vllm.sim.tokens.tokenizer import WORDS

MERGES = 3776
TARGET = Path(__file__).with_name("vocabulary.json")


def words() -> Counter[bytes]:
    """How often each word occurs in the standard library's docstrings."""
    counts: Counter[bytes] = Counter()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_text("utf-8", errors="replace"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = (ast.get_docstring(node) or "").encode("ascii", "ignore").decode()
                counts.update(word.encode() for word in WORDS.findall(text))
    return counts


def merges(counts: Counter[bytes], number: int) -> list[bytes]:
    """The most frequent pairs, merged one after the other; ties go to the smaller bytes."""
    pieces = {word: [bytes([byte]) for byte in word] for word in counts if len(word) > 1}
    pairs: Counter[tuple[bytes, bytes]] = Counter()
    where: defaultdict[tuple[bytes, bytes], set[bytes]] = defaultdict(set)
    for word, parts in pieces.items():
        for pair in zip(parts, parts[1:], strict=False):
            pairs[pair] += counts[word]
            where[pair].add(word)
    learnt: list[bytes] = []
    known: set[bytes] = set()
    while len(learnt) < number:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merged = best[0] + best[1]
        if merged not in known:
            learnt.append(merged)
            known.add(merged)
        for word in sorted(where.pop(best)):
            _merge(word, best, pieces, pairs, where, counts[word])
        pairs.pop(best, None)
    return learnt


def _merge(
    word: bytes,
    best: tuple[bytes, bytes],
    pieces: dict[bytes, list[bytes]],
    pairs: Counter[tuple[bytes, bytes]],
    where: defaultdict[tuple[bytes, bytes], set[bytes]],
    count: int,
) -> None:
    old = pieces[word]
    new: list[bytes] = []
    at = 0
    while at < len(old):
        if at + 1 < len(old) and (old[at], old[at + 1]) == best:
            new.append(old[at] + old[at + 1])
            at += 2
        else:
            new.append(old[at])
            at += 1
    for pair in zip(old, old[1:], strict=False):
        pairs[pair] -= count
        if pairs[pair] <= 0:
            del pairs[pair]
    for pair in zip(new, new[1:], strict=False):
        pairs[pair] += count
        where[pair].add(word)
    pieces[word] = new


if __name__ == "__main__":
    learnt = merges(words(), MERGES)
    TARGET.write_text(json.dumps([piece.decode("latin-1") for piece in learnt], ensure_ascii=True) + "\n")
