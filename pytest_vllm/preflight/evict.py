"""Makes other servers of models let go of their memory, where they have a polite way for it.

Only Ollama has: a request that keeps a model for no time unloads it, and the next one loads it again. Nothing
is ever killed or stopped; for all others the person is told what to do.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from pytest_vllm.preflight.inspect import find_tenants, get_json
from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.policy import Access, route_to
from pytest_vllm.wire.proxy import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_vllm.preflight.host import Tenant
    from pytest_vllm.profile.model import Profile

OLLAMA = "ollama"
#: Seconds for the answer to an unloading, and until `/api/ps` shows the model no more.
ANSWER, GONE = 10.0, 30.0
_LOOK_EVERY = 0.2


def shares_memory(profile: Profile) -> bool:
    """Whether the profile's server takes accelerator memory of this machine, which others may hold."""
    return profile.server.kind.starts_vllm and profile.hardware != "cpu"


def make_room(
    say: Callable[[str], None], *, evict: bool, ports: Mapping[str, Iterable[int]] | None = None
) -> tuple[Tenant, ...]:
    """Tell who else holds memory and what to do about it; with `evict`, do it. Returns who was found.

    Args:
        say: tells the person, one line each.
        evict: whether tenants that can unload are asked to.
        ports: where each kind of server is looked for; the usual ones unless given.
    """
    tenants = find_tenants(ports)
    for one in tenants:
        if evict and one.kind == OLLAMA:
            continue
        hint = ", or pass --vllm-evict-tenants" if one.kind == OLLAMA else ""
        say(f"{one} holds memory. {one.advice}{hint}")
    if evict:
        evicted(tenants, say)
    return tenants


def evicted(tenants: Iterable[Tenant], say: Callable[[str], None]) -> tuple[str, ...]:
    """Unload every model of every Ollama among them; a line for each, which is told too."""
    done = []
    for one in tenants:
        for model in one.models if one.kind == OLLAMA else ():
            fault = _unload(one.url, model)
            line = f"{model} of {one.kind} at {one.url} "
            line += f"could not be unloaded: {fault}" if fault else "was unloaded"
            done.append(line)
            say(line)
    return tuple(done)


def _unload(url: str, model: str) -> str:
    """Why the model is still there; empty when it is gone."""
    route = route_to(url, Access(proxy=NONE))
    body = json.dumps({"model": model, "keep_alive": 0}).encode()
    try:
        answer = ask(route, "/api/generate", timeout=ANSWER, method="POST", body=body)
    except OSError as error:
        return str(error) or type(error).__name__
    if answer.status != 200:
        return f"it answered {answer.status} {answer.text.strip()[:120]}".rstrip()
    until = time.monotonic() + GONE
    while model in _loaded(route.port):
        if time.monotonic() >= until:
            return f"/api/ps still lists it after {GONE:.0f} s"
        time.sleep(_LOOK_EVERY)
    return ""


def _loaded(port: int) -> list[str]:
    body = get_json(port, "/api/ps")
    models = body.get("models") if isinstance(body, dict) else None
    return [str(one.get("name", "")) for one in models or () if isinstance(one, dict)]
