"""Defects of the list of models."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import in_body
from pytest_vllm.sim.defects.make import answers, spoil
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import MODELS, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange

HERE = (MODELS,)

TOLD = {"area": "profile", "catches": ["models.entry.context-length-agrees"]}

spoil(
    "models.empty", "No model is listed.", HERE, "data", [], area="profile", catches=["models.list.not-empty"]
)
spoil(
    "models.created-milliseconds",
    "`created` counts milliseconds.",
    HERE,
    "data.*.created",
    lambda at: at * 1000,
    catches=["models.list.created"],
)
spoil(
    "models.length-missing",
    "No entry tells its context length.",
    HERE,
    "data.*.max_model_len",
    catches=["models.entry.context-length", "models.entry.context-length-agrees"],
)
spoil(
    "models.length-other",
    "The context length is another model's.",
    HERE,
    "data.*.max_model_len",
    131072,
    **TOLD,
)
spoil(
    "models.object-other",
    "Entries are no models.",
    HERE,
    "data.*.object",
    "engine",
    catches=["models.list.schema"],
)
spoil(
    "models.parent-lost",
    "Entries have a parent that is not listed.",
    HERE,
    "data.*.parent",
    "base-model",
    catches=["models.entry.parent"],
)
answers(
    "models.crashes",
    "The list of models is a server error.",
    HERE,
    500,
    b'{"error":{"message":"busy"}}',
    catches=["models.answered"],
)


def _twice(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if isinstance(body.get("data"), list):
        body["data"] = [*body["data"], *body["data"]]


def _renamed(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in body.get("data") or ():
        entry.update(id=f"{entry['id']}-latest", root="", x_tier="gold")


def _bare(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for entry in body.get("data") or ():
        entry.update(root="", created=0)


in_body("models.bare", "Entries tell neither root nor time.", HERE, _bare, catches=["models.list.created"])
in_body("models.twice", "Every model is listed twice.", HERE, _twice, catches=["models.list.unique"])
in_body(
    "models.renamed",
    "Models are listed under names that nobody serves.",
    HERE,
    _renamed,
    area="profile",
    catches=["models.entry.served-name"],
)


def _growing() -> Callable[[Any, Exchange], Any]:
    asked = count(2)

    def changing(body: Any, exchange: Exchange) -> Any:
        if exchange.path == MODELS and isinstance(body, dict) and body.get("data"):
            first = body["data"][0]
            body["data"] = [*body["data"], {**first, "id": f"{first['id']}-{next(asked)}"}]
        return body

    return changing


add(
    "models.changes",
    "Each time another model is listed beside the first, as by processes that know different ones.",
    # `ready` too: recordings are rewritten one by one, only a server has a next time
    {"json": only(HERE, remembering(_growing)), "ready": lambda seconds, _: seconds},
    catches=["models.list.stable"],
)
