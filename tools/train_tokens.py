"""Make the simulator's `vocabulary.json`: byte-pair merges of the standard library's docstrings.

Run `python -m tools.train_tokens` to write it again. Only statistics of English go in: the file
holds word pieces in order of rank. The counts depend on the Python version, so it is made once and kept.
"""

from __future__ import annotations

import ast
import json
import sysconfig
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

from pytest_vllm.sim.tokens.tokenizer import VOCABULARY, WORDS

MERGES = 3776
TARGET = VOCABULARY


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
        for pair in pairwise(parts):
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
            old = pieces[word]
            pieces[word] = new = joined(old, best)
            for pair in pairwise(old):
                pairs[pair] -= counts[word]
            for pair in pairwise(new):
                pairs[pair] += counts[word]
                where[pair].add(word)
        del pairs[best]
    return learnt


def joined(parts: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """The parts with every occurrence of a pair made one."""
    made: list[bytes] = []
    at = 0
    while at < len(parts):
        size = 2 if tuple(parts[at : at + 2]) == pair else 1
        made.append(b"".join(parts[at : at + size]))
        at += size
    return made


if __name__ == "__main__":
    learnt = merges(words(), MERGES)
    TARGET.write_text(json.dumps([piece.decode("latin-1") for piece in learnt], ensure_ascii=True) + "\n")
