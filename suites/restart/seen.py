"""What stopping and starting showed, as far as a check may judge it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from pytest_vllm import Metrics, need, only_if

if TYPE_CHECKING:
    from pytest_vllm import Recording, Restart, Server

NOT_OURS = "a server that was not started here is not restarted"


def restarted(seen: Restart | None, server: Server) -> TypeGuard[Restart]:
    """True where it was. NotRun for somebody else's server, Undecided where nobody restarted it."""
    only_if(server.launcher != "attach", NOT_OURS)
    need(seen, "the server was not restarted in this run")
    return True


def cache_tokens(scraped: Recording) -> int:
    """Tokens that the cache holds. Raises Undecided when the metrics do not tell."""
    need(scraped.status == 200, f"/metrics was answered with {scraped.status or scraped.error}")
    labels = Metrics(scraped.text).labels("vllm:cache_config_info")
    need(labels, "cache_config_info is not there")
    told = {name: int(value) for name, value in labels.items() if value.isdigit()}
    need("num_gpu_blocks" in told and "block_size" in told, "cache_config_info gives no number of blocks")
    return told.get("kv_cache_size_tokens") or told["num_gpu_blocks"] * told["block_size"]
