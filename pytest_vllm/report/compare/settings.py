"""What differs in how two servers were started: flags, environment, image, machine; and defaults of vLLM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.flags import canonical, flag_status, flags
from pytest_vllm.facts.version import version_of
from pytest_vllm.report.compare.difference import Difference, Weight

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What it means where a capability is gone and clients are not refused.
LOST = {
    "auth": "requests without a key are served: anybody who reaches the server may use it",
    "prefix-cache": "a prompt that begins as an earlier one did is computed anew",
    "cached-tokens": "usage does not say any more how much of a prompt was cached",
    "metrics": "monitoring finds no figures",
    "version": "nobody learns from the server which vLLM answers",
}
#: And where one that is new concerns clients.
GAINED = {"auth": (Weight.BREAKS, "requests without a key are refused")}
#: A bound of the server, with what a lower and a higher one mean.
BOUNDS = {
    "max_model_len": ("longer prompts are refused", "longer prompts are taken"),
    "max_num_seqs": ("fewer requests are answered at once", "more requests are answered at once"),
}
#: Parts of the identity that are told where they differ, with what that means.
PARTS = {
    "version": "another vLLM",
    "commit": "another build of vLLM",
    "image": "another image",
    "path": "other weights",
    "revision": "another revision of the weights",
    "hardware": "another machine",
    "gpus": "another machine",
    "driver": "another driver",
    "kernel": "",
    "suite": "other checks may be asked: new and gone ones are the suite's doing",
}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Every difference between two identities."""
    for part, means in PARTS.items():
        was, now = _shown(before[part]), _shown(after[part])
        if was != now and (was or part == "version") and (now or part == "version"):
            yield Difference(Weight.INFO, "identity", part, was, now, means)
    if before["template"] and after["template"] and before["template"] != after["template"]:
        means = "chats are rendered into other prompts: every answer may differ"
        yield Difference(Weight.BEHAVIOUR, "identity", "chat template", "", "", means)
    yield from _given(before["flags"], after["flags"])
    gone, fresh = {*before["env"]} - {*after["env"]}, {*after["env"]} - {*before["env"]}
    for name in sorted(gone | fresh):
        yield Difference(
            Weight.INFO, "flags", f"environment {name}", "set" * (name in gone), "set" * (name in fresh)
        )
    for name in sorted({*before["capabilities"]} - {*after["capabilities"]}):
        means = LOST.get(name, "clients that need it are refused")
        yield Difference(Weight.BREAKS, "routes", f"capability {name}", "present", "absent", means)
    for name in sorted({*after["capabilities"]} - {*before["capabilities"]}):
        weight, means = GAINED.get(name, (Weight.INFO, ""))
        yield Difference(weight, "routes", f"capability {name}", "absent", "present", means)
    for name, (fewer, more) in BOUNDS.items():
        was, now = before[name], after[name]
        if was != now and was is not None and now is not None:
            weight = Weight.BREAKS if name == "max_model_len" and now < was else Weight.BEHAVIOUR
            means = fewer if now < was else more
            yield Difference(weight, "flags", name.replace("_", "-"), str(was), str(now), means)
    yield from _defaults(before, after)


def _given(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, ""), after.get(name, "")
        if was != now and name not in ("host", "port"):
            yield Difference(Weight.INFO, "flags", f"--{name}", was, now, "started with another flag")


def _defaults(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Flags that the newer version warns about, and defaults of flags that were not given."""
    old, new = before["version"], after["version"]
    if old == new or version_of(old) is None or version_of(new) is None:
        return
    given = {canonical(name) for name in after["flags"]}
    for name in sorted(given):
        was, now = flag_status(name, old), flag_status(name, new)
        if now.state != was.state and now.state in ("deprecated", "removed"):
            instead = f"; write {now.replaced_by} instead" if now.replaced_by else ""
            effect = "warns about it" if now.accepted else "does not start with it"
            means = f"vLLM {now.version} {effect}{instead}"
            yield Difference(
                Weight.BEHAVIOUR, "flags", f"--{name}", was.state, now.state, means, f"vLLM {new}"
            )
    then, now_ = flags(old), flags(new)
    for name in sorted((then.keys() & now_.keys()) - given):
        was_, is_ = json.dumps(then[name].default, default=str), json.dumps(now_[name].default, default=str)
        computed = "@" in (was_[1:2], is_[1:2])  # at start-up: facts know no value
        if was_ != is_ and not computed:
            means = "not given, so the default counts, and that is another one"
            yield Difference(Weight.INFO, "flags", f"default of --{name}", was_, is_, means, f"vLLM {new}")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return "" if value is None else json.dumps(value, default=str)
