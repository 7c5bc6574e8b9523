"""What a run collects: what is named, the project's own tests, the bundled checks, or both of them.

A project says by its ini file that it is about a server; then plain `pytest` runs the project's tests, as it
does everywhere. The bundled checks join where somebody asks for them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face.collection import bundled_args, names_suites
from pytest_vllm.locate import data_dir

if TYPE_CHECKING:
    from pytest_vllm.face.options import Options

#: Options that ask for the bundled checks when a person types them without a path.
ASKING = ("profile", "url", "from", "replay", "check", "list", "plan", "suites")
#: Ini keys by which a project says that it is about a server.
ABOUT = ("profile", "url", "from", "replay", "suites")
JOIN = "the bundled checks join by --vllm-suites, or vllm_suites = true in the ini file"


@dataclass(frozen=True)
class Scope:
    """What is collected.

    Args:
        named: whether paths are given: then they alone are collected.
        own: whether the project's own tests are.
        bundled: whether the bundled checks are.
    """

    named: bool
    own: bool
    bundled: bool

    def args(self, config: pytest.Config) -> list[str]:
        """What pytest is to collect."""
        mine = bundled_args(config.args, config.invocation_params.dir) if self.named or self.own else []
        bundled = str(data_dir("suites"))
        return [bundled, *(arg for arg in mine if arg != bundled)] if self.bundled else mine

    @property
    def words(self) -> str:
        """What is collected and what is not, for the header."""
        if self.named:
            return "collects the paths that are named, and nothing else"
        if self.bundled and self.own:
            return "collects the bundled checks and this project's own tests"
        if self.bundled:
            return "collects the bundled checks; own tests join where they are named: pytest suites PATH"
        return f"collects this project's own tests; {JOIN}"


def scope_of(config: pytest.Config, options: Options) -> Scope:
    """What this run collects."""
    source = pytest.Config.ArgsSource
    if config.args_source is source.ARGS:
        return Scope(named=True, own=False, bundled=False)
    own = any(config.getini(f"vllm_{name}") for name in ABOUT)
    base = config.invocation_params.dir
    tested = any(names_suites(path, base) for path in config.getini("testpaths"))
    return Scope(named=False, own=own, bundled=not own or options.suites or tested or _typed(config))


def narrowed_by(config: pytest.Config) -> str:
    """The options of pytest itself by which this run leaves tests out, as they are typed."""
    known = config.option
    words = [f"-k {shlex.quote(known.keyword)}"] if known.keyword else []
    words += [f"-m {shlex.quote(known.markexpr)}"] if known.markexpr else []
    words += [f"--deselect={shlex.quote(str(one))}" for one in known.deselect or ()]
    words += ["--last-failed"] if getattr(known, "lf", False) else []
    return " ".join(words)


def _typed(config: pytest.Config) -> bool:
    """Whether somebody typed an option that asks for checks; what addopts says is the project's."""
    words = [str(word).partition("=")[0] for word in config.invocation_params.args]
    return any(f"--vllm-{name}" in words for name in ASKING)
