"""What a shell knows at a moment: variables, what of them is exported, functions, arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import holds_secret, secret_mark, unrun
from pytest_vllm.profile.importers.shellvalue import Remark, Value, joined
from pytest_vllm.profile.secrets import secret_name, secret_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

    from tree_sitter import Node

    from pytest_vllm.profile.importers.shelltree import Script

#: Marks the value of a name that nothing has set.
_UNSET = "is not set"
#: Names that bash itself sets, anew each time.
_NAMES = "RANDOM SRANDOM SECONDS EPOCHSECONDS BASHPID PPID UID EUID HOSTNAME LINENO"
_OF_THE_SHELL = frozenset(_NAMES.split())
_EXPORT = "export {}=… where pytest runs"


@dataclass
class State:
    """A shell at a moment.

    Args:
        folder: the current folder.
        outer: the environment that the script starts with.
        home: the home folder.
        script: the path of the script, for `$0`.
        contained: whether it runs in a container, where this machine's environment counts for nothing.
        values: variables; a tuple is an array.
        exported: names that programs see.
        functions: name -> their definition and the script that it stands in.
        arguments: `$1`, `$2`, …
        called: whether these are the arguments of a function rather than the script's own.
        everything: whether assignments are exported (`set -a`).
        ended: whether the script, or the function that is followed, has ended.
        exited: whether it was `exit`, which ends what called a function, too.
        replaced: whether `exec` has put a program in the place of the shell, whatever holds.
        dropped: said of whole words that were left out because their name is not set.
        asked: whether the script used its own arguments, of which there are none.
        asides: said of arrays that are empty in one arm of a branch, and of variables exported in one.
        said: the pieces of the ledger that asides are about.
        needed: said of the first name without which the script ends (`${X:?…}`), and which nothing sets.
    """

    folder: Path
    outer: Mapping[str, str] = field(default_factory=dict)
    home: str = ""
    script: str = ""
    contained: bool = False
    values: dict[str, Value | tuple[Value, ...]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    functions: dict[str, tuple[Script, Node]] = field(default_factory=dict)
    arguments: tuple[Value, ...] = ()
    called: bool = False
    everything: bool = False
    ended: bool = False
    exited: bool = False
    replaced: bool = False
    dropped: list[Remark] = field(default_factory=list)
    asked: bool = False
    asides: list[Remark] = field(default_factory=list)
    said: frozenset[Hashable] = frozenset()
    needed: Remark | None = None

    def copy(self) -> State:
        """A state that goes its own way from here."""
        return replace(
            self,
            values=dict(self.values),
            exported=set(self.exported),
            functions=dict(self.functions),
            dropped=list(self.dropped),
            asked=self.asked,
            asides=list(self.asides),
        )

    def become(self, other: State) -> None:
        """Take everything over from another."""
        self.__dict__.update(other.copy().__dict__)

    def assign(self, name: str, value: Value | tuple[Value, ...], *, export: bool = False) -> None:
        """Set a variable."""
        self.values[name] = value
        if export or self.everything:
            self.exported.add(name)

    def restore(self, name: str, value: Value | tuple[Value, ...] | None, *, exported: bool) -> None:
        """Give a variable back what it was before."""
        if value is None:
            self.values.pop(name, None)
        else:
            self.values[name] = value
        (self.exported.add if exported else self.exported.discard)(name)

    def unset(self, value: Value) -> bool:
        """Whether a value is that of a name nobody has set."""
        return any(remark.fatal and _UNSET in remark.text for remark in value.remarks)

    def several(self, name: str) -> tuple[Value, ...]:
        """All values of an array, or all arguments."""
        if name in ("@", "*"):
            self.asked |= not self.arguments and not self.called
            return self.arguments
        found = self.values.get(name)
        return found if isinstance(found, tuple) else (found,) if found is not None else ()

    def lookup(self, name: str, index: str, line: int, shown: str, *, secret: bool = False) -> Value:
        """The value of a name; one that is not known carries a fatal remark.

        Args:
            name: a variable, a digit, or a sign such as `#`.
            index: of an array, empty for the whole.
            line: where it is used.
            shown: how it is written.
            secret: whether it stands for a secret by its place.
        """
        if not (name[:1].isalpha() or name[:1] == "_"):
            return self._special(name, line, shown)
        found = self.values.get(name)
        if isinstance(found, tuple):
            at = int(index) if index.lstrip("-").isdigit() else 0
            found = found[at] if -len(found) <= at < len(found) else Value()
        if secret or secret_name(name):
            return self._secret_of(name, found, line)
        if found is not None:
            return found
        if name in ("PWD", "HOME", "BASH_SOURCE") and not self.contained:
            return Value({"PWD": str(self.folder), "HOME": self.home}.get(name, self.script))
        if name in self.outer:
            text = f"{shown} is taken from the environment: {self.outer[name]!r}"
            return Value(self.outer[name], (Remark(line, text),), outside=True)
        return self._not_set(name, line, shown)

    def _not_set(self, name: str, line: int, shown: str) -> Value:
        """A name that nothing sets but, maybe, the shell itself."""
        if name in _OF_THE_SHELL:
            text = f"{shown} is only known once the script runs"
            return Value(unrun(shown), (Remark(line, text),), outside=True)
        fix = "write its value into the container's environment" if self.contained else _EXPORT.format(name)
        return Value("", (Remark(line, f"{shown} {_UNSET}; {fix}", fatal=True),), outside=True)

    def secret(self, name: str, *, optional: bool = False) -> Value:
        """The reference to a secret."""
        return Value(secret_mark(name, optional=optional), outside=True)

    def environment(self) -> dict[str, Value]:
        """What a program sees of what the script has set."""
        found = {name: self.values[name] for name in sorted(self.exported) if name in self.values}
        return {name: joined(one) if isinstance(one, tuple) else one for name, one in found.items()}

    def _secret_of(self, name: str, found: Value | None, line: int) -> Value:
        """A secret by its own name; or by the name that it was taken from."""
        if found is not None and (holds_secret(found.text) or not (found.text or found.unknown)):
            return found
        if found is not None and not secret_text(found.text) and not secret_name(name):
            return found
        remarks = found.remarks if found is not None and not found.unknown else ()
        if found is not None and found.text:
            fix = f"set {name} where pytest runs"
            remarks = (Remark(line, f"{name} is written down there; its value is not copied: {fix}"),)
        return Value(secret_mark(name), remarks, found.uses if found else frozenset(), outside=True)

    def _special(self, name: str, line: int, shown: str) -> Value:
        if name == "0":
            return Value(self.script)
        if name == "#":
            return Value(str(len(self.arguments)), outside=not self.called)
        if name.isdigit():
            return self._argument(int(name), line, shown)
        if name in ("@", "*"):
            self.asked |= not self.arguments and not self.called
            return joined(self.arguments)
        if name == "?":
            return Value("0", outside=True)
        return Value(
            unrun(shown), (Remark(line, f"{shown} is only known once the script runs"),), outside=True
        )

    def _argument(self, number: int, line: int, shown: str) -> Value:
        if number <= len(self.arguments):
            return self.arguments[number - 1]
        whose = "function's" if self.called else "script's"
        fix = "write its value in its place, or a default: ${" + str(number) + ":-…}"
        text = f"{shown} is the {whose} argument {number}, which {_UNSET}; {fix}"
        return Value("", (Remark(line, text, fatal=True),), outside=not self.called)
