"""Two versions of a very small vLLM, as source files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.new_version.sources import Sources

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENTS = """
class EngineArgs:
    def add_cli_args(parser):
        model_kwargs = get_kwargs(ModelConfig)
        group = parser.add_argument_group()
        group.add_argument("--max-model-len", "-l", **model_kwargs["max_model_len"])
        group.add_argument("--dtype", **model_kwargs["dtype"])
        lazy = model_kwargs["lazy"]
        group.add_argument("--lazy", **{**lazy, "default": None})
        parser.add_argument("--backend", choices=["a", "b"], default=None)
"""
MODEL = """
from typing import Literal
from .names import *

class ModelConfig:
    max_model_len: int | None = None
    dtype: DType = "auto"
    lazy: bool = False

class CacheConfig:
    block_size: int = 16
"""
FILES = {
    "engine/arg_utils.py": ARGUMENTS,
    "config/model.py": MODEL,
    "config/names.py": 'from typing import Literal\nDType = Literal["auto", "half"]\n',
    "config/speculative.py": (
        'from typing import Literal\nInner = Literal["mtp"]\nSpeculativeMethod = Literal["ngram", Inner]\n'
        "class SpeculativeConfig:\n    method: str\n"
    ),
    "entrypoints/cli_args.py": (
        "class BaseFrontendArgs:\n    port: int = 8 * 1000\n    host: str | None = None\n"
        "class FrontendArgs(BaseFrontendArgs):\n    allowed: list[str] = field(default_factory=list)\n"
    ),
    "entrypoints/protocol.py": (
        "class Base(BaseModel):\n    id: str\n"
        "class ChatRequest(Base):\n    n: int = 1\n    stop: Optional[list[str]] = None\n"
        "class Helper:\n    hidden: int = 1\n"
    ),
    "entrypoints/api_router.py": (
        'router = APIRouter(prefix="/v1")\n@router.post("/chat")\ndef chat(): ...\n'
        '@router.api_route("/ping", methods=["GET", "POST"])\ndef ping(): ...\n'
    ),
    "v1/metrics/loggers.py": (
        'a = self._counter_cls(name="vllm:requests", documentation="of vllm:requests")\n'
        'b = Gauge("vllm:running", "x")\n'
    ),
    "v1/attention/registry.py": 'class AttentionBackendEnum(Enum):\n    FLASH_ATTN = "x"\n',
    "tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"hermes": ("file", "HermesParser")}\n',
    "reasoning/__init__.py": '_REASONING_PARSERS_TO_REGISTER = {"qwen3": ("file", "Qwen3Parser")}\n',
    "model_executor/models/registry.py": (
        '_TEXT_MODELS = {"LlamaForCausalLM": ("llama", "Llama")}\n'
        '_PREVIOUSLY_SUPPORTED_MODELS = {"Old": "0.1"}\n'
    ),
    "envs.py": 'environment_variables: dict = {"VLLM_PORT": lambda: 1}\n',
    "boot.py": 'raise ValueError("a very long message that is "\n    f"written in pieces {here}")\n',
}
#: What the second version has otherwise, by file: text and what stands there now.
CHANGED = {
    "config/names.py": ('"half"', '"half", "float8"'),
    "engine/arg_utils.py": ('"--backend", choices=["a", "b"]', '"--engine-backend", choices=["a"]'),
    "entrypoints/protocol.py": ("n: int = 1", "n: int | None = None\n    seed: int"),
    "entrypoints/api_router.py": ('"/chat"', '"/talk"'),
    "v1/metrics/loggers.py": ('Gauge("vllm:running"', 'Gauge("vllm:in_flight"'),
    "boot.py": ("written in pieces", "said otherwise"),
}


def first(folder: Path) -> Sources:
    """The older version."""
    return _written(folder / "1", "0.1.0", FILES)


def second(folder: Path) -> Sources:
    """The newer one."""
    files = FILES | {path: FILES[path].replace(*words) for path, words in CHANGED.items()}
    return _written(folder / "2", "0.2.0", files)


def _written(root: Path, version: str, files: dict[str, str]) -> Sources:
    for path, text in files.items():
        file = root / "vllm" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return Sources(version, "vllm", root, "2027-01-01")
