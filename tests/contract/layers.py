"""The architecture as data: which folder may import which, and who may import what of others.

ARCHITECTURE.md shows the first table; `test_architecture.py` compares the two.
"""

from __future__ import annotations

#: Folder or module of `pytest_vllm/` -> (what it is, what of ours it may import, types included), top first.
LAYERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "__init__": (
        "the public names, imported on first use",
        (
            "decide",
            "declare",
            "face",
            "launch",
            "locate",
            "measure",
            "preflight",
            "profile",
            "run",
            "schemas",
            "scripted",
            "wire",
        ),
    ),
    "plugin": ("the entry point: options, and a guard that costs other runs nothing", ("face",)),
    "cli": (
        "`pytest-vllm`: inspects profiles, checks, defects; cleans up",
        (
            "decide",
            "face",
            "facts",
            "launch",
            "locate",
            "preflight",
            "profile",
            "report",
            "sim",
            "wire",
        ),
    ),
    "face": (
        "all that touches pytest: collection, fixtures, hooks, what a run prints",
        (
            "decide",
            "declare",
            "facts",
            "launch",
            "locate",
            "measure",
            "preflight",
            "profile",
            "report",
            "run",
            "sim",
            "wire",
        ),
    ),
    "run": (
        "one run against a server: boot, probe, record, measure, restart",
        (
            "decide",
            "declare",
            "facts",
            "launch",
            "measure",
            "preflight",
            "profile",
            "report",
            "scripted",
            "wire",
        ),
    ),
    "report": (
        "a run as terminal, HTML, Markdown, JSON and JUnit; its extract, and what differs between two",
        ("decide", "declare", "facts", "locate", "measure", "profile", "wire"),
    ),
    "declare": (
        "what suites and own tests declare and see",
        ("decide", "facts", "measure", "schemas", "wire"),
    ),
    "measure": ("loads, their statistics, floors", ("decide", "wire")),
    "launch": ("starts, waits for, diagnoses and reaps servers", ("facts", "locate", "profile", "wire")),
    "preflight": ("static rules over a profile", ("facts", "locate", "profile", "wire")),
    "scripted": ("makes a real vLLM say an exact text", ("locate", "profile")),
    "profile": ("profiles: model, load, importers, exporters", ("facts", "locate")),
    "wire": ("requests, the bytes that came back, recordings", ("facts",)),
    "schemas": ("response schemas and known deviations", ("decide", "locate")),
    "sim": ("the simulated `vllm serve` and its defects; a process of its own", ("facts", "locate")),
    "decide": ("verdict, baseline, waivers; pure", ("facts",)),
    "facts": ("what is known of vLLM per version; reading only", ("locate",)),
    "locate": ("which pytest-vllm this is, and where its files lie", ()),
}

#: Modules that share nothing with the rest, not even a name.
ALONE = ("decide.verdict", "decide.baseline", "wire.metrics", "wire.sse", "measure.statistics")
MAY_STILL = {"decide.baseline": ("decide.verdict",)}

#: The parts at the upper levels (suites and tools among them), and the import edges between them, at most.
PARTS, EDGES = 20, 90

#: Suite -> the suites that it is made of; every other one stands alone. Exploring has no oracles of its own;
#: what a suite holds every answer of a run to, it reads as the oracles read it.
BETWEEN_SUITES: dict[str, tuple[str, ...]] = dict.fromkeys(
    (
        f"suites.{area}"
        for area in (
            "cache",
            "completions",
            "crowd",
            "explore",
            "logprobs",
            "messages",
            "reasoning",
            "responses",
            "sizes",
            "spelling",
            "streaming",
            "structured",
            "tools",
            "usage",
        )
    ),
    ("suites.oracle",),
)

#: Processes of their own: both patch the standard library of whoever imports them, or could.
LOCUST = ("measure.swarm.master", "measure.swarm.stream", "measure.swarm.worker")

#: Third-party package -> the modules that may import it at all.
THIRD_PARTY: dict[str, tuple[str, ...]] = {
    "pytest": ("face", "plugin"),
    "_pytest": ("face", "plugin"),
    "docker": ("launch.docker", "launch.podman"),
    "openai": ("face.fixtures",),
    "prometheus_client": ("wire.metrics",),
    "jsonschema": ("schemas", "report", "declare.evals"),
    "psutil": ("launch",),
    "pydantic": ("profile",),
    "yaml": ("profile.importers", "profile.exporters", "report.compared_yaml"),
    "locust": LOCUST,
    "gevent": LOCUST,
}

#: Packages that are only ever imported inside a function: `pytest --help` must not pay for them.
LAZY = ("docker", "openai")
