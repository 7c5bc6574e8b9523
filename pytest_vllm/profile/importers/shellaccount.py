"""What became of every part of a script: used, noted, or without effect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.shellalternatives import apart
from pytest_vllm.profile.importers.shellvalue import LEFT_EMPTY, NO_ARGUMENTS, NOT_THERE
from pytest_vllm.profile.importers.vllmline import PINNED

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shellrun import Run
    from pytest_vllm.profile.importers.shellvalue import Remark, Value
    from pytest_vllm.profile.importers.shellwalk import Start

_UNSET = re.compile(r"(\S+) is not set")
#: A name that is not set, and that an environment can set.
_SETTABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}? is not set(?:;|: it is left empty|$)")
_LACKS = "lacks its value"

_INSTALLS = re.compile(r"`(?:\S*/)?(?:python3? -m |uv )?pip3? install\b")


def emitted(draft: Draft, value: Value, *, lenient: bool = False) -> str:
    """The text of a value that is used, its remarks noted. Raises ImportProblem for one that is not known.

    Args:
        draft: what notes go to.
        value: the value.
        lenient: what is not known is left empty, as a shell does.
    """
    for remark in value.remarks:
        if remark.fatal and not lenient:
            what, _, fix = remark.text.partition("; ")
            raise draft.origin.problem(remark.line, what, fix)
        text = f"{remark.text.partition(';')[0]}{LEFT_EMPTY}" if remark.fatal else remark.text
        draft.note(remark.line, text)
    return value.text


def explained(
    origin: Origin, said: tuple[Remark, ...], problem: ImportProblem, needed: Remark | None = None
) -> ImportProblem:
    """A problem with the names that became nothing before it; or with what ends the script before that."""
    if needed is not None:
        what, _, fix = needed.text.partition("; ")
        return origin.problem(needed.line, what, fix)
    left = [one for one in said if one.text.endswith(LEFT_EMPTY)]
    if LEFT_EMPTY in problem.what or re.search(r" (?:is|are) not set", problem.what):
        return problem
    if not left:
        asked = any(one.text == NO_ARGUMENTS for one in said) and _LACKS in problem.what
        what, _, fix = problem.what.rpartition("; ")
        return origin.problem(said[0].line, f"{NO_ARGUMENTS}, and so {what}", fix) if asked else problem
    what, fix = unset_names([one.text.removesuffix(LEFT_EMPTY) for one in left])
    if not fix:
        return origin.problem(left[0].line, f"{left[0].text}, and so {problem.what}")
    return origin.problem(left[0].line, f"{what}, and so {problem.what.rpartition('; ')[0]}", fix)


def sourced(problem: ImportProblem, notes: Sequence[Remark]) -> ImportProblem:
    """A problem of a name that is not set, with the file that may set it and is not there."""
    lost = [one for one in notes if one.text.endswith(NOT_THERE)]
    if not lost or not re.search(r" (?:(?:is|are) not|has to be) set", problem.what):
        return problem
    return ImportProblem(f"{problem}; line {lost[0].line}: {lost[0].text}")


def unset_names(remarks: Sequence[str]) -> tuple[str, str]:
    """`$A and $B are not set` and what sets them, of remarks that say it of one name each; else nothing."""
    names = list(dict.fromkeys(found[1] for one in remarks if (found := _UNSET.match(one))))
    if len(names) < 2:
        return "", ""
    sets = " ".join(f"{one.strip('${}')}=…" for one in names)
    return f"{', '.join(names[:-1])} and {names[-1]} are not set", f"export {sets} where pytest runs"


def known_words(origin: Origin, chosen: Start) -> None:
    """Refuse a command for all of the names in it at once that are not set, where these are several."""
    found = [one for value, _ in chosen.words for one in value.remarks if one.fatal]
    what, fix = unset_names([one.text for one in [*chosen.said, *found] if _SETTABLE.match(one.text)])
    if what and found and _SETTABLE.match(found[0].text):
        raise origin.problem(found[0].line, what, fix)


def account(draft: Draft, run: Run, chosen: Start, used: set[Hashable], why: str = "") -> None:
    """Note whatever of a script did not reach the draft.

    Args:
        draft: what notes go to.
        run: the script, followed.
        chosen: the command that was read.
        used: the assignments that it came from.
        why: said of commands that are run besides.
    """
    ledger = _ledger(run, used | chosen.state.said)
    for remark in (*chosen.said, *chosen.state.asides):
        draft.note(remark.line, remark.text)
    _left_behind(draft, run, why)
    for one in run.starts:
        if one.node != chosen.node and apart(chosen, one):
            draft.note(one.line, _instead(chosen, one))
        elif one.node != chosen.node and one.texts != chosen.texts:
            draft.lost(one.line, f"`{' '.join(one.texts[:6])}`{why}")
    _circumstances(draft, chosen)
    ledger.close(draft)


def besides(draft: Draft, run: Run) -> None:
    """Note whatever a script does besides writing the file that was read."""
    _left_behind(draft, run, "")
    for one in run.starts:
        draft.lost(one.line, f"`{' '.join(one.texts[:6])}`")
    _ledger(run, set()).close(draft)


def _ledger(run: Run, used: set[Hashable]) -> Ledger:
    ledger = Ledger()
    for key, (line, name) in run.assigned.items():
        if key not in used:
            ledger.idle(line, name)
    for line, shown in run.idle:
        ledger.idle(line, shown)
    return ledger


def _left_behind(draft: Draft, run: Run, why: str) -> None:
    for written in [one for several in run.written.values() for one in several]:
        for remark in [one for one in written.text.remarks if not one.fatal]:
            draft.note(remark.line, remark.text)
    for remark in run.notes:
        draft.note(remark.line, remark.text)
    for line, text in run.others:
        draft.lost(line, f"{text}{why}")
    for line, text in run.left():
        draft.note(line, f"`{text}` is not understood, and not carried over")


def _instead(chosen: Start, other: Start) -> str:
    """What another arm starts, by the words that only one of the two has."""
    more = [one for one in other.texts if one not in chosen.texts]
    less = [one for one in chosen.texts if one not in other.texts]
    said = [f"with {' '.join(more)}"] if more else []
    said += [f"without {' '.join(less)}"] if less else []
    return f"it is started {' and '.join(said) or 'otherwise'} where {' and '.join(map(_plain, other.where))}"


def _plain(where: str) -> str:
    return re.sub(r"^otherwise \(line (\d+)\)", r"nothing that stands before line \1 holds", where)


def _cut(chosen: Start, line: int) -> str:
    """What a shell makes of a command that it ends at a comment, or at a blank behind a backslash."""
    lost = [value.text for value, at in chosen.words if at > line and value.text.startswith("-")]
    shown = " ".join(lost[:4]) + (" …" if len(lost) > 4 else "")
    if line in chosen.script.between:
        ends = f"a shell ends the command at this comment, and starts it without {shown or 'what follows'}"
    else:
        ends = (
            "a shell ends the command at the comment or blank behind the backslash: the program gets a blank "
            f"as an argument and ends on it, and never sees {shown or 'what follows'}"
        )
    return f"as it stands, it is another command: {ends}; it is read as meant, mend it before it is used"


def install(draft: Draft, run: Run) -> None:
    """The version of vLLM that commands before its start install, where it is one."""
    found = {
        (pinned[1], line)
        for line, text in run.others
        if _INSTALLS.match(text)
        for pinned in PINNED.finditer(text)
    }
    if len({version for version, _ in found}) == 1:
        version, line = min(found, key=lambda one: one[1])
        draft.set("version", version, line)
        draft.note(line, f"vLLM {version}, which is installed there, became the version")


def _circumstances(draft: Draft, chosen: Start) -> None:
    """On what the command hangs, and where a shell would have ended it."""
    if chosen.where:
        draft.note(chosen.line, f"it is started only where {' and '.join(map(_plain, chosen.where))}")
    first, last = chosen.line, chosen.script.line(chosen.node) + chosen.script.text(chosen.node).count("\n")
    lines = [line for line in chosen.script.mended if first <= line <= last]
    if lines:
        draft.note(lines[0], _cut(chosen, lines[0]))
