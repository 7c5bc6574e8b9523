"""Whether a deployment is as the conditions of a known fault say; the table's head explains the values."""

from __future__ import annotations

from fnmatch import fnmatchcase
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.faults import PARTS
from pytest_vllm.preflight.deployment import TRUE, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.facts.faults import Condition
    from pytest_vllm.preflight.deployment import Deployment
    from pytest_vllm.profile.modelfile import ModelFile

_OFF = {"0", "false", "no", "off"}
_COMPARES = {">": gt, ">=": ge, "<": lt, "<=": le}


def holds(condition: Condition, of: Deployment) -> bool:
    """Whether it holds. What the deployment does not know, it is asked for and does not hold."""
    if condition.subject == "model" and condition.path == ("name",):
        return _named(condition.wanted, of)
    return fits(condition, _given(condition, of))


def key_of(condition: Condition, of: Deployment) -> str:
    """The TOML path that a person looks at."""
    first = condition.path[0] if condition.path else ""
    return {
        "args": of.key(first),
        "env": f"server.env.{first}",
        "speculation": of.key("speculative-config"),
        "expect": "expect.capabilities",
        "image": "server.image",
        "hardware": "hardware",
        "model": "server.model",
    }[condition.subject]


def _given(condition: Condition, of: Deployment) -> Any:
    match condition.subject, condition.path:
        case "args", ("max-model-len",):
            return of.max_model_len
        case "args", (flag, *keys):
            return _inside(of.given(flag), keys)
        case "speculation", keys:
            return _inside(dict(of.speculation) or None, list(keys))
        case "model", (part,):
            model = of.model
            return None if model is None else _OF_MODEL[part](model)
        case subject, path:
            return _OF_DEPLOYMENT[subject, path[0] if subject in PARTS else ""](of, path)


_OF_DEPLOYMENT: dict[tuple[str, str], Callable[[Deployment, tuple[str, ...]], Any]] = {
    ("env", ""): lambda of, path: of.env(path[0]),
    ("expect", ""): lambda of, _: list(of.profile.expect.capabilities),
    ("image", "name"): lambda of, _: of.profile.server.image if of.in_container else None,
    ("hardware", "capability"): lambda of, _: ".".join(map(str, of.capability)) if of.capability else None,
    ("hardware", "unified"): lambda of, _: of.unified,
}
_OF_MODEL: dict[str, Callable[[ModelFile], Any]] = {
    "hybrid": lambda model: model.hybrid,
    # where the size of images is not known, the architecture's name still says that they are taken
    "vision": lambda model: bool(model.image_side) or model.architecture.endswith("ForConditionalGeneration"),
    "experts": lambda model: bool(model.experts),
    "quantization": lambda model: model.quantization,
}


def _inside(value: Any, keys: list[str]) -> Any:
    for key in keys:
        spelled = (
            {str(name).replace("-", "_"): item for name, item in value.items()}
            if isinstance(value, dict)
            else {}
        )
        value = spelled.get(key)
    return value


def _named(wanted: Any, of: Deployment) -> bool:
    served = of.given("served-model-name")
    names = [of.profile.server.model, of.profile.server.served_model_name or ""]
    names += map(str, served if isinstance(served, list) else [served or ""])
    if _like(wanted, names):
        return True
    model = of.model
    return model is not None and _like(wanted, [model.repo, model.title])


def fits(condition: Condition, given: Any) -> bool:
    """Whether a value is the wanted one; None stands for what is not set."""
    wanted = condition.wanted
    word = str(given).strip().lower()
    on, off = given is True or word in TRUE, given is False or word in _OFF
    if isinstance(wanted, bool):
        return on if wanted else off
    if wanted in ("not on", "not off"):
        return not (on if wanted == "not on" else off)
    if wanted in ("set", "unset"):
        return (given is not None) is (wanted == "set")
    if given is None:
        return False
    if condition.bound or isinstance(wanted, int):
        operator, least = condition.bound or ("", wanted)
        found = number(given)
        return found is not None and (_COMPARES[operator](found, least) if operator else found == least)
    return _like(wanted, list(map(str, given)) if isinstance(given, list) else [str(given)])


def _like(wanted: Any, names: list[str]) -> bool:
    patterns = [str(one).lower() for one in (wanted if isinstance(wanted, list) else [wanted])]
    return any(fnmatchcase(name.lower(), pattern) for name in names for pattern in patterns)
