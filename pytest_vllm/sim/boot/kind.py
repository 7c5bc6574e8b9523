"""What a server is for: which tasks its model has, as vLLM works it out from architecture and arguments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.sim.arguments import Arguments
    from pytest_vllm.sim.boot.machine import Model
    from pytest_vllm.sim.versions import Version

GENERATE, TRANSCRIBE = ("generate",), ("transcription",)
EMBED, CLASSIFY = ("token_embed", "embed"), ("token_classify", "classify")
LATE, REWARD = ("token_embed",), ("token_classify",)
#: The task that a pooling server answers with, the first that it has.
PRIORITY = ("embed", "classify", "token_embed", "token_classify")
#: Until then a server that could score had a task of that name.
SCORE_ENDED = "0.20.0"

#: Architectures of checkpoints that no model file describes, by name; a checkpoint says it in config.json.
_NAMED = (
    (r"whisper", "WhisperForConditionalGeneration"),
    (r"voxtral|-asr\b|granite-speech", "VoxtralForConditionalGeneration"),
    # rerankers that generate one of two words, unless `--hf-overrides` make them score
    (r"qwen3-(vl-)?reranker|mxbai-rerank-\w+-v2|bge-reranker-v2-(gemma|minicpm)", "Qwen3ForCausalLM"),
    (r"skywork-reward|armorm", "LlamaForSequenceClassification"),
    (r"reward|[-_](rm|prm)\b", "Qwen2ForRewardModel"),
    (r"colbert", "HF_ColBERT"),
    (r"rerank|cross-encoder|ms-marco", "XLMRobertaForSequenceClassification"),
    (r"classifi|sentiment|toxic|-mnli|-sst", "BertForSequenceClassification"),
    (r"embed|bge-|e5-|gte-|sentence-transformers|minilm|mpnet", "BertModel"),
)
#: Beginnings and ends of architectures, and the tasks that they are made for; all others generate.
_MADE_FOR = (
    (r"^Whisper", TRANSCRIBE),
    (r"^(Voxtral|Qwen3ASR|GraniteSpeech|Gemma3n)", (*GENERATE, *TRANSCRIBE)),
    (r"ColBERT", LATE),
    (r"Reward(Model|Modeling)$", REWARD),
    (r"(ForSequenceClassification|ClassificationModel)$", CLASSIFY),
    (r"(ForTokenClassification)$", REWARD),
    (r"(ForTextEncoding|EmbeddingModel|(?<!Chat)(?<!Head)Model)$", EMBED),
)
#: Older `--task` values that ask for the pooling runner, and what they turn a generating model into.
_OLD_TASKS = {"embed": EMBED, "embedding": EMBED, "score": CLASSIFY, "classify": CLASSIFY, "reward": REWARD}
_CONVERTED = {"embed": EMBED, "classify": CLASSIFY, "reward": REWARD}
_BASE = re.compile(
    r"[-_]base$|-pt$|^(gpt2|opt-|pythia-|bloom-|mistral-7b-v0\.\d$)"
    r"|^((meta-)?llama-?[23][\d.]*|gemma-2|smollm2?|qwen2\.?5?)-[\d.]+[bm]$",
    re.IGNORECASE,
)
TWO_LABELS = ("LABEL_0", "LABEL_1")


@dataclass(frozen=True)
class Kind:
    """The tasks of a server.

    Args:
        tasks: vLLM's names of them, as its log lists them.
        labels: the classes of a classifier; one for a reranker.
        template: whether the tokenizer brings a chat template, or one was given.
        encoder: whether all tokens see each other: no prefix cache, no prefill in parts.
    """

    tasks: tuple[str, ...] = GENERATE
    labels: tuple[str, ...] = ()
    template: bool = True
    encoder: bool = False

    @property
    def generates(self) -> bool:
        """Whether texts are completed."""
        return "generate" in self.tasks

    @property
    def transcribes(self) -> bool:
        """Whether speech is turned into text."""
        return "transcription" in self.tasks

    @property
    def pools(self) -> str:
        """The task of a pooling server; empty for any other."""
        return next((task for task in PRIORITY if task in self.tasks), "")

    @property
    def scores(self) -> bool:
        """Whether pairs are scored and documents ranked: not by classifiers of more than one class."""
        return self.pools in ("embed", "token_embed") or (self.pools == "classify" and len(self.labels) == 1)

    def listed(self, version: Version) -> tuple[str, ...]:
        """The tasks as a version lists them."""
        score = version < SCORE_ENDED and self.pools == "classify" and self.scores
        return (*self.tasks, "score") if score else self.tasks


def kind_of(args: Arguments, shape: Model) -> Kind:
    """The kind of server that these arguments make of a model."""
    overrides = _overrides(args)
    name = str(args.get("model", ""))
    architecture = (overrides.get("architectures") or [architecture_of(name, shape)])[0]
    made = made_for(architecture)
    tasks = _wanted(args, name, made)
    labels = tuple(shape.labels) or (("LABEL_0",) if _ranks(name, overrides) else TWO_LABELS)
    number = overrides.get("num_labels")
    if isinstance(number, int):
        labels = tuple(f"LABEL_{at}" for at in range(number))
    encoder = "generate" not in made and tasks != TRANSCRIBE
    bare = encoder or tasks == TRANSCRIBE or bool(not shape.known and _BASE.search(_last(name)))
    return Kind(
        tasks=tasks,
        labels=labels if {"classify", "token_classify"} & {*tasks} else (),
        template=bool(args.get("chat_template")) or (shape.template and not bare),
        encoder=encoder,
    )


def architecture_of(name: str, shape: Model) -> str:
    """The architecture as vLLM names it; of an unknown checkpoint what its name says."""
    if shape.known:
        return shape.architecture
    found = (word for pattern, word in _NAMED if re.search(pattern, name, re.IGNORECASE))
    return next(found, shape.architecture)


def made_for(architecture: str) -> tuple[str, ...]:
    """The tasks that an architecture is made for."""
    found = (tasks for pattern, tasks in _MADE_FOR if re.search(pattern, architecture))
    return next(found, GENERATE)


def _wanted(args: Arguments, name: str, made: tuple[str, ...]) -> tuple[str, ...]:
    runner, convert = args.get("runner", "auto"), args.get("convert", "auto")
    task = args.get("task", "auto")
    if task in _OLD_TASKS:
        runner, convert = "pooling", {"embedding": "embed", "score": "classify"}.get(task, task)
    native = made if "generate" not in made and made != TRANSCRIBE else ()
    embeds = "embed" in name.lower() and not native  # a generating architecture, trained to embed
    if convert not in ("auto", "none") or (runner == "auto" and embeds):
        runner = "pooling"
    if runner == "pooling" or (runner == "auto" and native):
        return native or _CONVERTED.get(convert, EMBED)
    return made


def _ranks(name: str, overrides: dict[str, Any]) -> bool:
    return bool(overrides.get("is_original_qwen3_reranker")) or bool(
        re.search(r"rerank|cross-encoder|ms-marco|reward|[-_](rm|prm)\b", name, re.IGNORECASE)
    )


def _overrides(args: Arguments) -> dict[str, Any]:
    given = args.get("hf_overrides") or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    return given if isinstance(given, dict) else {}


def _last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]
