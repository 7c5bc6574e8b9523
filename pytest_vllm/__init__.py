"""pytest-vllm: know that a vLLM deployment is right before it goes live.

This module is the public API: everything a suite, bundled or a person's own, may import.
"""

from pytest_vllm.checks import INFO, MUST, SHOULD, check, need, observe, undecided
from pytest_vllm.exchanges import Case, cases, exchange
from pytest_vllm.locate import case_file
from pytest_vllm.metrics import Metrics
from pytest_vllm.schemas import schema_faults
from pytest_vllm.target import Server
from pytest_vllm.verdict import Family
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.sse import Event

CONFORMANCE, CAPABILITY = Family.CONFORMANCE, Family.CAPABILITY
PERFORMANCE, ENVIRONMENT = Family.PERFORMANCE, Family.ENVIRONMENT

__version__ = "0.1.0"

__all__ = [
    "CAPABILITY",
    "CONFORMANCE",
    "ENVIRONMENT",
    "INFO",
    "MUST",
    "PERFORMANCE",
    "SHOULD",
    "Case",
    "Event",
    "Family",
    "Metrics",
    "Recording",
    "Request",
    "Server",
    "__version__",
    "case_file",
    "cases",
    "check",
    "exchange",
    "need",
    "observe",
    "schema_faults",
    "undecided",
]
