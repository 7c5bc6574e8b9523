"""What a server may refuse it refuses in words of its own, not by an error of its program."""

from __future__ import annotations

import re

from pytest_vllm import MUST, Recordings, check, listed, observe

from .answers import ODD

#: How Python reports that a program went wrong; a template's (`'None' has no`) are not here.
PROGRAM = re.compile(
    r"' object has no attribute '|index out of range|object is not (?:subscriptable|callable)"
    r"|unexpected keyword argument|missing \d+ required|values? to unpack|StopIteration|KeyError"
    r"|Failed to apply |Out of range float|not JSON serializable|Traceback \(most recent"
)


@check("oracle.refused.words", MUST, spec="fault:vllm-project/vllm/issues/44538", exchanges=["*"])
def test_words(vllm_recordings: Recordings) -> None:
    """A usual request that is refused is refused in words, not by a program's error."""
    usual = [one for one in vllm_recordings.of("") if one.request.expect is None]
    refused = [one for one in usual if 400 <= (one.status or 0) < 500 and not one.key.startswith(ODD)]
    observe("usual requests that were refused", f"{len(refused)} of {len(usual)}")
    wrong = [f"{one.key}: {one.status} {one.text[:120]}" for one in refused if PROGRAM.search(one.text)]

    assert not wrong, listed(wrong)
