"""Model files: what a checkpoint weighs and how much of it a token touches.

One flat TOML file per checkpoint in fixtures/models, or in `vllm-profiles/models` of a project; README.md
there explains every key. A checkpoint's own config.json gives the same figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from pytest_vllm.profile.caches import KV_BYTES, CacheLayers, Kind
from pytest_vllm.profile.reference import file_names, files, read_file
from pytest_vllm.profile.table import Part, faults

if TYPE_CHECKING:
    from pathlib import Path

KIND = "models"

#: Bytes per weight of a linear layer, scales included: 128x128 blocks for FP8, groups of 128 for 4 bits, 16
#: for NVFP4, 32 for MXFP4, Q5_K_M's mean for GGUF.
BYTES_PER_WEIGHT = {
    "none": 2.0,
    "fp8": 1 + 4 / 16384,
    "awq": 0.5 + 2.5 / 128,
    "gptq": 0.5 + 2.5 / 128,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
    "int4": 0.5 + 2 / 128,
    "int8": 1.0,
    "gguf-q2_k": 0.33,
    "gguf-q3_k_m": 0.489,
    "gguf-q4_0": 0.5625,
    "gguf-q4_k_m": 0.606,
    "gguf-q5_k_m": 0.709,
    "gguf-q6_k": 0.82,
    "gguf-q8_0": 1.0625,
}

Quantization = Literal[
    "none",
    "fp8",
    "awq",
    "gptq",
    "nvfp4",
    "mxfp4",
    "int4",
    "int8",
    "gguf-q2_k",
    "gguf-q3_k_m",
    "gguf-q4_0",
    "gguf-q4_k_m",
    "gguf-q5_k_m",
    "gguf-q6_k",
    "gguf-q8_0",
]
CacheType = Literal["auto", "fp8"]


class ModelFile(Part):
    """A checkpoint: shape, weight, and the defaults that its chat template sets."""

    title: str
    """What people call it."""
    repo: str = ""
    """Its repository id, by which a profile without `model` finds it."""
    architecture: str
    """vLLM's name of the architecture."""
    params: int = Field(gt=0)
    """All parameters."""
    layers: int = Field(gt=0)
    """All layers."""
    attention_layers: int = Field(default=0, ge=0)
    """Layers whose KV cache grows with the context; all unless told otherwise."""
    hidden: int = Field(gt=0)
    """Width of the residual stream."""
    intermediate: int = Field(gt=0)
    """Width of the feed-forward layer (of one expert)."""
    heads: int = Field(gt=0)
    """Query heads."""
    kv_heads: int = Field(gt=0)
    """Key and value heads."""
    head_dim: int = Field(gt=0)
    """Width of a head."""
    vocab: int = Field(gt=0)
    """Rows of the embedding."""
    tied_embeddings: bool = False
    """Whether embedding and output layer are one tensor."""
    context: int = Field(gt=0)
    """max_position_embeddings: what vLLM allows without RoPE scaling."""
    quantization: Quantization = "none"
    """How the linear layers are stored; `none` is 16 bits."""
    head_bytes: float = 2.0
    """Bytes per weight of the embedding and the output layer."""
    expert_params: int = 0
    """Parameters in routed experts, 0 for dense models."""
    experts: int = 0
    """Routed experts per layer."""
    experts_per_token: int = 0
    """Routed experts that a token uses."""
    weight_bytes: int = 0
    """All weights in memory; derived unless told."""
    read_bytes: int = 0
    """Weights that a decode step of one sequence reads; derived unless told."""
    active_params: int = 0
    """Parameters that take part in one token; derived unless told."""
    hybrid: bool = False
    """Whether some layers keep a recurrent state instead of a KV cache."""
    state_bytes: int = 0
    """Bytes of recurrent state per such layer and sequence; 0 where it is not known."""
    image_side: int = Field(default=0, ge=0)
    """Pixels that an image token is wide and high; 0 for models that see nothing."""
    image_pixels: tuple[int, int] | None = None
    """Least and most pixels to which an image is scaled."""
    tool_parsers: list[str] = Field(default_factory=list)
    """Tool parsers that fit its template, the best first."""
    reasoning_parser: str | None = None
    """The reasoning parser that fits its template."""
    thinking: Literal["on", "off", "none"] = "none"
    """What it does unless a request says otherwise: think, not think, or no such mode."""
    chat_template: bool = True
    """Whether the tokenizer brings a chat template; base models seldom have one."""
    labels: list[str] = Field(default_factory=list)
    """The classes of a classifier, in order; one for a reranker."""
    sampling: dict[str, float] = Field(default_factory=dict)
    """What the checkpoint's generation_config.json sets, by vLLM's names: temperature, top_p, top_k, …."""
    caches: list[CacheLayers] = Field(default_factory=list)
    """Layers by kind of cache; derived from the shape unless told."""
    keeps_cache: bool = True
    """Whether it keeps a cache at all: encoders for embeddings and scores do not."""
    plain_params: int = 0
    """Parameters beside the embeddings that stay in 16 bits although the checkpoint is quantised."""
    weight_width: float = 0
    """Bytes per weight of quantised layers, where the usual for the quantisation is not right."""
    expert_quantization: Quantization | None = None
    """How routed experts are stored, where not as the rest."""
    cache_dtype: CacheType = "auto"
    """What `kv-cache-dtype = "auto"` stands for: FP8 where the checkpoint brings scales for its cache."""
    drafting_params: int = 0
    """Parameters of the layers that draft (MTP), which are loaded only to speculate."""
    certain: bool = True
    """Whether it is this checkpoint for certain; otherwise it was taken for it by its name."""
    source: str
    """Where the figures come from."""
    note: str = ""
    """What else is worth knowing."""

    @model_validator(mode="after")
    def _consistent(self) -> ModelFile:
        if bool(self.experts) != bool(self.expert_params) or self.experts_per_token > self.experts:
            raise faults([(("experts",), "experts, experts-per-token and expert-params belong together")])
        if bool(self.image_side) != bool(self.image_pixels):
            raise faults([(("image-side",), "image-side and image-pixels belong together")])
        return self

    @property
    def embedding_params(self) -> int:
        """Parameters of one of the two embeddings."""
        return self.vocab * self.hidden

    @property
    def active(self) -> int:
        """Parameters that take part in one token; the input embedding is a look-up and does not count."""
        return self.active_params or self.counted_active()

    def counted_active(self) -> int:
        """The same, counted from the shape."""
        idle = 0 if self.tied_embeddings else self.embedding_params
        sleeping = self.expert_params * (1 - self.experts_per_token / self.experts) if self.experts else 0
        return round(self.params - idle - sleeping)

    @property
    def weights(self) -> float:
        """Bytes of all weights in memory."""
        return float(self.weight_bytes or self.counted_weights())

    def counted_weights(self) -> float:
        """The same, counted from the shape: perf.md C.3, formula 1."""
        embeddings = self.embedding_params * (1 if self.tied_embeddings else 2)
        rest = self.params - embeddings - self.expert_params - self.plain_params
        stored = rest * self._width + self.plain_params * 2 + embeddings * self.head_bytes
        return stored + self.expert_bytes

    @property
    def _width(self) -> float:
        return self.weight_width or BYTES_PER_WEIGHT[self.quantization]

    @property
    def _expert_width(self) -> float:
        return BYTES_PER_WEIGHT[self.expert_quantization] if self.expert_quantization else self._width

    @property
    def expert_bytes(self) -> float:
        """Bytes of all routed experts in memory."""
        return self.expert_params * self._expert_width

    def step_bytes(self, batch: int = 1) -> float:
        """Bytes of weights that one decode step of `batch` sequences reads.

        Everything but the input embedding, of which rows are looked up. With experts, those that at least one
        token of the step is routed to: E * (1 - (1 - k/E)**batch) of E.
        """
        if self.read_bytes and not self.experts:
            return float(self.read_bytes)
        embeddings = self.embedding_params * (1 if self.tied_embeddings else 2)
        rest = self.params - embeddings - self.expert_params - self.plain_params
        always = rest * self._width + self.plain_params * 2 + self.embedding_params * self.head_bytes
        if not self.experts:
            return always
        touched = 1 - (1 - self.experts_per_token / self.experts) ** batch
        return always + self.expert_bytes * touched

    @property
    def cache_layers(self) -> list[CacheLayers]:
        """Layers by kind of cache: as told, else from attention-layers, kv-heads, head-dim and state-bytes.

        A hybrid model whose state is not known has layers of an unknown kind.
        """
        if self.caches or not self.keeps_cache:
            return self.caches
        growing = self.attention_layers or self.layers
        made = [CacheLayers(kind="full", layers=growing, kv_heads=self.kv_heads, width=2 * self.head_dim)]
        if left := self.layers - growing:
            kind: Kind = "state" if self.state_bytes else "unknown"
            made.append(CacheLayers(kind=kind, layers=left, state_bytes=self.state_bytes))
        return made

    def kv_bytes_per_token(self, cache_dtype: str = "auto", split: int = 1) -> int:
        """Bytes of KV cache per token on all of `split` GPUs, of the layers that grow with the context.

        What every GPU holds for itself, latents and KV heads that are fewer than the GPUs, counts as often.
        """
        dtype = cache_dtype if cache_dtype in KV_BYTES else "auto"
        growing = [one for one in self.cache_layers if one.grows]
        return round(split * sum(one.layers * one.token_bytes(dtype, split) for one in growing))


def model_names(rootdir: Path) -> list[str]:
    """Every model file that can be named."""
    return file_names(KIND, rootdir)


def load_model(name: str, rootdir: Path) -> ModelFile:
    """A model file. Raises ProfileError."""
    return read_file(KIND, name, rootdir, ModelFile)


def model_of_repo(repo: str, rootdir: Path) -> str | None:
    """The model file whose `repo` is this; None when there is none."""
    for name in sorted(files(KIND, rootdir)):
        if repo and load_model(name, rootdir).repo == repo:
            return name
    return None
