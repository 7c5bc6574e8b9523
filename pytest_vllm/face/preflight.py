"""`--vllm-preflight`: what static rules and vLLM's own argument parser say of the profiles of a run.

Starts no server, writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face.profiles import load_profiles
from pytest_vllm.launch.question import question
from pytest_vllm.preflight import Severity, judge
from pytest_vllm.preflight.inspect import inspect_host
from pytest_vllm.preflight.judged import findings_in
from pytest_vllm.preflight.render import lines, summary
from pytest_vllm.preflight.roofline import Roofline
from pytest_vllm.profile.derived import figures_of

if TYPE_CHECKING:
    from pytest_vllm.face.options import Options


def preflight(config: pytest.Config, options: Options) -> int:
    """Print the findings of every profile; the exit status is 1 when one of them is an error."""
    if not (options.profiles or options.source):
        raise pytest.UsageError(
            "--vllm-preflight checks a profile: pass --vllm-profile=NAME or --vllm-from=FILE"
        )
    notes: list[str] = []
    profiles = load_profiles(options, config.rootpath, notes)
    for note in notes:
        print(f"vllm: {note}")
    wrong = False
    for profile in profiles.values():
        reply = question(profile)
        if reply is not None:
            print(f"vllm: {profile.name}: {reply.line}")
        said = judge(profile, config.rootpath, inspect_host(profile), reply)
        found = findings_in(said)
        figures = figures_of(profile, config.rootpath)
        expected = [f"{profile.name}: {line}" for line in Roofline(figures).lines()] if figures else []
        for line in (*lines(found, profile), *expected, summary(said, profile)):
            print(line)
        wrong = wrong or any(one.severity is Severity.ERROR for one in found)
    return int(pytest.ExitCode.TESTS_FAILED if wrong else pytest.ExitCode.OK)
