"""Batch scripts of Windows: `set`, `%NAME%` and commands, said as a POSIX shell says them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.posixlines import (
    IN_WSL,
    PROGRAM,
    parted_at,
    posix,
    short,
    starts,
    unredirected,
    within_wsl,
)

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.posixlines import Lines, Word

_QUIET = re.compile(
    r"@?(?:echo\b|echo\.|rem\b|::|:\w|pause\b|title\b|cls\b|setlocal\b|endlocal\b|chcp\b|exit\b|color\b"
    r"|goto\b|timeout\b|cd\b|pushd\b|popd\b|mkdir\b|where\b)",
    re.IGNORECASE,
)
_SET = re.compile(r"""@?set\s+(?:"(\w+)=(.*)"|(\w+)=(.*))\s*""", re.IGNORECASE)
_SETS = re.compile(r"(?:^|[\s&(])set\s+(?:/\w\s+)?\"?(\w+)=", re.IGNORECASE)
_UNLESS = re.compile(r"if\s+not\s+defined\s+(\w+)\s+(set\s.*)", re.IGNORECASE)
#: A default in a block of its own, which is the same as one on the line.
_DEFAULTED = re.compile(
    r"^([ \t]*if\s+not\s+defined\s+\w+\s+)\([ \t]*\n[ \t]*(set\s[^\n]*)\n[ \t]*\)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_COMMENT = re.compile(r"@?(?:rem\b|::)", re.IGNORECASE)
_NAMED = re.compile(r"%%|%(~\w*\d|\w+)%?|!(\w+)!")
_STARTS = re.compile(
    rf"@?(?:call\s+)?(?={PROGRAM}\s)",
    re.IGNORECASE,
)
_ENDING = r"\s*\d?>{1,2}\s*&?\S+|\s&&?\s.*"
_DOUBLED = "two quotes within quotes are not the same to all programs of Windows"


def batch_lines(origin: Origin, lines: Lines) -> None:
    """Say a batch script again; what is within parentheses, or hangs on a condition, is not worked out."""
    known: dict[str, Word] = {}
    depth = 0
    base: dict[str, Word] | None = None
    whole = _DEFAULTED.sub(r"\1\2\n\n", origin.text)
    for line, text in _parts(whole):
        if re.match(r"\s*:(?!:)\w", text):
            base = _at_label(lines, known, base, line)
        begins, depth = depth, max(0, depth + _opened(text))
        bare = text.strip().lstrip("(").rstrip(") ")
        unless = _UNLESS.fullmatch(bare)
        inner = _SET.fullmatch(unless[2].strip()) if unless and not begins else None
        if begins or (depth and not inner):
            _left(lines, known, line, text, "in a branch")
        elif unless and inner:
            if unless[1].upper() not in known:
                _set(origin, lines, known, inner, line)
        elif re.match(r"(?:if|for)\b|set\s+/", bare, re.IGNORECASE):
            _left(lines, known, line, text, "by a condition")
        else:
            _statement(origin, lines, known, bare, line)


def _at_label(
    lines: Lines, known: dict[str, Word], base: dict[str, Word] | None, line: int
) -> dict[str, Word]:
    """What is set at a label: what was before the first; what stands behind another label is not known."""
    if base is None:
        return dict(known)
    for name in [one for one, word in known.items() if base.get(one) != word]:
        known[name] = [(name, f"it is set behind another label (line {line})")]
        lines.add(line, f"unset {name}")
    return base


def _parts(text: str) -> list[tuple[int, str]]:
    """The commands of each line: `A & B`, `A && B`; what is run where another fails is a condition's."""
    found = []
    for line, whole in _joined(text):
        if _QUIET.match(whole.strip()) and not re.match(
            r"\s*@?(?:cd|pushd|setlocal)\b", whole, re.IGNORECASE
        ):
            found.append((line, whole))
            continue
        for one in parted_at(whole, r"(?<![>^])&{1,2}(?!\d)", '"'):
            first, *others = parted_at(one, r"\|\|", '"')
            found += [(line, first), *((line, f"if errorlevel 1 {other.strip()}") for other in others)]
    return found


def _left(lines: Lines, known: dict[str, Word], line: int, text: str, how: str) -> None:
    """What is not followed: the names that it sets are not known any more."""
    for name in _SETS.findall(text):
        known[name.upper()] = [(name, f"it is set {how} (line {line})")]
        lines.notes.append((line, f"{name} is set {how}: it is left out"))
    if starts(text):
        lines.left.append((line, short(text)))
    else:
        lines.idle.append((line, "what a branch or a loop does"))


def _statement(origin: Origin, lines: Lines, known: dict[str, Word], bare: str, line: int) -> None:
    if setting := _SET.fullmatch(bare):
        _set(origin, lines, known, setting, line)
    elif (found := _STARTS.match(bare)) is not None:
        command = within_wsl(bare[found.end() :])
        if command != bare[found.end() :]:
            lines.notes.append((line, IN_WSL))
        lines.add(line, " ".join(posix(one) for one in _words(command, origin, known)))
    elif bare and not _QUIET.match(bare):
        lines.left.append((line, short(bare)))
    elif bare and not _COMMENT.match(bare):
        lines.idle.append((line, f"`{bare.lstrip('@').split()[0]}`"))


def _joined(text: str) -> list[tuple[int, str]]:
    """Lines with those that they go on in, behind a `^`."""
    found: list[tuple[int, str]] = []
    goes_on = False
    for number, one in enumerate(text.splitlines(), 1):
        bare = one.rstrip()
        if goes_on:
            found[-1] = (found[-1][0], found[-1][1] + bare.lstrip() if bare else found[-1][1])
        else:
            found.append((number, bare))
        comment = re.match(r"\s*(?:@?rem\b|::)", bare, re.IGNORECASE) is not None
        goes_on = bare.endswith("^") and not comment
        if goes_on:
            found[-1] = (found[-1][0], found[-1][1].removesuffix("^").rstrip() + " ")
    return found


def _opened(text: str) -> int:
    """How many parentheses a line opens more than it closes, those between quotes and of echo left out."""
    if _QUIET.match(text.strip()):
        return 0
    bare = re.sub(r'"[^"]*"', "", text).strip()
    opens = bare.endswith("(")
    return int(opens) - int(bare.startswith(")"))


def _set(origin: Origin, lines: Lines, known: dict[str, Word], found: re.Match[str], line: int) -> None:
    name = found[1] or found[3]
    written = found[2] if found[1] else found[4]
    words = _filled(written, origin, known)
    known[name.upper()] = words
    lines.add(line, f"export {name}={posix(words)}")


def _filled(text: str, origin: Origin, known: dict[str, Word]) -> Word:
    """A text with its names filled in."""
    found: Word = []
    at = 0
    for one in _NAMED.finditer(text):
        found.append(text[at : one.start()])
        at = one.end()
        name = one[1] or one[2]
        if name is None:
            found.append("%")
        elif name.lower() in ("~dp0", "cd"):
            found.append(str(origin.folder) + ("/" if name.startswith("~") else ""))
        elif name.upper() in known:
            found += known[name.upper()]
        elif name.upper() == "USERPROFILE":
            path = re.match(r"[\\/][^\s:;\"]*", text[at:])
            found.append("~" + (path[0].replace("\\", "/") if path else ""))
            at += path.end() if path else 0
        elif re.fullmatch(r"\w+", name) and not name.isdigit():
            found.append((name, "nothing in the script sets it"))
        else:
            found.append(("ARGUMENT", f"%{name} is an argument of the script"))
    return [*found, text[at:]]


def _words(text: str, origin: Origin, known: dict[str, Word]) -> list[Word]:
    """The words of a command, as a program of Windows splits its line."""
    found: list[Word] = []
    current: Word | None = None
    quoted = False
    for piece in _filled(unredirected(text, _ENDING), origin, known):
        if not isinstance(piece, str):
            current = [*(current or []), piece]
            continue
        for sign in re.findall(r'""|\\+"|\^[^\s]|[\s\S]', piece):
            if sign == '""' and quoted:
                current = [*(current or []), ("QUOTES", _DOUBLED)]
            elif sign == '""':
                current = current or [""]
            elif sign == '"':
                quoted, current = not quoted, current or [""]
            elif sign.endswith('"'):  # backslashes before a quote are halved, and an odd one keeps it
                kept = "\\" * (len(sign) // 2 - (len(sign) % 2 == 0)) + ('"' if len(sign) % 2 == 0 else "")
                quoted = quoted if len(sign) % 2 == 0 else not quoted
                current = [*(current or []), kept]
            elif sign.isspace() and not quoted:
                found, current = ([*found, current] if current is not None else found), None
            else:
                plain = sign[1:] if sign.startswith("^") and len(sign) > 1 and not quoted else sign
                current = [*(current or []), plain]
    return [*found, current] if current is not None else found
