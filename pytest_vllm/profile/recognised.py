"""Which model a profile serves: its file, its own config.json, the catalogue, or its name; in that order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.catalogue import alike, model_of
from pytest_vllm.profile.checkpoint import from_config
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.modelfile import load_model, model_of_repo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm.profile.model import Profile
    from pytest_vllm.profile.modelfile import ModelFile

#: Where containers keep the hub's cache unless a variable says otherwise.
CONTAINER_CACHE = "/root/.cache/huggingface"


@dataclass(frozen=True)
class Recognised:
    """What is known of a model.

    Args:
        model: its figures; None when nothing is known.
        how: where they come from, or why there are none.
    """

    model: ModelFile | None
    how: str


def recognised(profile: Profile, rootdir: Path, environ: Mapping[str, str] = os.environ) -> Recognised:
    """The model of a profile. Its `model` may be a config.json, or the folder that holds one.

    Args:
        profile: the profile.
        rootdir: where the project's own model files lie.
        environ: where HF_HOME and HF_HUB_CACHE are looked up.

    Raises ProfileError when the file or the config.json that is named cannot be read.
    """
    if profile.model and (profile.model.endswith(".json") or "/" in profile.model):
        file = rootdir / Path(profile.model).expanduser()
        return Recognised(from_config(file), str(file))
    repo = profile.server.model
    name = profile.model or model_of_repo(repo, rootdir)
    if name:
        return Recognised(load_model(name, rootdir), f"model file {name}")
    failed = ""
    for place in places(profile, repo, environ):
        try:
            return Recognised(from_config(place), str(place / "config.json"))
        except ProfileError as error:
            failed = str(error)
    if known := by_name(repo):
        return Recognised(known, known.source if known.certain else f"taken for {known.repo} by its name")
    for served in [*_folder_names(profile, repo), *served_names(profile)]:
        if taken := alike(served):
            return Recognised(taken, f"taken for {taken.repo} by the name {served!r}")
    return Recognised(None, failed or f"no model file, config.json or known name for {repo!r}")


def by_name(repo: str) -> ModelFile | None:
    """The model of the catalogue for a repository's id or a path; marked where it is only alike."""
    return model_of(repo) or alike(repo) if repo else None


def _folder_names(profile: Profile, repo: str) -> list[str]:
    """What the folder is called outside that a volume brings in as the model: `/models/a-nvfp4:/model`."""
    contained = profile.server.kind.container and repo.startswith("/")
    outside = _outside(profile, repo) if contained else None
    return [outside.name] if outside else []


def served_names(profile: Profile) -> list[str]:
    """Names that stand for the model elsewhere in the arguments: a hint where the model is a path."""
    args = profile.server.args
    found = [profile.server.served_model_name] if profile.server.served_model_name else []
    for flag in ("hf-config-path", "tokenizer", "served-model-name"):
        given = args.get(flag)
        found += [str(one) for one in (given if isinstance(given, list) else [given]) if one]
    return found


def places(profile: Profile, repo: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Folders on this machine that may hold the checkpoint's config.json, and do."""
    for folder in _folders(profile, repo, environ):
        if (folder / "config.json").is_file():
            yield folder


def _folders(profile: Profile, repo: str, environ: Mapping[str, str]) -> Iterator[Path]:
    if not repo:
        return
    contained = profile.server.kind.container
    if repo.startswith(("/", "./", "../", "~")):
        outside = _outside(profile, repo) if contained else Path(repo).expanduser()
        if outside:
            yield outside
        return
    caches = [Path(one) for one in _hubs(environ)]
    server = {name: value for name, value in profile.server.env.items() if isinstance(value, str)}
    for hub in _hubs({"HOME": "/root"} | server) if contained else _hubs({**environ, **server}):
        mapped = _outside(profile, hub) if contained else Path(hub)
        if mapped:
            caches.insert(0, mapped)
    for place in caches:
        yield from sorted((place / f"models--{repo.replace('/', '--')}" / "snapshots").glob("*"))


def _hubs(environ: Mapping[str, str]) -> list[str]:
    """Folders of the hub's cache as its variables say."""
    if hub := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return [hub]
    home = environ.get("HF_HOME") or f"{environ.get('HOME', '')}/.cache/huggingface"
    return [f"{home}/hub"]


def _outside(profile: Profile, path: str) -> Path | None:
    """The folder of this machine that a volume maps to a path of the container."""
    best: tuple[int, Path] | None = None
    for volume in profile.server.volumes:
        host, _, rest = volume.partition(":")
        inside = rest.partition(":")[0].rstrip("/")
        within = path == inside or path.startswith(f"{inside}/")
        if inside and within and host.startswith(("/", "~", ".")) and (best is None or len(inside) > best[0]):
            best = (len(inside), Path(host).expanduser() / path[len(inside) :].lstrip("/"))
    return best[1] if best else None
