"""Where the weights come from: volumes, offline mode, gated repositories, disk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, put, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_CACHE = "/root/.cache/huggingface"
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_GATED = re.compile(
    r"meta-llama/|google/(?:(?:code|pali|med|embedding|t5)?gemma-?(?:[123](?![0-9])|\d+b|-2b|-7b|-300m)|shieldgemma)"
    r"|mistralai/(?:Mistral-Large-Instruct|Mistral-Small-24B-Base)",
    re.IGNORECASE,
)


def _home(of: Deployment) -> str:
    """The folder inside the container that models are cached in."""
    told = str(of.given("download-dir") or "") or of.env("HF_HUB_CACHE") or of.env("HF_HOME")
    return told or _CACHE


def _weights(of: Deployment) -> str:
    return f"{of.model.weights / 1e9:.0f} GB" if of.model else "the weights"


def _downloads(of: Deployment) -> bool:
    """Whether the model is a repository that a container of a stock image must get from somewhere."""
    return (
        of.in_container
        and bool(of.profile.server.model)
        and not of.local_model
        and "/" in of.profile.server.model
    )


def _kept(of: Deployment, path: str) -> bool:
    """Whether a volume keeps what is written there, here or in production."""
    return of.mounted(path) is not None or bool(of.mounted_there(path))


@rule("cache.volume-missing", WARNING, source="guides: mount the Hugging Face cache")
def volume_missing(of: Deployment) -> Iterator[Finding]:
    """Every new container downloads the weights anew."""
    stock = of.image is not None and of.image.stock
    if _downloads(of) and stock and not of.offline and not _kept(of, _home(of)):
        yield Finding(
            "server.volumes",
            f"{_home(of)} is not a volume",
            f"every new container downloads {_weights(of)} of {of.profile.server.model}",
            put("server.volumes", [*of.profile.server.volumes, f"~/.cache/huggingface:{_home(of)}"]),
        )


@rule("cache.offline-empty", ERROR, source="huggingface_hub: HF_HUB_OFFLINE")
def offline_empty(of: Deployment) -> Iterator[Finding]:
    """Downloads are forbidden and there is nothing to load from."""
    if not _downloads(of) or not of.offline:
        return
    name = "HF_HUB_OFFLINE" if of.env_on("HF_HUB_OFFLINE") else "TRANSFORMERS_OFFLINE"
    volume = of.mounted(_home(of))
    if volume is None:
        stock = of.image is not None and of.image.stock
        yield Finding(
            f"server.env.{name}",
            f"{name} is on and {_home(of)} is not a volume",
            f"{of.profile.server.model} cannot be found unless the image holds it",
            put("server.volumes", [*of.profile.server.volumes, f"~/.cache/huggingface:{_home(of)}"]),
            severity=ERROR if stock else WARNING,
        )
    elif of.here is not None and of.here.cached(volume[1], of.profile.server.model) is False:
        yield Finding(
            f"server.env.{name}",
            f"{name} is on and {volume[1]} does not hold {of.profile.server.model}",
            "it cannot be downloaded",
            advice=f"hf download {of.profile.server.model} first",
        )


@rule("cache.path-unmounted", ERROR, source="docker run -v")
def path_unmounted(of: Deployment) -> Iterator[Finding]:
    """The model is a path that no volume brings into the container."""
    path = of.profile.server.model
    stock = of.image is not None and of.image.stock
    if of.in_container and path.startswith("/") and of.mounted(path) is None:
        if there := of.mounted_there(path):
            what = f"{path} lies in {there}, which production mounts and this profile does not"
            advice = f'volumes = ["/where/it/is:{there}"]'
            yield Finding(
                "server.model",
                what,
                "the gate's container has nothing there",
                advice=advice,
                severity=WARNING,
            )
            return
        yield Finding(
            "server.model",
            f"{path} lies in no volume",
            "vLLM takes it for a repository's id and fails" if stock else "the image must hold it",
            advice=f'volumes = ["/where/it/is:{path}"]',
            severity=ERROR if stock else NOTE,
        )


#: Flags whose value is a file or a folder of the container, and what vLLM does without it.
_FILES = {
    "chat-template": "vLLM refuses to start",
    "tokenizer": "vLLM takes it for a repository's id and fails",
    "hf-config-path": "vLLM takes it for a repository's id and fails",
    "generation-config": "vLLM takes it for a repository's id and fails",
    "tool-parser-plugin": "the parser that it brings is not there",
    "reasoning-parser-plugin": "the parser that it brings is not there",
    "ssl-keyfile": "the server ends as it begins to listen",
    "ssl-certfile": "the server ends as it begins to listen",
    "ssl-ca-certs": "the server ends as it begins to listen",
}
#: Folders that vLLM's own images have files in.
_STOCK = ("/vllm-workspace/", "/usr/", "/opt/", "/etc/ssl/")


def _files(of: Deployment) -> Iterator[tuple[str, str, str]]:
    """Key, path and what follows where it is missing, of every file that a flag names."""
    for flag, means in _FILES.items():
        yield of.key(flag), str(of.given(flag) or ""), means
    draft = of.speculation.get("model")
    if of.has("speculative-config") or draft:
        yield of.key("speculative-config"), str(draft or ""), "vLLM takes it for a repository's id and fails"
    given = of.given("lora-modules")
    for one in given if isinstance(given, list) else [given]:
        path = one.get("path", "") if isinstance(one, dict) else str(one or "").partition("=")[2]
        yield of.key("lora-modules"), str(path), "the adapter cannot be loaded"


@rule("cache.file-unmounted", ERROR, source="docker run -v")
def file_unmounted(of: Deployment) -> Iterator[Finding]:
    """A flag names a file or folder that no volume brings into the container."""
    if not of.in_container or of.image is None or not of.image.stock:
        return  # an image of somebody's own may hold it
    for key, path, means in _files(of):
        plain = path.startswith("/") and "\n" not in path and not path.startswith(_STOCK)
        if plain and of.mounted(path) is None and not of.mounted_there(path):
            advice = f'volumes = ["/where/it/is:{path}:ro"]'
            yield Finding(key, f"{path} lies in no volume", means, advice=advice)


@rule("cache.host-path-missing", WARNING, source="Docker makes missing folders as root, empty")
def host_path_missing(of: Deployment) -> Iterator[Finding]:
    """A volume's folder does not exist on this machine."""
    for index, outside, inside, _ in of.volumes():
        if of.here is not None and of.in_container and of.here.folder_missing(outside):
            holds = f"{of.profile.server.model}/".startswith(inside.rstrip("/") + "/")
            put_there = "put the model there, or judge it on the machine that has it"
            yield Finding(
                f"server.volumes.{index}",
                f"{outside} does not exist on this machine",
                f"the engine makes an empty folder that root owns; {inside} is empty",
                advice=put_there if holds else f"mkdir -p {outside}",
            )


@rule("cache.read-only", WARNING, source="huggingface_hub writes locks and refs")
def read_only(of: Deployment) -> Iterator[Finding]:
    """The cache cannot be written and downloads are not forbidden."""
    volume = of.mounted(_home(of)) if _downloads(of) else None
    if volume is not None and "ro" in volume[3].split(",") and not of.offline:
        yield Finding(
            f"server.volumes.{volume[0]}",
            f"{volume[2]} is mounted read-only",
            "what is missing cannot be downloaded, and the hub's client wants to write locks",
            put("server.env.HF_HUB_OFFLINE", "1"),
        )


@rule("cache.unwritable", ERROR, source="host: access rights of the folder")
def unwritable(of: Deployment) -> Iterator[Finding]:
    """The process cannot write its cache and the model is not in it."""
    folder = of.env("HF_HOME")
    host, launcher = of.here, of.profile.server.launcher
    if host is None or launcher != "process" or not folder or of.local_model or of.offline:
        return
    if host.writable(folder) is False and host.cached(folder, of.profile.server.model) is False:
        yield Finding(
            "server.env.HF_HOME",
            f"{folder} cannot be written and lacks {of.profile.server.model}",
            "the download fails",
        )


@rule("cache.disk", ERROR, source="host: free disk against the weights of the model file")
def disk(of: Deployment) -> Iterator[Finding]:
    """Too little disk for the weights that are still to be downloaded."""
    if (
        of.here is None
        or of.model is None
        or of.local_model
        or of.simulated
        or of.profile.server.launcher == "attach"
    ):
        return
    volume = of.mounted(_home(of)) if of.in_container else None
    folder = volume[1] if volume else "" if of.in_container else of.env("HF_HOME") or "~/.cache/huggingface"
    if not folder or of.here.cached(folder, of.profile.server.model) is not False:
        return
    free = of.here.free_disk(folder)
    if free is not None and free < of.model.weights:
        yield Finding(
            f"server.volumes.{volume[0]}" if volume else "server.model",
            f"{of.profile.server.model} is not in {folder}, {free / 1e9:.0f} GB of disk are free there",
            f"the download needs {_weights(of)}",
        )


@rule("cache.gated", WARNING, source="the model's page: access is granted per account")
def gated(of: Deployment) -> Iterator[Finding]:
    """A gated repository without a token."""
    model = of.profile.server.model
    tokened = any(of.env(name) is not None for name in _TOKENS)
    if not of.in_container or not _GATED.match(model) or tokened or of.offline:
        return
    home = of.mounted(_CACHE if not of.env("HF_HOME") else of.env("HF_HOME") or _CACHE)
    login = f"{home[1]}/token" if home else ""
    if login and of.here is not None and of.here.has_file(login):
        return
    yield Finding(
        "server.env.HF_TOKEN",
        f"{model} is gated and no token is set",
        "downloading ends in 401"
        + (f", unless a login lies in {login}" if login else "; what is cached already loads"),
        put("server.env.HF_TOKEN", {"from-env": "HF_TOKEN"}),
        severity=NOTE if login else WARNING,
    )


@rule("cache.download-dir", WARNING, source="LoadConfig.download_dir")
def download_dir(of: Deployment) -> Iterator[Finding]:
    """Downloads go to a folder of the container that no volume keeps."""
    folder = of.given("download-dir")
    if of.in_container and isinstance(folder, str) and not _kept(of, folder) and _downloads(of):
        yield Finding(
            of.key("download-dir"),
            f"{folder} lies in no volume",
            f"{_weights(of)} are downloaded by every container",
        )


@rule("cache.compile", NOTE, versions=">=0.9", source="torch.compile cache: VLLM_CACHE_ROOT")
def compile_cache(of: Deployment) -> Iterator[Finding]:
    """What torch.compile made is lost with the container."""
    root = of.env("VLLM_CACHE_ROOT") or "/root/.cache/vllm"
    kept = _kept(of, f"{root}/torch_compile_cache")
    stock = of.image is not None and of.image.stock
    gpu = of.hardware is not None and of.hardware.vendor in ("nvidia", "amd")
    if stock and gpu and not kept and not of.on("enforce-eager"):
        yield Finding(
            "server.volumes",
            f"{root} is not a volume",
            "every new container compiles again, 20 to 60 s of the start",
        )
