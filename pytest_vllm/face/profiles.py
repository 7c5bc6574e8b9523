"""The profiles of a run: loaded, imported or attached, with what the command line changes."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch.arguments import api_key
from pytest_vllm.launch.attach import base_url
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.measure.swarm.crew import MISSING, available
from pytest_vllm.profile.hardware import hardware_names
from pytest_vllm.profile.importers.gpunames import hardware_named
from pytest_vllm.profile.known import with_known_faults
from pytest_vllm.profile.load import ProfileError, load
from pytest_vllm.profile.model import Profile, Secret, ServerPart, TlsPart
from pytest_vllm.profile.parsers import with_parsers
from pytest_vllm.profile.values import proxy, server_url
from pytest_vllm.profile.words import unknown
from pytest_vllm.run.state import RUN_FILE, read_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_vllm.face.options import Options
    from pytest_vllm.profile.importers.draft import Draft

#: Where the key is kept that a defect needs: not where a server would take it from.
SIMULATED_KEY = "PYTEST_VLLM_SIMULATED_KEY"


def load_profiles(options: Options, rootdir: Path, notes: list[str]) -> dict[str, Profile]:
    """The profiles of this run, options applied. Raises pytest.UsageError on a bad one.

    Args:
        options: which profiles, and what the command line changes.
        rootdir: where the person's own profiles lie.
        notes: is given what could not be carried over from `--vllm-from`.
    """
    try:
        if options.replay is not None:
            return _replayed(options.replay)
        if options.service and not options.source:
            raise pytest.UsageError("--vllm-service names a server of a file: pass --vllm-from=FILE too")
        loaded = _adjusted_all(_bases(options, rootdir, notes), options, rootdir)
    except ProfileError as error:
        raise pytest.UsageError(str(error)) from error
    if any(one.measure.locust or one.measure.locust_elsewhere for one in loaded) and not available():
        raise pytest.UsageError(MISSING)
    if options.url and len(loaded) > 1:
        raise pytest.UsageError("--vllm-url is one server: give it with at most one --vllm-profile")
    return {profile.name: profile for profile in loaded}


_ATTACHED = "attached"


def load_older(options: Options, rootdir: Path, newer: Profile) -> Profile | None:
    """The profile of the server that this run is compared with; None without one.

    What the command line changes holds for both, but for what names the one under test: URL, image, defects.
    Raises pytest.UsageError on a bad one.
    """
    if not options.compares:
        return None
    own = replace(options, url=None, image=options.against_image, defects=())
    try:
        if options.against:
            base = _base(options.against, rootdir)
        else:
            base = _bases(options, rootdir, [])[0].model_copy(update={"defects": []})
        if options.against_url:
            own = replace(own, url=options.against_url, launcher=None)
            unknown_version = {"server": base.server.model_copy(update={"version": None})}
            expect = base.expect.model_copy(update={"version": None})
            base = base.model_copy(update={**unknown_version, "expect": expect})
        (found,) = _adjusted_all([base], own, rootdir)
    except ProfileError as error:
        raise pytest.UsageError(str(error)) from error
    name = found.name if found.name != newer.name else f"{newer.name}-before"
    return found.model_copy(update={"name": name})


def _bases(options: Options, rootdir: Path, notes: list[str]) -> list[Profile]:
    names = options.profiles or ((_ATTACHED,) if options.url and not options.source else ())
    bases = [_base(name, rootdir) for name in names]
    return [*bases, *([_imported(options, notes)] if options.source else [])]


def _adjusted_all(bases: Sequence[Profile], options: Options, rootdir: Path) -> list[Profile]:
    hardware = _hardware(options.hardware, rootdir)
    return [_adjusted(profile, options, hardware) for profile in bases]


def _base(name: str, rootdir: Path) -> Profile:
    if name == _ATTACHED:
        return Profile(name=_ATTACHED, server=ServerPart(launcher="attach"))
    return load(name, rootdir)


def _imported(options: Options, notes: list[str]) -> Profile:
    """The profile of a deployment that is written down elsewhere."""
    from pytest_vllm.profile.importers import imported  # noqa: PLC0415

    found = imported(str(options.source), service=options.service, running=_running)
    notes += found.notes
    unseen = options.preflight or options.launcher == "sim"
    if unseen and not (found.profile.server.vllm_version or options.image):
        notes.append(
            "nothing there gives the version of vLLM, so a recent one is taken; "
            "an image with a version says it: --vllm-image=vllm/vllm-openai:v0.32.0"
        )
    return found.profile


def _hardware(given: str | None, rootdir: Path) -> dict[str, str]:
    """What `--vllm-hardware` changes in every profile. Raises ProfileError on an unknown one."""
    if given is None:
        return {}
    known = hardware_names(rootdir)
    name = given if given in known else hardware_named(given)
    if name not in known:
        raise ProfileError(f"--vllm-hardware: {unknown('hardware', given, known)}")
    return {"hardware": name}


def _without_secrets(url: str, option: str) -> str:
    """The URL as an option gives it.

    Raises pytest.UsageError where it is not one, and without repeating it where it carries a secret.
    """
    try:
        given = server_url(url) or ""
    except ValueError as error:
        key = "the key is read from VLLM_API_KEY, or as --vllm-api-key-env=VAR says"
        raise pytest.UsageError(f"{option}: {error}; {key}") from None
    try:
        base_url(given)
    except BootError as error:
        better = error.try_[0].replace("--vllm-url=", f"{option}=")
        raise pytest.UsageError(f"{option}: {error.what}: write {better}") from None
    return given


def _adjusted(profile: Profile, options: Options, hardware: dict[str, str]) -> Profile:
    changes: dict[str, object] = {}
    if options.model_config:
        profile = profile.model_copy(update={"model": str(options.model_config)})
    if options.url:
        option = "--vllm-against-url" if options.url == options.against_url else "--vllm-url"
        changes |= {"launcher": "attach", "url": _without_secrets(options.url, option)}
        if os.environ.get(options.api_key_env) and profile.server.api_key is None:
            changes["api_key"] = Secret(from_env=options.api_key_env)
    changes |= _way(profile, options)
    if options.launcher:
        changes["launcher"] = options.launcher
    expect = profile.expect
    if options.image:
        # another image is another version: what the profile says of its own does not hold for it
        changes |= {"image": options.image, "version": None}
        expect = expect.model_copy(update={"version": None})
    server = profile.server.model_copy(update=changes)
    defects = [*profile.defects, *options.defects]
    if defects and not server.kind.simulated:
        raise pytest.UsageError(
            f"defects break the simulator, but {profile.name} is started by {server.launcher}: "
            "add --vllm-launcher=sim"
        )
    update = {"server": server, "expect": expect, "defects": defects, **hardware}
    changed = profile.model_copy(update=update)
    try:
        changed = with_parsers(changed, options.tool_parser, options.reasoning_parser)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    changed = _guarded(changed)
    return with_defects(changed) if defects else with_known_faults(changed)


def _guarded(profile: Profile) -> Profile:
    """The profile, expecting `auth` where a key was given: a server that lets everybody in is not guarded."""
    expected = profile.expect.capabilities
    named = profile.server.api_key or profile.server.args.get("api-key")
    if not named or "auth" in expected:
        return profile
    try:
        api_key(profile, os.environ)
    except BootError:  # the variable is not set: said when the server is started
        return profile
    expect = profile.expect.model_copy(update={"capabilities": [*expected, "auth"]})
    return profile.model_copy(update={"expect": expect})


#: What `[server.tls]` calls a file, and which option names it.
WAYS = {"ca": "ca-file", "certificate": "client-cert", "key": "client-key"}


def _way(profile: Profile, options: Options) -> dict[str, object]:
    """What the command line changes of the way to the server."""
    changes: dict[str, object] = {}
    given = {"ca": options.ca_file, "certificate": options.client_cert, "key": options.client_key}
    if any(given.values()):
        told = profile.server.tls.model_dump()
        tls = told | {name: str(path) for name, path in given.items() if path}
        if options.client_cert and not options.client_key:
            tls["key"] = None  # the profile's key belongs to the profile's certificate
        if tls["key"] and not tls["certificate"]:
            raise pytest.UsageError("--vllm-client-key alone shows nothing: pass --vllm-client-cert=FILE too")
        for name, path in given.items():
            if path and not path.exists():
                raise pytest.UsageError(f"--vllm-{WAYS[name]}={path}: there is no such file")
        changes["tls"] = TlsPart(**tls)
    if options.proxy:
        try:
            changes["proxy"] = proxy(options.proxy)
        except ValueError as error:
            raise pytest.UsageError(f"--vllm-proxy: {error}") from None
    return changes


def with_defects(profile: Profile) -> Profile:
    """The profile with the serve arguments that its defects need to show. Raises pytest.UsageError."""
    from pytest_vllm.sim.defects.registry import needed  # noqa: PLC0415 - only broken runs pay for it

    try:
        words, environ = needed(profile.defects)
    except ValueError as error:
        raise pytest.UsageError(f"{error}; `pytest-vllm defects` lists them all") from error
    server = profile.server
    args = {**server.args, **flags_of(words)}
    env = {**server.env, **environ}
    changes: dict[str, object] = {"args": args, "env": env}
    key = env.get("VLLM_API_KEY")
    if isinstance(key, str) and server.api_key is None:
        os.environ[SIMULATED_KEY] = key
        changes["api_key"] = Secret(from_env=SIMULATED_KEY)
    return profile.model_copy(update={"server": server.model_copy(update=changes)})


def flags_of(words: Sequence[str]) -> dict[str, Any]:
    """Serve arguments as a profile writes them, from words of a command line."""
    from pytest_vllm.profile.importers import imported  # noqa: PLC0415 - only broken runs pay for it

    line = shlex.join(["vllm", "serve", "any", *words])
    return dict(imported(line, kind="shell").profile.server.args)


def _replayed(folder: Path) -> dict[str, Profile]:
    path = folder / RUN_FILE
    if not path.is_file():
        runs = sorted(folder.glob(f"*/{RUN_FILE}")) or sorted(folder.glob(f"runs/*/{RUN_FILE}"))
        hint = f"; did you mean {runs[-1].parent}?" if runs else ""
        raise pytest.UsageError(
            f"--vllm-replay={folder}: no {RUN_FILE} there, so it is not a run folder{hint}"
        )
    try:
        return {name: state.profile for name, state in read_state(path).items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        what = str(error).partition("\n")[0]
        raise pytest.UsageError(
            f"--vllm-replay={folder}: its {RUN_FILE} cannot be read ({type(error).__name__}: {what}): it is "
            "damaged, or of another version of pytest-vllm"
        ) from None


def _running(name: str, environ: Mapping[str, str]) -> Draft:
    from pytest_vllm.launch.running import read_running  # noqa: PLC0415 - few runs ask an engine

    return read_running(name, environ)
