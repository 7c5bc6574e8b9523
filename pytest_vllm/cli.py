"""`pytest-vllm`: what there is, beside the gate itself.

Every command imports what it needs when it runs, so that `--help` and completion are there at once.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pytest_vllm.report.tables import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.importers.draft import Draft

USAGE = 4

app = typer.Typer(
    name="pytest-vllm",
    help="What pytest-vllm knows: profiles, checks, defects; and what runs left behind.\n\n"
    "The gate itself is pytest: pytest --vllm-profile=NAME",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PASSED_ON: dict[str, Any] = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": [],
}

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Rootdir = Annotated[
    Path | None,
    typer.Option(
        help="The project whose profiles count; found from the current folder unless told otherwise."
    ),
]


class UsageError(Exception):
    """What the person asked for cannot be; one line, exit status 4."""


@app.command()
def profiles(rootdir: Rootdir = None, as_json: AsJson = False) -> None:
    """List the profiles that --vllm-profile takes."""
    from pytest_vllm.profile.load import ProfileError, load, names

    root = _root(rootdir)
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
    print_rows(
        rows, as_json=as_json, hidden=() if any(row["origin"] != "built in" for row in rows) else ("origin",)
    )
    if broken:
        raise UsageError("\n".join(broken))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A profile's name, or a path to one.")],
    rootdir: Rootdir = None,
    as_json: AsJson = False,
    as_kind: Annotated[
        str | None,
        typer.Option("--as", help="As compose, docker-run, podman-run, systemd, k8s or serve."),
    ] = None,
) -> None:
    """Print a profile complete, with what its hardware allows."""
    from pytest_vllm.preflight.roofline import Roofline
    from pytest_vllm.profile.derived import figures_of
    from pytest_vllm.profile.exporters import exported
    from pytest_vllm.profile.flags import flag_notes
    from pytest_vllm.profile.load import load, origin
    from pytest_vllm.profile.write import to_toml

    root = _root(rootdir)
    if as_kind is not None:
        found = exported(load(name, root), as_kind)
        print(found.text, end="")
        for note in found.notes:
            sys.stderr.write(f"note: {note}\n")
        return
    profile = load(name, root, expand=False)
    figures = figures_of(profile, root)
    notes = flag_notes(profile.server.args, profile.server.vllm_version)
    if as_json:
        content = profile.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude={"name", "source"}
        )
        shown = {"name": profile.name, "origin": origin(profile, root), "profile": content}
        print_json({**shown, "derived": figures.plain() if figures else None, "notes": notes})
        return
    print(f"# {profile.name} ({origin(profile, root)})")
    for note in notes:
        print(f"# note: {note}")
    print(to_toml(profile, figures), end="")
    for line in Roofline(figures).lines() if figures else ():
        print(f"# {line}")


@app.command("import")
def import_(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, - for standard input, or container:NAME.")
    ],
    service: Annotated[str | None, typer.Option(help="Which vLLM server, where FILE has several.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="compose, kubernetes, systemd, shell or config; else found out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the profile to this file.")] = None,
) -> None:
    """Print a deployment written down elsewhere as a profile."""
    from pytest_vllm.profile.importers import imported
    from pytest_vllm.profile.write import to_toml

    if out is not None and out.exists():
        raise UsageError(f"{out} exists: remove it first, or name another file")
    found = imported(source, kind=kind, service=service, running=_running)
    text = to_toml(found.profile)
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, "utf-8")
        print(f"wrote {out}: pytest --vllm-profile={out}")
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")


@app.command()
def preflight(  # noqa: PLR0917 - the options of a command
    name: Annotated[str, typer.Argument(help="A profile's name, or a path to one.")] = "",
    rootdir: Rootdir = None,
    as_json: AsJson = False,
    rules: Annotated[bool, typer.Option("--rules", help="Print every rule as a Markdown table.")] = False,
    fix: Annotated[
        Path | None, typer.Option(help="Write the corrected profile here: its own file or a new one.")
    ] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write SARIF 2.1.0 here, for code hosts.")] = None,
    host: Annotated[
        bool, typer.Option("--host", help="Ask this machine too: GPUs, memory, ports, other servers.")
    ] = False,
) -> None:
    """Say what is wrong with a profile; starts nothing.

    The exit status is 1 when there are errors.
    """
    from pytest_vllm.locate import VERSION
    from pytest_vllm.preflight import command, render

    if rules:
        print(render.catalogue())
        return
    if not name:
        raise UsageError("which profile? pytest-vllm preflight NAME (pytest-vllm profiles lists them)")
    root = _root(rootdir)
    profile, found = command.findings_of(name, root, host=host)
    if sarif is not None:
        command.write_sarif(found, profile, root, VERSION, sarif)
    if as_json:
        print_json(render.as_json(found, profile))
    else:
        print("\n".join([*render.lines(found, profile), render.summary(found, profile)]))
    if fix is not None:
        told = command.write_fixed(name, root, found, fix)
        print("\n".join(told), file=sys.stderr if as_json else sys.stdout)
    raise typer.Exit(command.exit_status(found))


@app.command()
def checks(
    area: Annotated[str | None, typer.Option(help="Only the checks of this suite.")] = None,
    as_json: AsJson = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page suites/CATALOGUE.md.")
    ] = False,
) -> None:
    """List the bundled checks and the fact that each proves."""
    from pytest_vllm.face.catalogue import entries, markdown
    from pytest_vllm.profile.words import unknown

    found = entries()
    areas = sorted({entry.area for entry in found})
    if area is not None and area not in areas:
        raise UsageError(unknown("area", area, areas))
    found = [entry for entry in found if area in (None, entry.area)]
    if as_markdown:
        print(markdown(found), end="")
        return
    rows = [entry.plain() for entry in found]
    kept = None if as_json else ("id", "level", "tier", "needs", "fact")
    print_rows([row if kept is None else {key: row[key] for key in kept} for row in rows], as_json=as_json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of profiles, for editors."""
    from pytest_vllm.profile.schema import schema_text

    print(schema_text(), end="")


@app.command()
def defects(as_json: AsJson = False) -> None:
    """List the faults that --vllm-defect gives the simulator."""
    from pytest_vllm.sim.defects.registry import all_defects

    rows = [
        {
            "name": one.name,
            "area": one.area,
            "catches": list(one.catches),
            "faults": list(one.faults),
            "summary": one.summary,
        }
        for one in all_defects().values()
    ]
    print_rows(rows, as_json=as_json, hidden=("catches", "faults"))


@app.command()
def reap(
    runs: Annotated[Path, typer.Option(help="The folder of run folders.")] = Path(".vllm/runs"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove what dead runs left behind, never anything else."""
    from pytest_vllm.launch.reap import find_orphans
    from pytest_vllm.launch.reap import reap as remove

    orphans = find_orphans(runs if runs.is_dir() else None)
    if not orphans:
        print("nothing is left of dead runs")
        return
    failed = [] if dry_run else remove(orphans)
    for orphan in orphans:
        done = "would remove" if dry_run else "could not remove" if orphan in failed else "removed"
        print(f"{done} {orphan.kind} {orphan.name} (run {orphan.run_id}, {orphan.age:.0f} s old)")
    if failed:
        raise typer.Exit(1)


@app.command(context_settings=PASSED_ON)
def replay(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder of a run, such as .vllm/runs/20261127-2050.")],
) -> None:
    """Judge the recordings of a run again, without a server.

    Further arguments go to pytest.
    """
    if not folder.is_dir():
        raise UsageError(
            f"no run folder {folder}: runs are kept in .vllm/runs unless --vllm-report says otherwise"
        )
    _become("pytest", f"--vllm-replay={folder}", *context.args)


@app.command(context_settings=PASSED_ON)
def sim(context: typer.Context) -> None:
    """Run the simulator: pytest-vllm sim serve MODEL."""
    _become("pytest_vllm.sim", *context.args)


@app.command("load-worker")
def load_worker(address: Annotated[str, typer.Argument(help="HOST:PORT, as the gate tells it.")]) -> None:
    """Send a part of the loads of a gate on another machine."""
    _become("pytest_vllm.measure.swarm", address)


@app.command()
def version() -> None:
    """Print the versions that a fault report names."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from pytest_vllm import facts
    from pytest_vllm.locate import VERSION

    print(f"pytest-vllm {VERSION}")
    for package in ("pytest", "openai", "docker"):
        try:
            print(f"{package} {installed(package)}")
        except PackageNotFoundError:
            print(f"{package} is not installed")
    print(f"python {sys.version.split()[0]}")
    print(f"facts of vLLM {facts.versions()[0]} to {facts.versions()[-1]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status 0, 1 when it failed, 4 when it was asked for something that cannot be."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _known(words)
        command = typer.main.get_command(app)
        status = command.main(words or ["--help"], prog_name="pytest-vllm", standalone_mode=False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        text = _usage_text(error)
        if text is None:
            raise
        sys.stderr.write(f"pytest-vllm: {text}\n")
        return USAGE
    return status if isinstance(status, int) else 0


def _known(words: list[str]) -> None:
    from pytest_vllm.profile.words import unknown

    commands = sorted(
        str(one.name or one.callback.__name__) for one in app.registered_commands if one.callback
    )
    if words and not words[0].startswith("-") and words[0] not in commands:
        raise UsageError(unknown("command", words[0], commands))


def _usage_text(error: Exception) -> str | None:
    """One line for what the person got wrong; None for what we did."""
    if isinstance(error, UsageError):
        return str(error)
    if hasattr(error, "format_message"):  # click's own, which typer carries under another name
        return f"{error.format_message()} (see pytest-vllm --help)"
    from pytest_vllm.profile.errors import ProfileError

    return str(error) if isinstance(error, ProfileError) else None


def _root(given: Path | None) -> Path:
    """The project's root: the nearest folder upwards that holds profiles or a pyproject.toml."""
    if given is not None:
        if not given.is_dir():
            raise UsageError(f"no folder {given}")
        return given
    here = Path.cwd()
    marks = ("vllm-profiles", "pyproject.toml", "pytest.ini", ".git")
    return next(
        (folder for folder in (here, *here.parents) if any((folder / m).exists() for m in marks)), here
    )


def _running(name: str, environ: Mapping[str, str]) -> Draft:
    from pytest_vllm.launch.running import read_running

    return read_running(name, environ)


def _become(module: str, *arguments: str) -> None:
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606 - signals go straight to it


if __name__ == "__main__":
    sys.exit(main())
