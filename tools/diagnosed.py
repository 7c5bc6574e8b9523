"""How many logs `pytest-vllm diagnose` names rightly: `python -m tools.diagnosed [FILE.toml …]`.

A file holds cases as `tests/unit/launch/logs/unseen-*.toml` do: `log`, `right` (the causes that are right;
"unknown" where the log does not hold it) and, where the server still runs, `hung`. Without files: those.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

from pytest_vllm.launch.diagnosis import diagnose

OWN = Path(__file__).parents[1] / "tests/unit/launch/logs"


def counted(path: Path) -> Counter[str]:
    """Of one file's logs, how many were named "right", "unknown" and "wrong"; the wrong ones are printed."""
    counts: Counter[str] = Counter()
    for case in tomllib.loads(path.read_text("utf-8"))["case"]:
        found = diagnose(case["log"].splitlines(), hung=case.get("hung")).cause or "unknown"
        outcome = "right" if found in case["right"] else "unknown" if found == "unknown" else "wrong"
        counts[outcome] += 1
        if outcome != "right":
            print(f"{outcome}: {case['thread']}: {found}, not {' or '.join(case['right'])}")
    return counts


def main(words: list[str]) -> int:
    """Count, and say it in one line."""
    paths = [Path(word) for word in words] or sorted(OWN.glob("unseen-*.toml"))
    total = sum((counted(path) for path in paths), Counter[str]())
    print(f"{total.total()} logs: {total['right']} right, {total['unknown']} unknown, {total['wrong']} wrong")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
