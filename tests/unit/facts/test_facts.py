"""What the facts say of vLLM's versions."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_vllm import facts


@pytest.mark.parametrize(
    ("version", "nearest"),
    [
        ("0.32.0", "0.32.0"),
        ("v0.32.0", "0.32.0"),
        ("0.10.1.1+381074ae.nv25.09", "0.10.1.1"),
        ("0.20.1", "0.20.0"),
        ("0.6.4", "0.6.4.post1"),
        ("0.6.5", "0.6.4.post1"),
        ("0.8.5", "0.8.5.post1"),
        ("0.8.4", "0.8.0"),
        ("0.10.1", "0.10.1"),
        ("0.33.0rc1", "0.33.0"),
        ("0.11.1.dev201+g0b1c", "0.11.1"),
        ("0.1", "0.6.4.post1"),
    ],
)
def test_nearest(version: str, nearest: str) -> None:
    """Unsampled and vendor versions get the facts of the newest older sampled one."""
    assert facts.nearest(version) == nearest


@pytest.mark.parametrize("version", ["99.0", "latest", "nightly", ""])
def test_what_is_newer_or_unknown_gets_the_newest_facts(version: str) -> None:
    """Whichever that is."""
    assert facts.nearest(version) == facts.versions()[-1]


def test_versions_are_in_order() -> None:
    """Oldest first, dates and numbers alike."""
    keys = [facts.Version(version) for version in facts.versions()]

    assert len(keys) >= 45
    assert keys == sorted(keys)
    assert facts.released("0.32.0") == "2026-10-18"


def test_flags_of_two_versions() -> None:
    """A default changes, a switch becomes negatable, a flag comes and goes."""
    old, new = facts.flags("0.6.4"), facts.flags("0.32.0")

    assert old["gpu-memory-utilization"].default == 0.9
    assert new["gpu-memory-utilization"].default == 0.92
    assert (old["trust-remote-code"].negatable, new["trust-remote-code"].negatable) == (False, True)
    assert "enable-reasoning" not in new
    assert "speculative-config" not in old
    assert len(new) == 316


def test_choices_of_a_version() -> None:
    """Choices that were added later are not there yet."""
    assert "bfloat16" not in facts.flags("0.10.0")["kv-cache-dtype"].choices
    assert "bfloat16" in facts.flags("0.11.0")["kv-cache-dtype"].choices


@pytest.mark.parametrize(
    ("flag", "version", "state", "removed", "instead"),
    [
        ("max-model-len", "0.32.0", "known", None, ""),
        ("enable-reasoning", "0.8.5", "known", "0.10.0", "--reasoning-parser"),
        ("enable-reasoning", "0.9.2", "deprecated", "0.10.0", "--reasoning-parser"),
        ("enable-reasoning", "0.32.0", "removed", "0.10.0", "--reasoning-parser"),
        ("speculative-config", "0.6.4", "not-yet", None, ""),
        ("guided-decoding-backend", "0.12.0", "removed", "0.12.0", "--structured-outputs-config.backend"),
    ],
)
def test_flag_status(flag: str, version: str, state: str, removed: str | None, instead: str) -> None:
    """A flag is known, deprecated, removed or not there yet."""
    status = facts.flag_status(flag, version)

    assert (status.state, status.removed, status.replaced_by) == (state, removed, instead)
    assert status.accepted == (state in ("known", "deprecated"))


def test_a_flag_that_went_and_came_back() -> None:
    """--disable-log-requests is fatal from 0.17 to 0.32 only."""
    states = {
        v: facts.flag_status("disable-log-requests", v) for v in ("0.10.0", "0.16.0", "0.20.0", "0.33.0")
    }

    assert [status.state for status in states.values()] == ["known", "deprecated", "removed", "deprecated"]
    assert states["0.20.0"].removed == "0.17.0"
    assert states["0.20.0"].returns == "0.33.0"


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("--max-model-len", "max-model-len"),
        ("max_model_len", "max-model-len"),
        ("-tp", "tensor-parallel-size"),
        ("--no-enable-prefix-caching", "enable-prefix-caching"),
        ("speculative-config.method", "speculative-config"),
        ("--device-memory-utilization", "gpu-memory-utilization"),
        ("-O3", "optimization-level"),
    ],
)
def test_canonical(spelled: str, name: str) -> None:
    """Aliases, negations, underscores and dotted keys lead to one name."""
    assert facts.canonical(spelled) == name


def test_an_unknown_flag_has_near_ones() -> None:
    """The best match comes first."""
    status = facts.flag_status("max-modle-len")

    assert status.state == "unknown"
    assert status.similar[0] == "max-model-len"


def test_parsers() -> None:
    """Names per kind and version."""
    assert "hermes" in facts.parsers("tool", "0.6.4")
    assert "qwen3_coder" not in facts.parsers("tool", "0.9.2")
    assert "qwen3_coder" in facts.parsers("tool", "0.10.0")
    assert facts.parsers("reasoning", "0.10.0") == (
        "deepseek_r1",
        "glm4_moe",
        "granite",
        "hunyuan_a13b",
        "mistral",
        "qwen3",
    )
    assert "Qwen/Qwen3-32B" in facts.parser_models("tool", "hermes")
    assert facts.parser_models("tool", "nope") == ()


def test_metrics() -> None:
    """A metric is renamed; its label set grows; a hidden one is marked."""
    old, new = facts.metrics("0.9.0.1"), facts.metrics("0.32.0")

    assert old["vllm:gpu_cache_usage_perc"].renamed_to == "vllm:kv_cache_usage_perc"
    assert "vllm:gpu_cache_usage_perc" not in new
    assert facts.metrics("0.11.0")["vllm:gpu_cache_usage_perc"].hidden
    assert new["vllm:num_requests_running"].labels == ("model_name", "engine")
    assert facts.metrics("0.6.4")["vllm:num_requests_running"].labels == ("model_name",)
    assert "kv_cache_size_tokens" in facts.cache_config_labels("0.24.0")
    assert "kv_cache_size_tokens" not in facts.cache_config_labels("0.23.0")


def test_routes() -> None:
    """Paths come with methods, needs and whether the API key guards them."""
    assert "/v1/responses" not in facts.routes("0.9.2")
    assert facts.routes("0.10.0")["/v1/responses"].methods == ("POST",)
    assert facts.routes("0.32.0")["/v1/chat/completions"].guarded
    assert not facts.routes("0.32.0")["/tokenize"].guarded
    assert facts.routes("0.32.0")["/sleep"].needs == ("VLLM_SERVER_DEV_MODE=1",)
    assert facts.guarded_prefixes("0.21.0") == ("/v1",)
    assert facts.guarded_prefixes("0.22.0") == ("/v1", "/v2", "/inference")


def test_fields() -> None:
    """The field that carries reasoning changed its name."""
    held = {
        v: set(facts.fields("ChatMessage", v)) & {"reasoning", "reasoning_content"}
        for v in ("0.10.0", "0.12.0", "0.16.0")
    }

    assert held == {
        "0.10.0": {"reasoning_content"},
        "0.12.0": {"reasoning", "reasoning_content"},
        "0.16.0": {"reasoning"},
    }
    assert facts.fields("ErrorInfo", "0.32.0")["code"].required
    assert facts.fields("ErrorInfo", "0.10.0") == {}
    assert "guided" in facts.notes("fields")


def test_log_lines_and_start_up_errors() -> None:
    """Both belong to versions."""
    assert "startup_complete" in facts.log_lines("0.32.0")
    assert "args_namespace" in facts.log_lines("0.8.0")
    assert "args_namespace" not in facts.log_lines("0.9.2")
    assert "active_seqs" in facts.startup_errors("0.32.0")
    assert "active_seqs" not in facts.startup_errors("0.30.0")


@pytest.mark.parametrize(
    ("version", "gib", "name", "expected"),
    [
        ("0.10.1.1", 119, "gb10", (8192, 1024)),
        ("0.33.0", 119, "gb10", (2048, 256)),
        ("0.32.0", 31.8, "rtx5090", (2048, 256)),
        ("0.32.0", 79.6, "h100", (8192, 1024)),
        ("0.32.0", 80, "a100", (2048, 256)),
        ("0.28.0", 179, "b200", (16384, 1024)),
        ("0.6.4", 80, "h100", (2048, 256)),
        ("0.32.0", 23.5, "cpu", (2048, 128)),
    ],
)
def test_batch_defaults(version: str, gib: float, name: str, expected: tuple[int, int]) -> None:
    """What an unset batch size is depends on version and device."""
    assert facts.batch_defaults(version, memory_gib=gib, name=name) == expected


def test_import_needs_the_standard_library_alone() -> None:
    """The simulator and the command line read facts before anything heavy is there."""
    code = "import sys, pytest_vllm.facts; print({'pytest', 'pydantic', 'httpx'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
