"""Which of several vLLM servers in one file is meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.secrets import redacted, secret_name
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_vllm.profile.importers.origin import ImportProblem, Origin

SERVICE = "--vllm-service"
_LONGEST = 60


@dataclass(frozen=True)
class Candidate:
    """A vLLM server that a file describes: what it is called there, its line, and what tells it apart."""

    name: str
    line: int
    apart: str = ""


def apart(commands: Sequence[Sequence[str]]) -> list[str]:
    """What tells commands apart, for each: the words at which it differs, after the option that they follow.

    Args:
        commands: words of each.
    """
    if len({len(words) for words in commands}) != 1:
        return [
            _shown(words, [at for at, word in enumerate(words) if _is_rare(word, commands)])
            for words in commands
        ]
    differing = [at for at, words in enumerate(zip(*commands, strict=True)) if len(set(words)) > 1]
    return [_shown(words, differing) for words in commands]


def _is_rare(word: str, commands: Sequence[Sequence[str]]) -> bool:
    return any(word not in words for words in commands)


def _shown(words: Sequence[str], places: Sequence[int]) -> str:
    """The words at some places, no longer than a line bears, secrets left out."""
    said = []
    for at in places:
        value = at and words[at - 1].startswith("-") and not words[at].startswith("-")
        before = words[at - 1] if value else ""
        follows = at + 1 in places and words[at].startswith("-") and not words[at + 1].startswith("-")
        if not follows and words[at].isprintable() and not secret_name(before.lstrip("-")):
            said.append(f"{before} {words[at]}".strip())
    text = redacted(" ".join(said))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def parted(names: Sequence[str], wanted: str | None, others: Iterable[str] = ()) -> tuple[str | None, str]:
    """What was asked for, as a name and the name of a server within that: `llm/2` is the second in `llm`.

    Args:
        names: what runs vLLM.
        wanted: the name that was asked for, if any.
        others: names of what does not run vLLM.
    """
    if wanted is None or wanted in names or wanted in others:
        return wanted, ""
    for name in names:
        if wanted.startswith(f"{name}/"):
            return name, wanted.removeprefix(f"{name}/")
    return (names[0], wanted) if len(names) == 1 else (wanted, "")


def pick(
    origin: Origin,
    candidates: Sequence[Candidate],
    wanted: str | None,
    what: str,
    others: Sequence[str] | Mapping[str, str] = (),
) -> int:
    """The index of the one that is meant. Raises ImportProblem for none, and for a choice nobody made.

    Args:
        origin: what messages name.
        candidates: the servers that run vLLM.
        wanted: the name that was asked for, if any.
        what: what one is called: `service`, `container`.
        others: names of those that do not run vLLM; with what they start instead, where that is known.
    """
    names = [one.name for one in candidates]
    if wanted is not None and wanted in names:
        return names.index(wanted)
    if not names:
        starts = others if isinstance(others, Mapping) else {}
        named = [f"{one} ({starts[one]})" if starts.get(one) else one for one in others]
        found = f"; there {'are' if len(others) > 1 else 'is'} {', '.join(named)}" if others else ""
        raise origin.problem(0, f"no {what} runs vLLM here{found}", "name the file that starts vLLM")
    if wanted is not None and wanted in others:
        raise origin.problem(
            0, f"the {what} {wanted!r} does not run vLLM", f"one that does: {', '.join(names)}"
        )
    if wanted is not None:
        raise origin.problem(0, unknown(what, wanted, names))
    if len(names) > 1:
        places = ", ".join(
            f"{one.name} (line {one.line}{f', {one.apart}' if one.apart else ''})" for one in candidates
        )
        raise origin.problem(
            candidates[0].line, f"{len(names)} {what}s run vLLM: {places}", f"say which: {SERVICE}=NAME"
        )
    return 0


def runs_none(problem: ImportProblem) -> bool:
    """Whether a problem is that no command of a script runs vLLM, as `pick` says it."""
    return "no command runs vLLM here" in str(problem)


def runs_several(problem: ImportProblem) -> bool:
    """Whether a problem is that several run vLLM and nobody said which, as `pick` says it."""
    return " run vLLM: " in str(problem)
