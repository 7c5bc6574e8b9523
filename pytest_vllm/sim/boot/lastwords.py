"""What vLLM prints when it does not start: the traceback's frame, and the message where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.boot import log
from pytest_vllm.sim.clock import Clock

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.boot.rules import Rule

_FAILED = "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}"


def last_words(rule: Rule, message: str, d: Deployment) -> list[str]:
    """The lines with which a start ends that a rule forbids."""
    if rule.stage == "arguments":
        return [*traceback("cli_args.py", "validate_parsed_serve_args"), f"{rule.exception}: {message}"]
    if rule.stage == "config":
        return [*traceback("arg_utils.py", "create_engine_config"), *_from_config(rule, message, d)]
    core = [
        "EngineCore failed to start.",
        *traceback("core.py", "run_engine_core"),
        f"{rule.exception}: {message}",
    ]
    wall = Clock().wall()
    lines = [log.formatted(("EngineCore", "ERROR", "core.py:1345", text), d, wall) for text in core]
    return [*lines, *traceback("utils.py", "wait_for_engine_startup"), f"RuntimeError: {_FAILED}"]


def _from_config(rule: Rule, message: str, d: Deployment) -> list[str]:
    if d.version < "0.10.0" or rule.exception != "ValueError":
        return [f"{rule.exception}: {message}"]
    return [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        f"  Value error, {message} [type=value_error, input_value=ArgsKwargs((), {{...}})]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/value_error",
    ]


def traceback(file: str, function: str) -> list[str]:
    """The head of a traceback, one frame long."""
    return [
        "Traceback (most recent call last):",
        f'  File "/usr/local/lib/python3.12/dist-packages/vllm/{file}", line 1, in {function}',
    ]
