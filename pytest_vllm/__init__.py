"""pytest-vllm: know that a vLLM deployment is right before it goes live.

This module is the public API: everything a suite, bundled or a person's own, may import. Names are
imported on first use, so that the companion command and the simulator start without pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.answers import near_tie, not_json, parting, shape_faults, text_of, unexpected
    from pytest_vllm.baseline import Baseline
    from pytest_vllm.checks import (
        CAPABILITY,
        CONFORMANCE,
        ENVIRONMENT,
        INFO,
        MUST,
        PERFORMANCE,
        SHOULD,
        check,
        need,
        observe,
        only_if,
        undecided,
    )
    from pytest_vllm.exchanges import Case, cases, exchange
    from pytest_vllm.gauges import Reading
    from pytest_vllm.images import picture
    from pytest_vllm.locate import case_file
    from pytest_vllm.measure.against import regressed, times
    from pytest_vllm.measure.growth import growth
    from pytest_vllm.measure.measured import Decided, Measured
    from pytest_vllm.measure.samples import Sample
    from pytest_vllm.measure.statistics import Interval, Outcome
    from pytest_vllm.measure.workload import Goal, Kind, Prompts, Slo, Workload
    from pytest_vllm.measurements import Measurements, measurement
    from pytest_vllm.metrics import Metrics
    from pytest_vllm.preflight.roofline import Roofline
    from pytest_vllm.profile.derived import Figures
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.recordings import Recordings
    from pytest_vllm.restart import Restart
    from pytest_vllm.schemas import schema_faults
    from pytest_vllm.scripted.grammar import Call, Script
    from pytest_vllm.scripted.writing import Writer
    from pytest_vllm.target import Server
    from pytest_vllm.verdict import Family
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.sse import Event

__version__ = "0.1.0"

__all__ = [
    "CAPABILITY",
    "CONFORMANCE",
    "ENVIRONMENT",
    "INFO",
    "MUST",
    "PERFORMANCE",
    "SHOULD",
    "Baseline",
    "Call",
    "Case",
    "Decided",
    "Event",
    "Family",
    "Figures",
    "Goal",
    "Interval",
    "Kind",
    "Measured",
    "Measurements",
    "Metrics",
    "Outcome",
    "Profile",
    "Prompts",
    "Reading",
    "Recording",
    "Recordings",
    "Request",
    "Restart",
    "Roofline",
    "Sample",
    "Script",
    "Server",
    "Slo",
    "Workload",
    "Writer",
    "__version__",
    "case_file",
    "cases",
    "check",
    "exchange",
    "growth",
    "measurement",
    "near_tie",
    "need",
    "not_json",
    "observe",
    "only_if",
    "parting",
    "picture",
    "regressed",
    "schema_faults",
    "shape_faults",
    "text_of",
    "times",
    "undecided",
    "unexpected",
]

_HOMES = {
    "Baseline": "baseline",
    "Call": "scripted.grammar",
    "Case": "exchanges",
    "Event": "wire.sse",
    "Decided": "measure.measured",
    "Family": "verdict",
    "Goal": "measure.workload",
    "Interval": "measure.statistics",
    "Kind": "measure.workload",
    "Measured": "measure.measured",
    "Measurements": "measurements",
    "Outcome": "measure.statistics",
    "Prompts": "measure.workload",
    "Sample": "measure.samples",
    "Slo": "measure.workload",
    "Workload": "measure.workload",
    "growth": "measure.growth",
    "measurement": "measurements",
    "Figures": "profile.derived",
    "Metrics": "metrics",
    "Profile": "profile.model",
    "Reading": "gauges",
    "Recording": "wire.recording",
    "Recordings": "recordings",
    "Request": "wire.recording",
    "Restart": "restart",
    "Roofline": "preflight.roofline",
    "Script": "scripted.grammar",
    "Server": "target",
    "Writer": "scripted.writing",
    "case_file": "locate",
    "cases": "exchanges",
    "exchange": "exchanges",
    "near_tie": "answers",
    "not_json": "answers",
    "parting": "answers",
    "regressed": "measure.against",
    "times": "measure.against",
    "picture": "images",
    "schema_faults": "schemas",
    "shape_faults": "answers",
    "text_of": "answers",
    "unexpected": "answers",
}


def __getattr__(name: str) -> object:
    """A public name, from the module it lives in (`checks` unless told otherwise)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'checks')}"), name)
    globals()[name] = found
    return found
