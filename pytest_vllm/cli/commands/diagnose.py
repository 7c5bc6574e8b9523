"""Why a server did not start, from its log."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.cli.command import JSON, argument, command, flag

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "diagnose",
    argument("LOG", "a file, - for stdin, container:NAME or unit:NAME"),
    flag("--hung", "the server still runs, and its start does not go on"),
    JSON,
)
def diagnose(given: Namespace) -> int:
    """Name the cause of a failed start from the server's log.

    The exit status is 0 where no fault is found, 1 otherwise.
    """
    from pytest_vllm.launch.diagnose_command import place_given, read_log, rendered
    from pytest_vllm.launch.diagnosis import Sure
    from pytest_vllm.launch.diagnosis import diagnose as diagnosed
    from pytest_vllm.report.tables import print_json
    from pytest_vllm.report.text import printable

    lines = read_log(given.log)
    found = diagnosed(lines, hung=given.hung or None, place=place_given(given.log, lines))
    if given.json:
        print_json(found.plain())
    else:
        lines = "\n".join(rendered(found)).split("\n")
        print("\n".join(map(printable, lines)))
    return int(found.sure is not Sure.NO_FAULT)
