"""Why an answer with calls ended, in both modes."""

from pytest_vllm import MUST, Case, Recording, Server, check, need, only_if

from .gathered import ended

SPEC = "fault:vllm-project/vllm/pull/25054"
NEEDS = ("tools.required", "stream")
#: A named call ends with `stop` in vLLM and with `tool_calls` elsewhere; both modes have to agree.
REASONS = {"required": ("tool_calls",), "named": ("stop", "tool_calls")}
OLD = "until 0.10.2 the reasons of forced calls differ by mode, as pull request 25054 lists"


@check("tools.finish.auto", MUST, spec=SPEC, needs=("tools",))
def test_auto(tools_auto_weather: Recording) -> None:
    """A call that the model makes of its own accord finishes with `tool_calls`."""
    said = ended(tools_auto_weather)
    need(said.calls, "the model made no call")

    assert said.finish == "tool_calls", f"{len(said.calls)} calls, finish_reason {said.finish!r}"


@check("tools.finish.auto-stream", MUST, spec=SPEC, needs=("tools", "stream"))
def test_auto_stream(tools_auto_weather_stream: Recording) -> None:
    """A streamed call of the model's own accord finishes with `tool_calls`."""
    said = ended(tools_auto_weather_stream)
    need(said.calls, "the model made no call")

    assert said.finish == "tool_calls", f"{len(said.calls)} calls, finish_reason {said.finish!r}"


@check("tools.finish.forced", MUST, spec=SPEC, needs=("tools.required",))
def test_forced(vllm_server: Server, forced_choice: Case, tools_forced_weather: Recording) -> None:
    """A forced call finishes with vLLM's reason for its tool choice."""
    only_if(vllm_server.at_least("0.11.0"), OLD)
    said, reasons = ended(tools_forced_weather), REASONS[forced_choice.id]
    need(said.calls, "no call was made")

    assert said.finish in reasons, f"{forced_choice.id}: finish_reason {said.finish!r}, not {reasons}"


@check("tools.finish.forced-stream", MUST, spec=SPEC, needs=NEEDS)
def test_forced_stream(
    vllm_server: Server, forced_choice: Case, tools_forced_weather_stream: Recording
) -> None:
    """A streamed forced call finishes with vLLM's reason for its tool choice."""
    only_if(vllm_server.at_least("0.11.0"), OLD)
    said, reasons = ended(tools_forced_weather_stream), REASONS[forced_choice.id]
    need(said.calls, "no call was made")

    assert said.finish in reasons, f"{forced_choice.id}: finish_reason {said.finish!r}, not {reasons}"


@check("tools.finish.parity", MUST, spec=SPEC, needs=NEEDS)
def test_parity(
    vllm_server: Server,
    forced_choice: Case,
    tools_forced_weather: Recording,
    tools_forced_weather_stream: Recording,
) -> None:
    """A stream finishes a forced call with the reason of the whole answer."""
    only_if(vllm_server.at_least("0.11.0"), OLD)
    whole, stream = ended(tools_forced_weather), ended(tools_forced_weather_stream)
    need(whole.calls and stream.calls, "not called in both modes")

    assert stream.finish == whole.finish, (
        f"{forced_choice.id}: streamed {stream.finish!r}, whole {whole.finish!r}"
    )
