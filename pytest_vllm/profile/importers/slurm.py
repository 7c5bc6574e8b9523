"""What a script asks a batch system for, in comments: `#SBATCH --gres=gpu:h100:4`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.gpunames import hardware_named

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft

#: Slurm, PBS, LSF, Flux and Grid Engine; a second # in front takes a line back.
_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB|FLUX:|\$)[ \t]+(-.*)")
_GPU = re.compile(
    r"gpu:([A-Za-z][\w.-]*)|(?:--gpus(?:-per-\w+)?|-G)[= ]([A-Za-z][\w.-]*)|--constraint[= ](\S+)"
)


def directives(draft: Draft) -> None:
    """Take the kind of GPU from a script's directives, and note the rest of them."""
    left: dict[int, str] = {}
    for line, text in enumerate(draft.origin.text.splitlines(), 1):
        found = _DIRECTIVE.match(text)
        if found is None:
            continue
        asked = next((name for names in _GPU.findall(found[2]) for name in names if name), "")
        name = hardware_named(asked.replace("_", "-"))
        if name:
            draft.hardware = name
            draft.note(line, f"{found[2].split('#')[0].strip()} became hardware = {name}")
        else:
            left[line] = found[2].split(" #")[0].strip()
    if left:
        shown = ", ".join(f"{text} (line {line})" for line, text in left.items())
        draft.note(next(iter(left)), f"what the batch system is asked for is not carried over: {shown}")
