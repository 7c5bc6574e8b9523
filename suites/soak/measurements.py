"""The load of a soak: prompts of all lengths, some with a beginning in common, in as many streams as fit."""

from __future__ import annotations

from pytest_vllm import Kind, Prompts, Server, Workload, measurement

#: Streams at once, at most: enough to fill batches, few enough for any client.
MOST = 32
#: How long running requests may take to finish afterwards.
PATIENCE = 300.0


@measurement("soak.load")
def soak_load(server: Server, budget: float) -> Workload:
    """Short questions, long documents, and conversations that share their beginning."""
    room = (server.max_model_len or 4096) // 4
    kinds = (
        Kind("short", Prompts(tokens=64, spread=0.4, longest=room), 48, share=6),
        Kind("long", Prompts(tokens=min(1500, room), spread=0.2, longest=2 * room), 24, share=1),
        Kind("shared", Prompts(tokens=200, shared=min(160, room)), 32, share=3),
    )
    streams = max(1, min(MOST, server.max_num_seqs or 8))
    return Workload(streams=streams, kinds=kinds, seconds=budget, cold=False, patience=PATIENCE)
