"""What a script writes for other programs: vLLM's `--config`, a unit, a compose file, a manifest."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import KINDS, detected
from pytest_vllm.profile.importers.configfile import read_config
from pytest_vllm.profile.importers.embedded import Part, read_part, serving
from pytest_vllm.profile.importers.origin import ImportProblem, Origin
from pytest_vllm.profile.importers.shellaccount import besides, install
from pytest_vllm.profile.importers.shellfiles import unknown_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.shellfiles import Written
    from pytest_vllm.profile.importers.shellrun import Run

_VLLM = ("vllm", "api_server")
#: Kinds that say what is started and how; scripts are run by name, an image by a command.
_DESCRIBING = ("compose", "kubernetes", "systemd", "supervisord")
#: Keys of `[server]` that stand in a `--config` as flags do.
_OF_SERVER = ("model", "served-model-name", "api-key")


def read_configuration(draft: Draft, origin: Origin, run: Run) -> None:
    """Put the flags of a `--config` that the script writes itself into the draft: the gate has no such file.

    Raises ImportProblem for a value in it that is not known.
    """
    name = draft.args.get("config")
    path = os.path.normpath(origin.folder / name) if isinstance(name, str) else ""
    found = run.written.get(path, [])
    if len(found) != 1:
        return
    (written,) = found
    _known(origin, written)
    given = read_config(replace(origin, text="\n" * (written.line - 1) + written.text.text))
    for key in _OF_SERVER:
        if key in given.server and key not in draft.server:
            draft.set(key, given.server[key], given.line_of("server", key))
    for flag, value in given.args.items():
        if flag not in draft.args:  # vLLM's command line wins over its configuration
            draft.set_arg(flag, value, given.line_of("server", "args", flag))
    line = draft.line_of("server", "args", "config")
    del draft.args["config"]
    draft.note(
        line, f"the flags of {name}, which the script writes (line {written.line}), are in the profile"
    )
    for remark in written.text.remarks:
        draft.note(remark.line, remark.text)


def installed(draft: Draft, run: Run) -> None:
    """The version of vLLM that the script installs for a process that it starts, where it is one."""
    if draft.server["launcher"] == "process" and "version" not in draft.server:
        install(draft, run)


def described(origin: Origin, run: Run, service: str | None) -> Draft | None:
    """The server that a file describes, which the script writes; None where it writes none.

    Raises ImportProblem for a choice nobody made, and for a value in the file that is not known.
    """
    texts = {part.name: (part, written) for part, written in _parts(origin, run)}
    found, faults = serving([part for part, _ in texts.values()])
    for part, problem in faults:
        if not found and any(word in part.origin.text for word in _VLLM):
            _known(origin, texts[part.name][1])
            raise problem
    if not found:
        return None
    draft, part = read_part(origin, found, service, "written file")
    written = texts[part.name][1]
    _known(origin, written)
    for remark in written.text.remarks:
        draft.note(remark.line, remark.text)
    draft.note(part.line, f"{part.name} is what the script writes here; it is read as {KINDS[part.kind]}")
    installed(draft, run)
    besides(draft, run)
    return draft


def _known(origin: Origin, written: Written) -> None:
    """Refuse a text in which a value is not known."""
    remark = unknown_in(written)
    if remark is not None:
        what, _, fix = remark.text.partition("; ")
        raise origin.problem(remark.line, what, fix)


def _parts(origin: Origin, run: Run) -> Iterator[tuple[Part, Written]]:
    """Texts that the script writes and that may start vLLM, each of a kind that is read."""
    texts = [one.text.text for several in run.written.values() for one in several]
    if not any(word in text for text in texts for word in _VLLM):
        return
    for path, several in run.written.items():
        for written in several if len(several) == 1 else ():
            text = written.text.text
            folder = origin.folder if " " in path else Path(path).parent
            name = "the text" if " " in path else path
            try:
                kind = detected(Origin(text, name, folder, origin.environ))
            except ImportProblem:
                continue
            shown = f"{origin.shown} ({written.name})"
            lines = "\n" * (written.line - 1)
            whole = Origin(lines + text, shown, folder, origin.environ, run.texts())
            if kind in _DESCRIBING:
                yield Part(written.name, written.line, whole, kind), written
