"""Profiles: which there are, what one says, out of and into other forms."""

# ruff: noqa: PLC0415 - every command imports what it needs when it runs

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.cli.command import JSON, ROOTDIR, UsageError, argument, command, option, project_root

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.model import Profile

NAME = argument("NAME", "a profile's name, or a path to one")


@command("profiles", ROOTDIR, JSON)
def profiles(given: Namespace) -> None:
    """List the profiles that --vllm-profile takes."""
    from pytest_vllm.profile.load import ProfileError, load, names
    from pytest_vllm.report.tables import print_rows

    root = project_root(given.rootdir)
    rows, broken = [], []
    for known in names(root):
        try:
            profile = load(known.name, root, expand=False)
        except ProfileError as error:
            broken.append(str(error))
            continue
        rows.append(
            {
                "name": known.name,
                "launcher": profile.server.launcher,
                "model": profile.server.model,
                "hardware": profile.hardware or "",
                "origin": known.origin,
                "description": profile.description,
            }
        )
    hidden = () if any(row["origin"] != "built in" for row in rows) else ("origin",)
    print_rows(rows, as_json=given.json, hidden=hidden)
    if broken:
        raise UsageError("\n".join(broken))


@command(
    "show",
    NAME,
    ROOTDIR,
    JSON,
    option("--as", "KIND", "as compose, docker-run, podman-run, systemd, k8s or serve", dest="kind"),
)
def show(given: Namespace) -> None:
    """Print a complete profile, with what its hardware allows."""
    from pytest_vllm.profile.load import load

    root = project_root(given.rootdir)
    if given.kind is not None:
        _export(load(given.name, root), given.kind)
        return
    profile = load(given.name, root, expand=False)
    (_as_json if given.json else _as_toml)(profile, root)


@command(
    "import",
    argument("FILE", "a file, `-` for standard input, or container:NAME"),
    option("--service", "NAME", "which vLLM server, where FILE has several"),
    option("--kind", "KIND", "compose, kubernetes, systemd, shell or config (default: found out)"),
    option("--out", "FILE", "write the profile to this file", type=Path),
)
def import_(given: Namespace) -> None:
    """Print a deployment described elsewhere as a profile."""
    from pytest_vllm.profile.importers import imported
    from pytest_vllm.profile.write import to_toml

    out = given.out
    if out is not None and out.exists():
        raise UsageError(f"{out} exists: remove it first, or name another file")
    found = imported(given.file, kind=given.kind, service=given.service, running=_running)
    text = to_toml(found.profile)
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")
        print(f"wrote {out}: pytest --vllm-profile={out}")
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")


@command("schema")
def schema(_: Namespace) -> None:
    """Print the JSON Schema of profiles, for editors."""
    from pytest_vllm.profile.schema import schema_text

    print(schema_text(), end="")


def _export(profile: Profile, kind: str) -> None:
    from pytest_vllm.profile.exporters import exported

    found = exported(profile, kind)
    print(found.text, end="")
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")


def _as_json(profile: Profile, root: Path) -> None:
    from pytest_vllm.profile.derived import figures_of
    from pytest_vllm.profile.flags import flag_notes
    from pytest_vllm.profile.load import origin
    from pytest_vllm.report.tables import print_json

    figures = figures_of(profile, root)
    content = profile.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"name", "source"})
    print_json(
        {
            "name": profile.name,
            "origin": origin(profile, root),
            "profile": content,
            "derived": figures.plain() if figures else None,
            "notes": flag_notes(profile.server.args, profile.server.vllm_version),
        }
    )


def _as_toml(profile: Profile, root: Path) -> None:
    from pytest_vllm.preflight.roofline import Roofline
    from pytest_vllm.profile.derived import figures_of
    from pytest_vllm.profile.flags import flag_notes
    from pytest_vllm.profile.load import origin
    from pytest_vllm.profile.write import to_toml

    figures = figures_of(profile, root)
    print(f"# {profile.name} ({origin(profile, root)})")
    for note in flag_notes(profile.server.args, profile.server.vllm_version):
        print(f"# note: {note}")
    print(to_toml(profile, figures), end="")
    for line in Roofline(figures).lines() if figures else ():
        print(f"# {line}")


def _running(name: str, environ: Mapping[str, str]) -> Draft:
    from pytest_vllm.launch.running import read_running

    return read_running(name, environ)
