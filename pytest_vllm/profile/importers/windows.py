"""PowerShell and batch scripts: their plain statements, said as a POSIX shell says them.

What hangs on a branch, a loop or another program is not worked out: a name that it sets is a name that is
not set, so that a command which uses it is refused. Sources: about_Quoting_Rules, about_Special_Characters,
`cmd /?`, `set /?`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.batchwords import batch_lines
from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.posixlines import Lines
from pytest_vllm.profile.importers.powershellwords import powershell_lines
from pytest_vllm.profile.importers.shell import read_shell

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin


def read_windows(origin: Origin, service: str | None) -> Draft:
    """The server that such a script starts. Raises ImportProblem as `read_shell` does."""
    lines = Lines()
    if _is_batch(origin):
        batch_lines(origin, lines)
    else:
        powershell_lines(origin, lines)
    draft = read_shell(replace(origin, text=lines.text), service)
    for line, text in lines.left:
        draft.lost(line, f"`{text}`")
    for line, text in lines.notes:
        draft.note(line, text)
    ledger = Ledger()
    for line, text in lines.idle:
        ledger.idle(line, text)
    ledger.close(draft)
    return draft


def _is_batch(origin: Origin) -> bool:
    if origin.shown.lower().endswith((".bat", ".cmd")):
        return True
    named = origin.shown.lower().endswith(".ps1")
    batch = r"^[ \t]*@?(?:echo off|setlocal|rem\b|set \"?\w+=)|\^[ \t]*$|%\w+%"
    return not named and re.search(batch, origin.text, re.MULTILINE | re.IGNORECASE) is not None
