"""Known faults of vLLM itself, as waivers that hold for every real server of their version range."""

from __future__ import annotations

import tomllib

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.model import Profile, Waiver


def known_faults() -> list[Waiver]:
    """The waivers of `fixtures/waivers/vllm.toml`."""
    text = (data_dir("fixtures") / "waivers" / "vllm.toml").read_text("utf-8")
    return [Waiver.model_validate(row) for row in tomllib.loads(text)["waive"]]


def with_known_faults(profile: Profile) -> Profile:
    """The profile, its waivers followed by the known faults of vLLM unless it wants them to count.

    The simulator has no fault that nobody asked for, so nothing is waived there.
    """
    if profile.server.launcher == "sim" or profile.expect.known_faults == "fail":
        return profile
    return profile.model_copy(update={"waive": [*profile.waive, *known_faults()]})
