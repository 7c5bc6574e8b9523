"""What every way to describe a container has: image, entry point, command, GPUs, volumes, ports."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.facts import canonical
from pytest_vllm.profile.importers.marks import secret_mark
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.pick import Candidate, pick
from pytest_vllm.profile.importers.program import other_program, serves, starter, wraps
from pytest_vllm.profile.importers.shellaccount import account, emitted, explained, install
from pytest_vllm.profile.importers.shellalternatives import distinct, one_of
from pytest_vllm.profile.importers.shellprefix import nested
from pytest_vllm.profile.importers.shellrun import Run
from pytest_vllm.profile.importers.shellstate import State
from pytest_vllm.profile.importers.shelltree import parsed
from pytest_vllm.profile.importers.shellvalue import LEFT_EMPTY, Remark, Value
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.vllmline import (
    asks,
    flag_of,
    model_of,
    program_length,
    read_arguments,
    version_of,
)
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.shellwalk import Start
    from pytest_vllm.profile.importers.variables import Variables

_WRAPPERS = ("exec", "sudo", "nohup", "env", "time", "command", "-E")
#: Images of the vLLM project, whose own entry point is `vllm serve` (or the module that came before it).
_OWN_START = re.compile(r"(?:(?:index\.)?docker\.io/)?vllm/vllm-openai(?:-[\w-]+)?(?:[:@].*)?")
#: What a guide writes where a name belongs.
_STANDS_FOR = re.compile(r"\.{2,}|…|<[^<>]+>|\[[^\[\]]+\]|(?:YOUR|MY)[_-]MODEL\w*|MODEL(?:_NAME|_ID|_PATH)?")
#: What makes vLLM say something of itself and end.
_SIZE = re.compile(r"\d+(?:\.\d+)?\s*(?:[kmgt]i?b?|b)?", re.IGNORECASE)


def runs_vllm(image: str, words: Sequence[str]) -> bool:
    """Whether a container of this image with these words (entry point and command) is a vLLM server."""
    if other_program(words) or simulates(image):
        return False
    if program_length(words) or any(map(serves, words)):
        return True
    name = image.lower()
    if len(_bare(words)) > 1 and words[0] != "serve" and not name.startswith(("vllm/", "docker.io/vllm/")):
        return False  # a program and what it is told; vLLM takes one model
    if "vllm" in name.rpartition("/")[2] or ("vllm" in name and "--model" in words):
        return True
    return bool(image) and _only_vllm_flags(words)


def _bare(words: Sequence[str]) -> list[str]:
    """The words before the first flag."""
    return list(itertools.takewhile(lambda one: not one.startswith("-"), words))


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?)[bB]?")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def read_memory(draft: Draft, text: str, line: int, *, binary: bool = True) -> None:
    """The limit of the host's memory: `32g` to an engine (`binary`), `32Gi` to a cluster."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        draft.lost(line, f"the limit of memory, {text},")
        return
    base = 1024 if binary or found[3] else 1000
    draft.deployment["memory"] = round(float(found[1]) * base ** _POWERS[found[2].lower()])


def simulates(image: str) -> bool:
    """Whether an image answers like vLLM and has none in it: llm-d's simulator."""
    return re.search(r"(?:^|/)(?:llm-d-inference-sim|vllm-sim(?:ulator)?)(?:[:@]|$)", image) is not None


def _only_vllm_flags(words: Sequence[str]) -> bool:
    """Whether an image is given a model and flags that vLLM knows, all of them."""
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    own = [one for one in flags if one not in ("--model", "--host", "--port")]
    begins = bool(words) and words[0].startswith("--")
    return begins and "--model" in flags and bool(own) and all(flag_of(canonical(one)) for one in flags)


def read_start(
    draft: Draft,
    entrypoint: Sequence[Word],
    command: Sequence[Word],
    variables: Variables,
    *,
    cleared: bool = False,
) -> None:
    """Entry point and command of a container, or the command line of a process.

    The program ends where vLLM's arguments begin; without one the image's own entry point starts vLLM.
    Raises ImportProblem for a command that an image of the vLLM project would take for arguments.

    Args:
        draft: what they are put into, its image already there.
        entrypoint: what takes the place of the image's own; empty: none does.
        command: what is written behind the image.
        variables: what names in them stand for.
        cleared: the image's own entry point is taken away, and none put in its place.
    """
    if not entrypoint and not cleared:
        _started_twice(draft, command)
        command = _entered(draft, command)
    words, said = _unwrapped(draft, [*entrypoint, *command], variables)
    if draft.wanted:
        known = [draft.within] if draft.within else []
        raise draft.origin.problem(0, unknown("server", draft.wanted, known))
    if words and (other := other_program([word.text for word in words])):
        fix = "name the file that starts vLLM, or the script that is run there"
        raise draft.origin.problem(words[0].line, f"it starts {other}, not vLLM's server", fix)
    texts = [word.text for word in words]
    if wraps(texts):
        _wrapped(draft, entrypoint, words[0])
    length = program_length(texts)
    if length:
        draft.set("command", texts[:length], words[0].line)
        if before := starter(texts[:length]):
            what = f"{before} starts it: what that does beside, such as a container, is not known"
            draft.note(words[0].line, what)
        if version := version_of(texts[:length]):
            draft.set("version", version, words[0].line)
    elif entrypoint:
        draft.set("entrypoint", [word.text for word in entrypoint], entrypoint[0].line)
        words = list(command)
    try:
        read_arguments(draft, words[length:])
    except ImportProblem as problem:
        raise explained(draft.origin, said, problem) from problem
    _has_model(draft, words, said)


def _has_model(draft: Draft, words: Sequence[Word], said: Sequence[Remark]) -> None:
    """Note a server of vLLM's default model. Raises ImportProblem for a name that is missing or none."""
    model = draft.server.get("model", "")
    if _STANDS_FOR.fullmatch(model):
        line = words[0].line if words else 0
        raise draft.origin.problem(
            line, f"{model!r} stands for a model's name", "write the name in its place"
        )
    if not model and "config" not in draft.args:
        if said:
            raise draft.origin.problem(said[0].line, said[0].text.removesuffix(LEFT_EMPTY))
        draft.note(words[0].line if words else 0, "no model is named: vLLM serves its default model")


def _entered(draft: Draft, command: Sequence[Word]) -> Sequence[Word]:
    """What is written behind an image with the entry point that it must have, where its words show that.

    Raises ImportProblem for an image whose own start is all that there is, unless vLLM's project made it.
    """
    image = draft.server.get("image", "")
    if not image or _OWN_START.fullmatch(image):
        return command
    if not command and "$" not in image:
        what = f"{image} is started as it is: what its own entry point serves is not said here"
        fix = "give its command, or the container where it runs: --vllm-from=container:NAME"
        raise draft.origin.problem(0, what, fix)
    if command and command[0].text == "serve":
        draft.note(command[0].line, f"the entry point of {image} is taken for `vllm`: it is given `serve`")
        return [Word("vllm", command[0].line), *command]
    return command


def _wrapped(draft: Draft, entrypoint: Sequence[Word], script: Word) -> None:
    """Say what is not known of an entry point. Raises ImportProblem for a script that is an argument."""
    if not entrypoint:
        fix = "name the file that starts vLLM, or the script that is run there"
        raise draft.origin.problem(script.line, f"it starts {script.text}, not vLLM's server", fix)
    what = f"{script.text} is not read: what it adds to the flags that it is given is not known"
    draft.note(script.line, what)


def _started_twice(draft: Draft, command: Sequence[Word]) -> None:
    """Refuse `vllm serve` behind an image that starts `vllm serve` itself: vLLM ends with an error."""
    image, texts = draft.server.get("image", ""), [word.text for word in command]
    if not _OWN_START.fullmatch(image) or not texts:
        return
    wrapped = nested([Value(text) for text in texts]) is not None
    if wrapped or program_length(texts) or texts[0] == "serve":
        shown = " ".join(" ".join(texts[:3]).split()[:4])
        what = f"{image} starts vLLM itself: `{shown} …` behind it are arguments, and vLLM ends with an error"
        fix = "leave out what starts vLLM, or make it the entry point (Kubernetes: command)"
        raise draft.origin.problem(command[0].line, what, fix)


def _unwrapped(
    draft: Draft, words: list[Word], variables: Variables
) -> tuple[list[Word], tuple[Remark, ...]]:
    """The words that a shell around vLLM (`bash -c "…"`) would start, in the server's environment.

    Returns:
        The words, and what has to be said of those that a shell leaves out.
    """
    found = nested([Value(word.text) for word in words]) if words else None
    if found is None:
        return words, ()
    at = next(place for place, word in enumerate(words) if word.text == found[0].text)
    state = _state(draft, variables, found[1])
    given = set(state.values)
    run = Run(draft.origin, parsed(found[0].text, draft.origin, words[at].line), state).follow()
    starts = distinct([one for one in run.starts if program_length(one.texts) and not asks(one.texts)])
    if not starts:
        return words, ()
    starts = starts if draft.wanted else one_of(starts, run.taken)
    chosen = _chosen(draft, starts)
    inner = [Word(emitted(draft, value), line) for value, line in chosen.words]
    used = {use for value, _ in chosen.words for use in value.uses}
    seen = {} if chosen.prefix.cleared else chosen.state.environment()
    if chosen.prefix.cleared:
        draft.env.clear()
    for name in sorted(given & set(draft.env) - set(chosen.state.values)):
        draft.note(chosen.line, f"{name} is taken away before vLLM is started")
        del draft.env[name]
    for name, value in {**seen, **{name: one for name, (one, _) in chosen.prefix.env.items()}}.items():
        used |= value.uses
        if value.uses or name in chosen.prefix.env:
            draft.set_env(name, emitted(draft, value, lenient=True), chosen.line)
    account(draft, run, chosen, used, ", which is run before vLLM,")
    install(draft, run)
    around = " ".join(word.text for word in words[:at])
    draft.note(words[at].line, f"the shell around vLLM ({around}) is left out")
    return inner, chosen.said


def _chosen(draft: Draft, starts: list[Start]) -> Start:
    """The one that is meant of the servers that a shell starts."""
    prefix = f"{draft.within}/" if draft.within else ""
    candidates = [
        Candidate(f"{prefix}{number}", one.line, model_of(one.texts)) for number, one in enumerate(starts, 1)
    ]
    wanted = f"{prefix}{draft.wanted}" if draft.wanted else None
    found = starts[pick(draft.origin, candidates, wanted, "server")]
    draft.wanted = ""
    return found


def _state(draft: Draft, variables: Variables, arguments: tuple[Value, ...]) -> State:
    """A shell as the server's environment starts it."""
    contained = draft.server["launcher"] != "process"
    origin = draft.origin
    outer = {} if contained else origin.environ
    state = State(Path("/") if contained else origin.folder, outer, origin.home, contained=contained)
    key = {"VLLM_API_KEY": draft.server["api-key"]} if "api-key" in draft.server else {}
    for name, value in {**variables.values, **draft.env, **key}.items():
        text = value
        if isinstance(value, dict):
            text = secret_mark(value["from-env"], optional="optional" in value)
        state.assign(name, Value(text), export=True)
    state.arguments = arguments
    return state


def without_prefix(words: list[Word]) -> list[Word]:
    """A command without `exec`, `sudo`, `nohup` and the like in front."""
    at = 0
    while at < len(words) and words[at].text.rpartition("/")[2] in _WRAPPERS:
        at += 1
    return words[at:]


def read_gpus(draft: Draft, text: str, line: int) -> None:
    """`--gpus`: all, a number, `"device=0,1"`."""
    text = text.strip("'\"")
    if text == "all":
        draft.set("gpus", "all", line)
    elif text.isdigit():
        draft.set("gpus", int(text), line)
    elif found := re.search(r"device=([^\s\"']+)", text):
        draft.set("gpus", found[1].split(","), line)
    elif found := re.search(r"count=(\w+)", text):
        draft.set("gpus", "all" if found[1] in ("all", "-1") else int(found[1]), line)
    else:
        draft.lost(line, f"--gpus {text}")


def read_device(draft: Draft, text: str, line: int) -> None:
    """`--device`: a CDI name of NVIDIA asks for a GPU; any other device is passed in as it stands."""
    if re.match(r"nvidia\.com/gpu=", text):
        known = draft.server.get("gpus")
        draft.set("gpus", [*(known if isinstance(known, list) else []), text], line)
    else:
        add(draft, "devices", text, line)


def add(draft: Draft, key: str, text: str, line: int) -> None:
    """One more entry of a list in `[server]`."""
    draft.set(key, [*draft.server.get(key, []), text], line)


def read_ulimit(draft: Draft, text: str, line: int) -> None:
    """`memlock=-1`, `nofile=1024:4096`."""
    name, _, limit = text.partition("=")
    draft.set("ulimits", {**draft.server.get("ulimits", {}), name: limit}, line)


def read_runtime(draft: Draft, text: str, line: int) -> None:
    """`runtime: nvidia` asks for the GPUs that NVIDIA_VISIBLE_DEVICES names; others are kept by name."""
    if text != "nvidia":
        if text != "runc":
            draft.set("runtime", text, line)
        return
    visible = draft.env.get("NVIDIA_VISIBLE_DEVICES", "all")
    if "gpus" in draft.server or visible in ("none", "void", ""):
        return
    draft.set("gpus", "all" if visible == "all" or not isinstance(visible, str) else visible.split(","), line)
    draft.note(line, f"the runtime nvidia became gpus = {draft.server['gpus']!r}")


def read_volume(draft: Draft, text: str, line: int) -> None:
    """`HOST:CONTAINER[:options]`, options of its own kind left out."""
    host, _, rest = text.partition(":")
    if re.match(r"[A-Za-z]:[\\/]|\.?\.?[^:/]*\\", text):
        inside = text.rpartition(":/")[2].partition(":")[0]
        draft.deployment["mounts"] = [*draft.deployment.get("mounts", []), f"/{inside}"]
        draft.lost(line, f"the folder of Windows at /{inside}")
        return
    if not rest:
        draft.lost(line, f"the anonymous volume {text}")
        return
    inside, _, options = rest.partition(":")
    kept = [one for one in options.split(",") if one in ("ro", "z", "Z")]
    others = [one for one in options.split(",") if one not in ("ro", "rw", "z", "Z", "")]
    if others:
        draft.lost(line, f"the option {','.join(others)} of the volume {inside}")
    if host.startswith("$"):
        raise draft.origin.problem(line, f"the volume {text} names a folder that is not set")
    draft.volumes.append(":".join([draft.origin.host(host), inside, *([",".join(kept)] if kept else [])]))


def read_mount(draft: Draft, text: str, line: int) -> None:
    """`--mount type=bind,source=…,target=…[,readonly]`."""
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    source = pairs.get("source") or pairs.get("src", "")
    target = next((pairs[one] for one in ("target", "dst", "destination", "dest") if pairs.get(one)), "")
    if pairs.get("type", "volume") not in ("bind", "volume") or not source or not target or ":" in source:
        draft.lost(line, f"the mount {text}")
        return
    read_only = "readonly" in pairs or "ro" in pairs
    read_volume(draft, f"{source}:{target}{':ro' if read_only else ''}", line)


def read_shm(draft: Draft, text: str, line: int) -> None:
    """The size of /dev/shm, in Docker's notation or in Kubernetes'."""
    text = re.sub(r"(?<=\d)([KMGT])i$", lambda found: found[1].lower(), text.strip())
    if not _SIZE.fullmatch(text):
        raise draft.origin.problem(line, f"{text!r} is not a size of /dev/shm", 'write one such as "16g"')
    draft.set("shm", text, line)


def read_ipc(draft: Draft, text: str, line: int) -> None:
    """The IPC namespace."""
    if text in ("host", "private"):
        draft.set("ipc", text, line)
    else:
        draft.lost(line, f"ipc {text}")


def split(text: str) -> list[str]:
    """A command in one string, as compose and Docker split it."""
    return shlex.split(text)
