"""`preflight`: a profile, checked before anything is started."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.cli.command import JSON, ROOTDIR, UsageError, argument, command, flag, option, project_root

if TYPE_CHECKING:
    from argparse import Namespace

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.profile.reply import Reply


@command(
    "preflight",
    argument("NAME", "a profile's name, or a path to one", nargs="?", default=""),
    ROOTDIR,
    JSON,
    flag("--rules", "print every rule as a Markdown table"),
    option("--fix", "FILE", "write the corrected profile here: its own file or a new one", type=Path),
    option("--sarif", "FILE", "write SARIF 2.1.0 here, for code hosts", type=Path),
    flag("--host", "look at this machine too: GPUs, memory, ports, other servers"),
    flag("--ask", "ask the profile's own vLLM too, in its image or Python: whether it takes the arguments"),
)
def preflight(given: Namespace) -> int | None:
    """Check a profile statically; starts no server.

    The exit status is 1 when there are errors.
    """
    from pytest_vllm.locate import VERSION
    from pytest_vllm.preflight import command as rules
    from pytest_vllm.preflight import render
    from pytest_vllm.preflight.judged import findings_in
    from pytest_vllm.report.tables import print_json

    if given.rules:
        print(render.catalogue())
        return None
    if not given.name:
        raise UsageError("which profile? pytest-vllm preflight NAME (pytest-vllm profiles lists them)")
    root = project_root(given.rootdir)
    profile, said = rules.judged(
        given.name, root, host=given.host, ask=_reply if given.ask else lambda _: None
    )
    found = findings_in(said)
    if given.sarif is not None:
        rules.write_sarif(found, profile, root, VERSION, given.sarif)
    if given.json:
        print_json(render.judgement(said, profile))
    else:
        print("\n".join([*render.lines(found, profile), render.summary(said, profile)]))
    if given.fix is not None:
        lines = rules.write_fixed(given.name, root, found, given.fix)
        print("\n".join(lines), file=sys.stderr if given.json else sys.stdout)
    return rules.exit_status(found)


def _reply(profile: Profile) -> Reply | None:
    """What the profile's own vLLM says, reported on stderr; None for a profile that starts none."""
    from pytest_vllm.launch.question import question

    reply = question(profile)
    if reply is not None:
        print(f"{profile.name}: {reply.line}", file=sys.stderr)
    return reply
