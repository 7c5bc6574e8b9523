"""What the server's log says of its settings."""

import re

from pytest_vllm import ENVIRONMENT, MUST, Profile, check, only_if

Log = tuple[tuple[float, str], ...]
UNKNOWN = re.compile(r"Unknown vLLM environment variable(?: detected)?: (\w+)")


@check(
    "profile.log.variables-known",
    MUST,
    spec="fault:spark-arena/recipe-registry/issues/17",
    family=ENVIRONMENT,
)
def test_variables_known(vllm_profile: Profile, vllm_log: Log) -> None:
    """Every VLLM_ variable that the profile sets is one that this version reads."""
    only_if(vllm_log, "there is no log: the server was not started here")
    unknown = {name for _, line in vllm_log for name in UNKNOWN.findall(line)}
    wrong = sorted(unknown & set(vllm_profile.server.env))

    assert not wrong, f"without effect in this version: {', '.join(wrong)}"
