"""What YAML makes of the words of a command: a table where a text was meant, a number without quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.yamlnodes import Node

_TYPES = {bool: "a switch", int: "a number", float: "a number"}


def checked(draft: Draft, command: Node, whose: str) -> None:
    """Note words that are no text to YAML, which whoever reads the file refuses.

    Args:
        draft: what notes go to.
        command: the words, as a list.
        whose: who reads the file, such as `docker compose`.

    Raises:
        ImportProblem: a word is a table, a list or nothing, so that what was meant is not known.
    """
    for one in command.value if isinstance(command.value, list) else ():
        if not isinstance(one.value, str):
            shown = "nothing" if one.value is None else "a table or a list"
            what = f"a word of the command is {shown} to YAML, and {whose} refuses it"
            raise draft.origin.problem(one.line, what, "put quotes around it")
        no_text(draft, one, whose)


def no_text(draft: Draft, one: Node, whose: str) -> None:
    """Note a value that is a number or a switch to YAML where whoever reads the file wants text."""
    if found := _TYPES.get(type(one.plain)):
        what = f"{one.text} is {found} to YAML, and {whose} refuses it: put quotes around it"
        draft.note(one.line, what)
