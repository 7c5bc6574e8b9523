"""The server under test as exchanges and checks see it: facts and request builders, no connection."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.launchers import LAUNCHERS, LauncherKind
from pytest_vllm.facts.reach import request_fields
from pytest_vllm.facts.version import version_of
from pytest_vllm.wire.policy import Access
from pytest_vllm.wire.recording import Recording, Request, Undecided

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Capability:
    """Whether the server can do something, and how that is known."""

    name: str
    present: bool
    how: str


#: The oldest release that is held to everything: what came later is not asked of an unknown one.
ASSUMED = "0.20.0"
#: How a prompt says that the reasoning is over, in the form that most templates write.
CLOSED = "<think>\n</think>\n"
#: A log probability of zero, as rounding may leave it.
ROUNDED = 1e-6


@dataclass(frozen=True)
class Server:
    """A booted vLLM server.

    Args:
        url: base URL without `/v1`, no trailing slash.
        model: the served model name that requests use.
        version: vLLM's version as `/version` tells it, else as the profile does; "" when unknown.
        max_model_len: context length in tokens; None when `/v1/models` does not tell.
        max_num_seqs: how many requests the server batches, or takes at once if fewer; None when unknown.
        args: serve arguments by vLLM's flag names without dashes ("max-model-len": 4096).
        capabilities: by name.
        profile: the profile's name.
        launcher: what booted it: docker, podman, process, attach or sim.
        simulated: whether this is the simulator and no vLLM.
        api_key: the key requests carry; never printed.
        models: every id that `/v1/models` lists.
        named_by_id: whether its log probabilities name tokens by their ids (`--return-tokens-as-token-ids`).
        logits: whether its log probabilities are logits (`--logprobs-mode`).
        drafts: whether it decodes speculatively, by its arguments or, where nobody knows them, its metrics.
        templated: whether conversations are rendered by the chat template that `/tokenize` uses; gpt-oss's
            are not.
        closed: how a prompt says that the reasoning is over, by the marks that this server knows.
        access: what was said about the way to it: authorities, client certificate, proxy.
    """

    url: str
    model: str
    version: str = ""
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Capability] = field(default_factory=dict)
    profile: str = ""
    launcher: str = ""
    simulated: bool = False
    api_key: str | None = field(default=None, repr=False)
    models: tuple[str, ...] = ()
    named_by_id: bool = False
    logits: bool = False
    drafts: bool = False
    templated: bool = True
    closed: str = CLOSED
    access: Access = field(default_factory=Access, repr=False)

    @property
    def kind(self) -> LauncherKind:
        """What is known of its launcher; an unknown one attaches."""
        return LAUNCHERS.get(self.launcher, LAUNCHERS["attach"])

    @property
    def flags_known(self) -> bool:
        """Whether its serve arguments are known: it was started here, or somebody gave them."""
        return self.kind.starts or bool(self.args)

    @property
    def role(self) -> str | None:
        """Who speaks in chats, `assistant` unless the operator says otherwise; None where nobody knows."""
        return str(self.args.get("response-role") or "assistant") if self.flags_known else None

    def table(self, name: str) -> dict[str, Any]:
        """A flag that holds a table, which a profile writes as one or as JSON; empty where it holds none."""
        given = self.args.get(name)
        try:
            found = json.loads(given) if isinstance(given, str) else given
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def can(self, name: str) -> bool:
        """Whether the server has this capability."""
        capability = self.capabilities.get(name)
        return capability is not None and capability.present

    def is_logprob(self, value: object) -> bool:
        """Whether a value can be a log probability: finite, and zero at most unless logits are given."""
        number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        return number and (self.logits or value <= ROUNDED)  # type: ignore[operator]

    def shows_marks(self, path: str, asked: Any) -> bool:
        """Whether an answer goes on behind its own end, and parsers leave the special tokens of that in it.

        Parsers since vLLM 0.30 read the texts of special tokens; what is no mark of theirs stays.
        """
        body = asked if isinstance(asked, dict) else {}
        over = bool(body.get("ignore_eos") or body.get("min_tokens")) and path != "/v1/completions"
        return over and (self.can("tools") or self.can("reasoning"))

    @property
    def api_only(self) -> bool:
        """Whether something in front passes on the API alone: no health, version or metrics beside `/v1`."""
        return not self.kind.starts and not self.can("version")

    @property
    def nameless(self) -> bool:
        """Whether something in front keeps the version from clients, and no answer told it."""
        return not self.version and bool(self.capabilities) and self.api_only

    def kept(self, answer: Recording) -> bool:
        """Whether something in front keeps a page beside the API from clients: no vLLM refuses like that."""
        if self.kind.starts or answer.status not in (401, 403, 404) or answer.request.path.startswith("/v1/"):
            return False
        try:
            said = answer.json
        except Undecided:
            return True
        return not (isinstance(said, dict) and said.keys() & {"detail", "error"})

    def at_least(self, version: str) -> bool:
        """Whether the server runs that vLLM version or a newer one; an unknown one counts as the newest.

        One that is kept from clients may be an old one: it is held to what all have by now.
        """
        running, floor = version_of(ASSUMED if self.nameless else self.version), version_of(version)
        return running is None or floor is None or running >= floor

    def takes(self, path: str, *names: str) -> bool:
        """Whether the running version reads all these fields on that route; an unknown one as `at_least`."""
        version = ASSUMED if self.nameless else self.version
        known = request_fields(path, version if version_of(version) else "")
        return all(name in known for name in names)

    def taken(self, path: str, **params: Any) -> dict[str, Any]:
        """Those of these fields that the running version reads on that route."""
        return {name: value for name, value in params.items() if self.takes(path, name)}

    def chat(
        self, messages: str | Sequence[Mapping[str, Any]], *, expect: int | None = 200, **params: Any
    ) -> Request:
        """`POST /v1/chat/completions`, greedy unless told otherwise; a string becomes one user message."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return self.post("/v1/chat/completions", {"messages": list(messages), **params}, expect=expect)

    def completion(self, prompt: Any, *, expect: int | None = 200, **params: Any) -> Request:
        """`POST /v1/completions`. Greedy unless told otherwise."""
        return self.post("/v1/completions", {"prompt": prompt, **params}, expect=expect)

    def post(self, path: str, body: Mapping[str, Any], *, expect: int | None = 200) -> Request:
        """A POST with `model` and `temperature: 0` filled in where the body leaves them out.

        A server that names tokens by their ids is asked for their texts. Where a completion's prompt
        ends the reasoning as most templates do, it does so in the server's own form.
        """
        defaults: dict[str, Any] = {"model": self.model}
        if path == "/v1/completions" and self.closed != CLOSED:
            body = {**body, "prompt": _closed(body.get("prompt"), self.closed)}
        if path.startswith(("/v1/chat/completions", "/v1/completions")):
            defaults["temperature"] = 0
            scored = body.get("logprobs")  # 0 of a completion is one, and no False
            if self.named_by_id and scored is not None and scored is not False:
                defaults["return_tokens_as_token_ids"] = False
        return Request("POST", path, json={**defaults, **body}, expect=expect)

    def get(self, path: str, *, expect: int | None = 200) -> Request:
        """A GET."""
        return Request("GET", path, expect=expect)


def _closed(prompt: Any, form: str) -> Any:
    """A prompt, or several, in which that form ends the reasoning."""
    if isinstance(prompt, list):
        return [_closed(one, form) for one in prompt]
    return prompt.replace(CLOSED, form) if isinstance(prompt, str) else prompt
