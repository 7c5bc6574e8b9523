"""What a scripted server needs before it can start: model and processor, and a profile that names both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.scripted.model import build
from pytest_vllm.scripted.writing import Writer

if TYPE_CHECKING:
    from pytest_vllm.profile.model import Profile

#: What vLLM imports: a copy of processor.py under a name of its own.
MODULE = "pytest_vllm_script"
PROCESSOR = f"{MODULE}:ScriptedProcessor"
#: Where a container finds it all.
INSIDE = "/scripted"


def staged(profile: Profile, folder: Path) -> Profile:
    """A scripted profile with its model and processor made in a folder; any other profile as it is.

    Args:
        profile: what is to be started; its parsers decide which markers the tokenizer knows.
        folder: absolute, removed with everything in it once the server has ended.

    Raises LookupError that says why for a parser that cannot be scripted.
    """
    server = profile.server
    if not server.scripted or not server.kind.starts:
        return profile
    args = {**server.args, "logits-processors": [PROCESSOR]}
    writer = Writer.of(server.args)
    for grammar in (writer.tool, writer.reasoning):
        if grammar is not None and not grammar.covered:
            raise LookupError(f"nobody can script the {grammar.kind} parser {grammar.name}: {grammar.reason}")
    if server.kind.simulated:
        return _with(profile, args=args)
    if writer.kwargs:
        args["default-chat-template-kwargs"] = json.dumps(writer.kwargs)
    build(folder / "model", markers=writer.markers, special=writer.special, closed=writer.closed)
    shutil.copyfile(Path(__file__).with_name("processor.py"), folder / f"{MODULE}.py")
    root = INSIDE if server.kind.container else str(folder)
    volumes = [*server.volumes, f"{folder}:{INSIDE}:ro"] if server.kind.container else server.volumes
    return _with(
        profile,
        args=args,
        model=f"{root}/model",
        volumes=volumes,
        env={**server.env, "PYTHONPATH": root},
    )


def _with(profile: Profile, **changes: object) -> Profile:
    return profile.model_copy(update={"server": profile.server.model_copy(update=changes)})
