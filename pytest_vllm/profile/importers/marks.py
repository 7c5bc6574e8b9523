"""Signs of our own within texts that are read: what is a dollar, and where a secret's name stands."""

from __future__ import annotations

import re

#: Stands for a dollar that is not a reference. Private to Unicode, so in no file.
DOLLAR = "\ue000"
#: Encloses the name of a secret inside a text.
SECRET = "\ue001"  # noqa: S105
#: Encloses what only a shell that runs would know: `$(nproc)`, `$$`.
UNRUN = "\ue002"


#: Behind the name of a secret that may be missing.
_OPTIONAL = "?"
_ANY_SECRET = re.compile(f"{SECRET}([^{SECRET}?]*)[?]?{SECRET}")


def named_secret(text: str) -> str | None:
    """The variable that a text consists of, when that is a secret."""
    found = _ANY_SECRET.fullmatch(text)
    return found[1] if found else None


def secret_mark(name: str, *, optional: bool = False) -> str:
    """A text that stands for the secret of this name; `optional`: it may be missing."""
    return f"{SECRET}{name}{_OPTIONAL if optional else ''}{SECRET}"


def is_optional(text: str) -> bool:
    """Whether a text stands for a secret that may be missing."""
    return text.endswith(f"{_OPTIONAL}{SECRET}")


def holds_secret(text: str) -> bool:
    """Whether a secret stands somewhere in a text."""
    return SECRET in text


def unrun(text: str) -> str:
    """A text that stands for what only a shell that runs would know."""
    return f"{UNRUN}{text.replace(UNRUN, '')}{UNRUN}"


def unrun_in(text: str) -> str:
    """What in a text only a shell that runs would know; empty where nothing is.

    A text that one shell hands to another is marked by both.
    """
    return ", ".join(dict.fromkeys(re.findall(f"{UNRUN}+([^{UNRUN}]+){UNRUN}+", text)))


def spelled_out(text: str, form: str) -> str:
    r"""A text in which each secret stands by its name, in this form: `\1` is the name."""
    return _ANY_SECRET.sub(form, text)


def unmarked(text: str) -> str:
    """A text for people: the names of secrets as `$NAME`, marks that are written out among them."""
    text = re.sub(r"\\u(e00[012])", lambda one: chr(int(one[1], 16)), text)
    return spelled_out(text, r"$\1").replace(DOLLAR, "$").replace(UNRUN, "")
