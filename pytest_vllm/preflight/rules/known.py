"""Known faults of a version in a configuration: a rule for each row of `facts/faults.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts.faults import Fault, faults
from pytest_vllm.preflight.conditions import holds, key_of
from pytest_vllm.preflight.rule import Finding, Found, Severity, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment


def _finder(fault: Fault) -> Found:
    def find(of: Deployment) -> Iterator[Finding]:
        if of.simulated or not all(holds(one, of) for one in fault.when):
            return
        fixed = f" (fixed in {fault.fixed})" if fault.fixed else ""
        yield Finding(
            key_of(fault.when[0], of) if fault.when else "server.version",
            f"{of.shown_version} has a known fault: {fault.title}",
            f"{fault.effect}{fixed}, {fault.thread}",
            advice=fault.way_round,
        )

    find.__doc__ = f"{fault.title[0].upper()}{fault.title[1:]}."
    return find


for _fault in faults():
    rule(f"known.{_fault.id}", Severity(_fault.severity), versions=_fault.versions, source=_fault.thread)(
        _finder(_fault)
    )
