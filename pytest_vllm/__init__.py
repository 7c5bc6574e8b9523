"""pytest-vllm: know that a vLLM deployment is right before it goes live.

This module is the public API: everything a suite, bundled or a person's own, may import. Names are
imported on first use, so that the companion command and the simulator start without pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.decide.verdict import Family
    from pytest_vllm.declare.answers import (
        error_in,
        listed,
        near_tie,
        not_json,
        parting,
        server_errors,
        shape_faults,
        short,
        text_of,
        unexpected,
    )
    from pytest_vllm.declare.capabilities import capability
    from pytest_vllm.declare.checks import (
        CAPABILITY,
        CONFORMANCE,
        ENVIRONMENT,
        INFO,
        MUST,
        PERFORMANCE,
        SHOULD,
        need,
        observe,
        only_if,
        undecided,
    )
    from pytest_vllm.declare.evals import Score
    from pytest_vllm.declare.exchanges import Case
    from pytest_vllm.declare.explorations import Exploration, Explored, Fault, Finding, objection
    from pytest_vllm.declare.measurements import Measurements
    from pytest_vllm.declare.pictures import picture
    from pytest_vllm.declare.recordings import Recordings
    from pytest_vllm.declare.wholeness import unwhole
    from pytest_vllm.face.decorators import cases, check, exchange, measurement
    from pytest_vllm.face.evals import eval_set
    from pytest_vllm.launch.notable import StartupWarning
    from pytest_vllm.locate import case_file
    from pytest_vllm.measure.against import regressed, times
    from pytest_vllm.measure.growth import growth
    from pytest_vllm.measure.measured import Decided, Measured
    from pytest_vllm.measure.samples import Sample
    from pytest_vllm.measure.statistics import Interval, Outcome
    from pytest_vllm.measure.workload import Goal, Kind, Prompts, Slo, Workload
    from pytest_vllm.preflight.roofline import Roofline
    from pytest_vllm.profile.derived import Figures
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.gauges import Reading
    from pytest_vllm.run.restart import Restart
    from pytest_vllm.schemas import schema_faults
    from pytest_vllm.scripted.grammar import Call, Script
    from pytest_vllm.scripted.writing import Writer
    from pytest_vllm.wire.metrics import Metrics
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.server import Server
    from pytest_vllm.wire.sse import Event


__version__: str

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
    "Exploration",
    "Explored",
    "Family",
    "Fault",
    "Figures",
    "Finding",
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
    "Score",
    "Script",
    "Server",
    "Slo",
    "StartupWarning",
    "Workload",
    "Writer",
    "__version__",
    "capability",
    "case_file",
    "cases",
    "check",
    "error_in",
    "eval_set",
    "exchange",
    "growth",
    "listed",
    "measurement",
    "near_tie",
    "need",
    "not_json",
    "objection",
    "observe",
    "only_if",
    "parting",
    "picture",
    "regressed",
    "schema_faults",
    "server_errors",
    "shape_faults",
    "short",
    "text_of",
    "times",
    "undecided",
    "unexpected",
    "unwhole",
]

_HOMES = {
    "StartupWarning": "launch.notable",
    "Baseline": "decide.baseline",
    "Call": "scripted.grammar",
    "Case": "declare.exchanges",
    "Decided": "measure.measured",
    "Event": "wire.sse",
    "Exploration": "declare.explorations",
    "Explored": "declare.explorations",
    "Family": "decide.verdict",
    "Fault": "declare.explorations",
    "Finding": "declare.explorations",
    "Figures": "profile.derived",
    "Goal": "measure.workload",
    "Interval": "measure.statistics",
    "Kind": "measure.workload",
    "Measured": "measure.measured",
    "Measurements": "declare.measurements",
    "Metrics": "wire.metrics",
    "Outcome": "measure.statistics",
    "Profile": "profile.model",
    "Prompts": "measure.workload",
    "Reading": "run.gauges",
    "Recording": "wire.recording",
    "Recordings": "declare.recordings",
    "Request": "wire.recording",
    "Restart": "run.restart",
    "Roofline": "preflight.roofline",
    "Sample": "measure.samples",
    "Score": "declare.evals",
    "Script": "scripted.grammar",
    "Server": "wire.server",
    "Slo": "measure.workload",
    "Workload": "measure.workload",
    "Writer": "scripted.writing",
    "__version__": "locate",
    "capability": "declare.capabilities",
    "case_file": "locate",
    "cases": "face.decorators",
    "check": "face.decorators",
    "error_in": "declare.answers",
    "eval_set": "face.evals",
    "exchange": "face.decorators",
    "growth": "measure.growth",
    "measurement": "face.decorators",
    "listed": "declare.answers",
    "short": "declare.answers",
    "near_tie": "declare.answers",
    "not_json": "declare.answers",
    "objection": "declare.explorations",
    "parting": "declare.answers",
    "picture": "declare.pictures",
    "regressed": "measure.against",
    "schema_faults": "schemas",
    "server_errors": "declare.answers",
    "shape_faults": "declare.answers",
    "text_of": "declare.answers",
    "times": "measure.against",
    "unexpected": "declare.answers",
    "unwhole": "declare.wholeness",
}


def __getattr__(name: str) -> object:
    """A public name, from the module it lives in (`declare.checks` unless listed)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'declare.checks')}")
    found = home.own_version() if name == "__version__" else getattr(home, name)
    globals()[name] = found
    return found
