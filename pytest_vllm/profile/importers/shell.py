"""Scripts and single lines: `vllm serve …`, `docker run …`, `podman run …`, with what stands around them."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container, containerline
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.marks import unrun_in
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.pick import Candidate, apart, parted, pick
from pytest_vllm.profile.importers.program import container_of, other_program
from pytest_vllm.profile.importers.shellaccount import account, emitted, explained, known_words, sourced
from pytest_vllm.profile.importers.shellalternatives import distinct, one_of
from pytest_vllm.profile.importers.shellothers import none_but_others
from pytest_vllm.profile.importers.shellprefix import is_run
from pytest_vllm.profile.importers.shellrun import Run
from pytest_vllm.profile.importers.shellstate import State
from pytest_vllm.profile.importers.shelltree import parsed
from pytest_vllm.profile.importers.shellvalue import LEFT_EMPTY
from pytest_vllm.profile.importers.shellwords import Word, resolved
from pytest_vllm.profile.importers.shellwritten import described, installed, read_configuration
from pytest_vllm.profile.importers.slurm import directives
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.vllmline import USUAL, asks, program_length

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.shelltree import Script
    from pytest_vllm.profile.importers.shellwalk import Start

#: Flags whose values may be files, and those that are.
_FILES = ("config", "chat-template")
_PATHS = (*_FILES, "tokenizer", "hf-config-path", "download-dir")
_CONDITION = re.compile(r" \(line \d+\)$")
_INSTRUCTIONS = ("FROM", "ENTRYPOINT", "CMD", "RUN", "COPY")


def read_shell(origin: Origin, service: str | None) -> Draft:
    """The one command of a script that starts vLLM. Raises ImportProblem when there is none, or a choice."""
    _no_dockerfile(origin)
    state = State(origin.folder, origin.environ, origin.home, origin.itself)
    return read_script(origin, parsed(origin.text, origin), state, service)


def read_script(
    origin: Origin, script: Script, state: State, service: str | None, *, targets: str = ""
) -> Draft:
    """The one command of a script that starts vLLM, from a state on. Raises ImportProblem as `read_shell`.

    Args:
        origin: what messages name.
        script: the script.
        state: what is known before it begins.
        service: which command, where there are several.
        targets: what calls its functions: `make`, whose targets they are.
    """
    fresh = state.copy()
    run = Run(origin, script, state, targets=targets).follow()
    found = distinct([one for one in run.starts if _is_vllm(one.texts)])
    found = found if service else one_of(found, run.taken)
    named = [_name(one, found) for one in found]
    named = [one if named.count(one) == 1 else str(at) for at, one in enumerate(named, 1)]
    said = (
        apart([one.texts for one in found])
        if len({one.line for one in found}) < len(found)
        else [""] * len(found)
    )
    candidates = [Candidate(name, one.line, how) for name, one, how in zip(named, found, said, strict=True)]
    if not found:
        if (draft := described(origin, run, service)) is not None:
            return draft
        none_but_others(origin, run)
    wanted, inner = parted([one.name for one in candidates], service)
    at = pick(origin, candidates, wanted, "command")
    chosen = found[at]
    if assumed := frozenset(_CONDITION.sub("", one) for one in chosen.where if "$" in one):
        again = Run(origin, script, fresh, targets=targets, assumed=assumed).follow()
        if (there := _same(again, chosen)) is not None:
            run, chosen = again, there
    here = replace(origin, folder=chosen.state.folder, written=run.texts())
    try:
        draft, used = _draft(here, chosen, candidates[at].name, inner)
        read_configuration(draft, here, run)
        _rooted(draft, here)
    except ImportProblem as problem:
        if line := chosen.script.cut_short(chosen.node):
            what = "the comment takes the backslash behind it: the command ends there"
            raise origin.problem(line, what, "put the comment on a line of its own") from problem
        told = explained(origin, chosen.said, problem, chosen.state.needed)
        raise sourced(told, run.notes) from problem
    if chosen.said and not draft.server.get("model"):
        raise origin.problem(chosen.said[0].line, chosen.said[0].text.removesuffix(LEFT_EMPTY))
    if not draft.server.get("model") and "config" not in draft.args:
        _started_within(origin, run)
    installed(draft, run)
    account(draft, run, chosen, used)
    directives(draft)
    return draft


def _same(run: Run, chosen: Start) -> Start | None:
    """The same command in another walk through the same script."""
    place = (chosen.script.line(chosen.node), chosen.node.start_byte, chosen.where)
    found = [
        one for one in run.starts if (one.script.line(one.node), one.node.start_byte, one.where) == place
    ]
    return found[0] if len(found) == 1 else None


def _draft(origin: Origin, chosen: Start, within: str, wanted: str) -> tuple[Draft, set[Hashable]]:
    """The draft of a command, and which assignments it came from."""
    engine = is_run(chosen.texts)
    kind = "podman" if chosen.texts[0].endswith("podman") else "docker"
    draft = Draft(origin, kind if engine else "process", f"{kind}-run" if engine else "shell")
    draft.within, draft.wanted = within, wanted
    texts = chosen.texts
    if not engine:
        known_words(origin, chosen)
    if not texts[0]:
        what = "the program that the command begins with is empty"
        raise origin.problem(chosen.line, what, "write it in its place, or give the vllm serve line")
    words = [
        Word(emitted(draft, value, lenient=engine and _of_env(texts[:at], value.text)), line)
        for at, (value, line) in enumerate(chosen.words)
    ]
    used = {use for value, _ in chosen.words for use in value.uses}
    plain = Variables(origin, draft.note, kind="plain")
    seen = {} if chosen.prefix.cleared else chosen.state.environment()
    lines = {name: line for name, (_, line) in chosen.prefix.env.items()}
    seen |= {name: value for name, (value, _) in chosen.prefix.env.items()}
    seen = {name: value for name, value in seen.items() if name not in chosen.prefix.unset}
    if engine:
        draft.seen = {name: value.text for name, value in seen.items()}
        containerline.read_into(draft, words, plain)
        taken = {name: value for name, value in seen.items() if name in draft.passed}
    else:
        known = [Word(_home(word.text, origin), word.line) for word in words]
        container.read_start(draft, [], known, plain)
        if draft.server.get("command") == USUAL:
            del draft.server["command"]
        taken = seen
    for name, value in taken.items():
        text = emitted(draft, value, lenient=True)
        used |= value.uses
        if not engine:
            draft.set_env(name, text, lines.get(name, chosen.line))
    return draft, used


def _rooted(draft: Draft, origin: Origin) -> None:
    """Make paths that are relative to the script's folder whole: the gate starts the server elsewhere."""
    if draft.server["launcher"] != "process":
        return
    for name in ("model", *_PATHS):
        table = draft.server if name == "model" else draft.args
        written = table.get(name)
        if not isinstance(written, str) or unrun_in(written) or written.startswith(("/", "~", "{")):
            continue
        there = name in _FILES and (origin.folder / written).is_file()
        if name == "config" and not there:
            what = f"--config {written} is not there: its flags, and a model that it names, are not known"
            draft.note(draft.line_of("server", "args", "config"), what)
        elif name == "chat-template" and not there and re.fullmatch(r"[\w./+-]+", written):
            what = f"--chat-template {written} is not beside the script, and the gate starts it elsewhere"
            draft.note(draft.line_of("server", "args", name), f"{what}: write its whole path")
        if there or written.startswith("../") or (written[:2] == "./" and (origin.folder / written).exists()):
            table[name] = os.path.normpath(origin.folder / written)


def _of_env(before: list[str], word: str) -> bool:
    """Whether a word of a run line sets a variable: a name that is not set is passed on as an empty one."""
    return before[-1:] in (["-e"], ["--env"]) or re.match(r"(?:--env=|-e)[A-Za-z_]\w*=", word) is not None


def read_command(
    origin: Origin,
    words: list[Word],
    variables: Callable[[Draft], Variables],
    service: str | None = None,
) -> Draft:
    """One command that starts vLLM, in a container or not."""
    if is_run([word.text for word in words]):
        return containerline.read_run(origin, words, variables, service)
    draft = Draft(origin, "process", "shell")
    draft.wanted = service or ""
    names = variables(draft)
    known = [Word(_home(word.text, origin), word.line) for word in resolved(words, names)]
    container.read_start(draft, [], known, names)
    if draft.server.get("command") == USUAL:
        del draft.server["command"]
    return draft


def _home(text: str, origin: Origin) -> str:
    return origin.home + text[1:] if text.startswith("~/") else text


def _no_dockerfile(origin: Origin) -> None:
    first = [
        line.split(maxsplit=1)[0] for line in origin.text.splitlines() if line.strip() and line[0] != "#"
    ]
    before = next((one for one in first if one != "ARG"), "")
    if before == "FROM" and any(word in _INSTRUCTIONS for word in first[1:] or first):
        fix = "build it, and name the docker run line, the compose file or the manifest that starts it"
        raise origin.problem(0, "a Dockerfile: it describes an image, not how a server is started", fix)


def _started_within(origin: Origin, run: Run) -> None:
    """Refuse a container without a model in which another command starts vLLM."""
    for line, text in run.others:
        if re.search(r"\b(?:docker|podman|kubectl)\b.* exec .*\b(?:vllm|api_server)\b", text):
            what = f"{text} starts vLLM in a container that runs"
            raise origin.problem(line, what, "give the vllm serve line, or the container: container:NAME")


def _is_vllm(texts: list[str]) -> bool:
    if asks(texts):
        return False
    if not is_run(texts):
        return True
    image, words = container_of(texts)
    if other_program(words):
        return False
    if container.runs_vllm(image, words):
        return True
    plain = [text for text in texts[2:] if not re.match(r"(?:--?\w[\w-]*=)?\w+=", text)]  # no variables
    return any(container.runs_vllm(text, [text]) for text in plain) or bool(program_length(texts[2:]))


def _name(command: Start, among: list[Start]) -> str:
    texts = command.texts
    made = [found[1] for one in command.where if (found := re.fullmatch(r"(?:make|just) (\S+) is run", one))]
    for at, text in enumerate(texts):
        if text == "--name" and at + 1 < len(texts):
            return texts[at + 1]
        if text.startswith("--name="):
            return text.removeprefix("--name=")
    return made[-1] if made else str(1 + among.index(command))
