"""Known faults of vLLM itself, as waivers that hold for every real server of their version range."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.model import Profile, Waiver
from pytest_vllm.profile.parsers import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping


def known_faults() -> list[Waiver]:
    """The waivers of `fixtures/waivers/vllm.toml`."""
    text = (data_dir("fixtures") / "waivers" / "vllm.toml").read_text("utf-8")
    return [Waiver.model_validate(row) for row in tomllib.loads(text)["waive"]]


def parser_faults(args: Mapping[str, Any]) -> list[Waiver]:
    """The waivers of `fixtures/waivers/parsers.toml` for the parsers that these serve arguments name."""
    text = (data_dir("fixtures") / "waivers" / "parsers.toml").read_text("utf-8")
    tool, reasoning = (args.get(key) or NONE for key in ("tool-call-parser", "reasoning-parser"))
    beside = {f"tool:{tool}": reasoning, f"reasoning:{reasoning}": tool}
    found = []
    for row in tomllib.loads(text).get("waive", ()):
        given = {key: value for key, value in row.items() if key not in {"parser", "beside", "checks"}}
        if row["parser"] in beside and row.get("beside") in {None, beside[row["parser"]]}:
            found += [Waiver.model_validate({"check": check, **given}) for check in row["checks"]]
    return found


def with_known_faults(profile: Profile) -> Profile:
    """The profile, its waivers followed by the known faults of vLLM unless it wants them to count.

    The simulator has no fault that nobody asked for, so nothing is waived there.
    """
    if profile.server.kind.simulated or profile.expect.known_faults == "fail":
        return profile
    waived = {one.check for one in profile.waive}
    parsers = parser_faults(profile.server.args) if profile.server.scripted else []
    more = [*known_faults(), *(one for one in parsers if one.check not in waived)]
    return profile.model_copy(update={"waive": [*profile.waive, *more]})
