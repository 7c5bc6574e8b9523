"""What an exchange needs is read off its request; what does not fit is not sent, and is nobody's fault."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.run.needs import needs_of, unmet
from pytest_vllm.wire.recording import Request
from pytest_vllm.wire.server import Capability, Server


def server(**can: bool) -> Server:
    """A server of 256 tokens that has what is named."""
    found = {name: Capability(name, present, "probed") for name, present in can.items()}
    return Server("http://x", "m", max_model_len=256, capabilities=found)


@pytest.mark.parametrize(
    ("path", "body", "needs"),
    [
        ("/v1/chat/completions", {"messages": []}, ("chat",)),
        (
            "/v1/chat/completions",
            {"messages": [], "stream": True, "tools": [{}]},
            ("chat", "stream", "tools"),
        ),
        ("/v1/completions", {"prompt": "Hi"}, ("completions",)),
        ("/v2/rerank", {"query": "Hi", "documents": []}, ("rerank",)),
        ("/tokenize", {"messages": []}, ("tokenize", "chat")),
        ("/tokenize", {"prompt": "Hi"}, ("tokenize",)),
        ("/health", {}, ()),
    ],
)
def test_route_and_fields_say_what_is_needed(path: str, body: dict[str, Any], needs: tuple[str, ...]) -> None:
    assert needs_of(Request("POST", path, json=body, expect=200)) == needs


def test_a_request_that_is_to_be_refused_needs_its_route_alone() -> None:
    request = Request("POST", "/v1/chat/completions", json={"stream": True, "tools": [{}]}, expect=400)

    assert needs_of(request) == ("chat",)


def test_what_the_server_lacks_is_named_and_what_was_not_probed_is_not() -> None:
    request = Request("POST", "/v1/chat/completions", json={"stream": True}, expect=200)

    assert unmet(request, server(chat=False, stream=True)) == "the server has no chat"
    assert unmet(request, server(chat=True, stream=True)) == ""
    assert unmet(request, server()) == ""
