"""How many tokens of context a request needs, or log probabilities, and whether the server has them.

A request that may be too long is counted by the server itself (`/tokenize`); where that is not possible, a
character of it counts as a token.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.run.needs import ROUTES
from pytest_vllm.run.shed import Shedding
from pytest_vllm.wire.recording import Request, Undecided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.wire.client import WireClient
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.server import Server

#: How vLLM names the context length in a refusal.
_CONTEXT = re.compile(r"maximum (?:context|model) length|max_model_len|context length", re.IGNORECASE)
#: How vLLM refuses more log probabilities than `--max-logprobs` allows: how many were asked for, and may be.
_SCORES = re.compile(r"logprobs of (\d+), which is (?:greater than|more than)[^0-9]*(\d+)", re.IGNORECASE)
#: A refusal is no longer than this; an answer in which such words stand is none.
_SHORT = 4096
#: Log probabilities that vLLM gives unless it is told otherwise.
MOST_SCORES = 20
#: Tokens that a chat template may add to what a request says: roles, instructions for tools, a date.
TEMPLATE = 300
#: What of a chat request its prompt is rendered from.
_RENDERED = (
    "messages",
    "tools",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "chat_template",
    "chat_template_kwargs",
)
_COUNT_SECONDS = 20.0

#: "Content Too Large": how proxies refuse a body that is longer than they take.
TOO_LARGE = 413


class Sizes:
    """What requests need of one server's context.

    Args:
        server: what it can do; its context is `max_model_len`.
        client: asks it to count.
    """

    def __init__(self, server: Server, client: WireClient) -> None:
        """Nothing is counted yet."""
        self.server, self.client, self.shedding = server, client, Shedding(server)

    async def taken(self, key: str, request: Request) -> Recording:
        """The answer to a request; what a server turns away that has too much in hand is asked again."""
        return await self.shedding.taken(self.client, key, request)

    async def too_big(self, request: Request) -> str:
        """Why a request is not sent, in words; empty when it fits, or when that is not known.

        Only one that is to be answered: what is meant to be refused, or may be, is sent.
        """
        limit = self.server.max_model_len
        if limit is None or request.expect != 200 or most(request) <= limit:
            return ""
        tokens = await self.counted(request)
        return _words(tokens + room(request.json), limit) if tokens is not None else ""

    def kept_out(self, recording: Recording) -> str:
        """What something in front refuses before the server can, in words; empty for what is to be answered.

        vLLM's own refusals are JSON. What fits the context and is too big for a proxy is a finding.
        """
        meant, ours = recording.request.expect != 200, self.server.kind.starts
        if recording.status != TOO_LARGE or not meant or ours or recording.text.lstrip().startswith("{"):
            return ""
        return "something in front of the server takes no request of that size"

    async def refused(self, recording: Recording) -> str:
        """What a refusal for a size says of this server; empty when it is none.

        A refusal of a request that fits for certain is evidence against the server and is left as it is.
        """
        if crowded := self.shedding.ended(recording):
            return crowded
        request, limit = recording.request, self.server.max_model_len
        meant = request.expect not in (200, None)
        if scores := _scored(recording, self.server):
            return scores
        if recording.status != 400 or meant or limit is None or not _CONTEXT.search(recording.text):
            return ""
        if most(request) <= limit:
            return ""
        tokens = await self.counted(request)
        return _words(most(request) if tokens is None else tokens + room(request.json), limit)

    async def counted(self, request: Request) -> int | None:
        """Tokens of the prompt; None where the server does not count them."""
        asked = counting(request)
        if asked is None or isinstance(asked, int):
            return asked
        if not self.server.can("tokenize"):
            return None
        answer = await self.client.send("size of a prompt", asked)
        try:
            count = answer.ok["count"]
        except (Undecided, LookupError, TypeError):
            return None
        # one that counts more tokens than there are characters is broken, and has a suite of its own
        return count if isinstance(count, int) and 0 < count <= most(request) else None


def _scored(recording: Recording, server: Server) -> str:
    """What a refusal of log probabilities says, by its status or as the event of a stream; empty for none.

    A server that is known to allow as many is not excused. One for more than any server gives unasked is
    meant to be refused, unless it says that it is to be served.
    """
    body, expected = recording.request.json, recording.request.expect
    if expected not in (200, None):
        return ""
    names = ("logprobs", "top_logprobs", "prompt_logprobs")
    asks = isinstance(body, dict) and any(body.get(name) not in (None, False) for name in names)
    if not asks or recording.status not in (200, 400) or len(recording.body) > _SHORT:
        return ""
    found = _SCORES.search(recording.text)
    asked, allowed = (int(found[1]), int(found[2])) if found else (0, 0)
    known = server.args.get("max-logprobs", MOST_SCORES) if server.flags_known else allowed
    if asked <= allowed or known == -1 or asked <= int(known) or (expected is None and asked > MOST_SCORES):
        return ""
    return f"it asks for {asked} log probabilities, the server gives {allowed} at most"


def _words(needed: int, limit: int) -> str:
    return f"it needs a context of {needed} tokens, the server has {limit}" if needed > limit else ""


def most(request: Request) -> int:
    """Tokens of context that a request can't need more than: a token for each byte, and its answer."""
    body = request.json
    ids = _ids(body)
    if ids is not None:
        return ids + room(body)
    template = TEMPLATE if isinstance(body, dict) and "prompt" not in body else 0
    return len(json.dumps(body, ensure_ascii=False).encode(errors="replace")) + template + room(body)


def room(body: Any) -> int:
    """Tokens that the answer may take, as far as the request says."""
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    limits = [body.get(name) for name in names] if isinstance(body, dict) else []
    return max((limit for limit in limits if isinstance(limit, int)), default=0)


def counting(request: Request) -> Request | int | None:
    """The request that counts another one's prompt, or the count of token ids; None where neither goes."""
    path, body = request.path.partition("?")[0], request.json
    if request.method != "POST" or path not in ROUTES or not isinstance(body, dict):
        return None
    text = json.dumps(body)
    if any(word in text for word in ('"image_url"', '"input_audio"', '"audio_url"', '"video_url"')):
        return None
    ids = _ids(body)
    if ids is not None:
        return ids
    given = {"model": body.get("model")}
    if path == "/v1/chat/completions":
        given |= {name: body[name] for name in _RENDERED if body.get(name) is not None}
    elif isinstance(body.get("prompt"), str) and not body.get("truncate_prompt_tokens"):
        given |= {"prompt": body["prompt"]}
    else:
        return None
    return Request("POST", "/tokenize", json=given, timeout=_COUNT_SECONDS, expect=None)


def _ids(body: Mapping[str, Any] | Any) -> int | None:
    """How many token ids the prompt is, the longest of several; None where it is text."""
    prompt = body.get("prompt") if isinstance(body, dict) else None
    if not isinstance(prompt, list) or not prompt:
        return None
    rows: list[Any] = prompt if isinstance(prompt[0], list) else [prompt]
    lengths = [len(row) for row in rows if isinstance(row, list) and all(type(one) is int for one in row)]
    return max(lengths) if len(lengths) == len(rows) and all(lengths) else None
