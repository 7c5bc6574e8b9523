"""PowerShell: variables, texts, lists and commands, said as a POSIX shell says them."""

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
    r"(?:Write-\w+|Read-Host|Set-StrictMode|Set-Location|Push-Location|Pop-Location|Start-Sleep|Clear-Host|exit\b"
    r"|echo\b|cd\b|\[Console\]|\$ErrorActionPreference|\$ProgressPreference|return\b|New-Item|\[CmdletBinding)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"(?:\[[\w.\[\]]+\]\s*)?\$(env:)?(\w+)\s*(\+?=)\s*(?!=)([\s\S]*)")
_COMMAND = re.compile(
    rf"(?:&\s*)?(?=[\"']?{PROGRAM}[\"']?\s)",
    re.IGNORECASE,
)
_ENDING = r"\s*\|\s*(?:Out-Null|Tee-Object\b.*)|\s*\d?>{1,2}&?\s*\S+|\s*;"
_PARAMETER = re.compile(
    r"\$(\w+)\s*(?:=\s*(\"[^\"]*\"|'[^']*'|[\d.]+|\$true|\$false))?\s*(?:,|\)|$)", re.IGNORECASE
)
#: A piece of a word: a name, an escaped sign, a text between quotes, or what stands by itself.
_PIECE = re.compile(
    r"`[\s\S]|'(?:''|[^'])*'|\"(?:`[\s\S]|\"\"|[^\"`])*\"|\$\((?:[^()]|\([^()]*\))*\)|@\w+"
    r"|\$\{?(?:env:)?\w+\}?(?:\.\w+|\[[^\]]*\])*|\s+|[^\s`'\"$@]+|[\s\S]",
    re.IGNORECASE,
)
_WITHIN = re.compile(
    r"`([\s\S])|(\"\")|\$\{(?:env:)?(\w+)\}|\$(?:env:)?(\w+)|(\$\((?:[^()]|\([^()]*\))*\))", re.IGNORECASE
)
#: A name with a colon behind it: to PowerShell that begins a name of a drive or of a scope.
_SCOPED = re.compile(r"\$(\w+):(?!:)")
_SCOPES = ("env", "global", "local", "script", "private", "using", "variable", "function")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "r": "\r"}


class _Script:
    def __init__(self, origin: Origin, lines: Lines) -> None:
        self.origin, self.lines = origin, lines
        self.known: dict[str, list[Word]] = {}
        self.set: dict[str, tuple[int, str]] = {}

    def statement(self, line: int, text: str) -> None:
        """One statement outside of braces."""
        assigned = _ASSIGNED.fullmatch(text)
        if re.match(r"param\s*\(", text, re.IGNORECASE):
            self._parameters(text)
            self._idle(line, text, "param")
        elif _QUIET.match(text):
            self._idle(line, text, f"`{text.split(maxsplit=1)[0]}`")
        elif assigned:
            self._assign(line, assigned)
        elif _COMMAND.match(text):
            self._command(line, text)
        else:
            self.lines.left.append((line, short(text)))

    def branch(self, line: int, text: str) -> None:
        """What stands within braces: what it sets is not known any more."""
        for name in re.findall(r"\$((?:env:)?\w+)\s*\+?=(?!=)", text, re.IGNORECASE):
            self._unknown(name, f"it is set in a branch or a function (line {line})")
            if name.lower().startswith("env:"):
                self.lines.notes.append((line, f"${name} is set in a branch or a function: it is left out"))
        if starts(text):
            self.lines.left.append((line, short(text)))
        self._idle(line, text, "what a branch, a loop or a function does")

    def unused(self, line: int, text: str) -> None:
        """A variable that no command has come to."""
        self._idle(line, text, text.partition("=")[0].strip())

    def _idle(self, line: int, text: str, what: str) -> None:
        self.lines.idle += [(line + at, what) for at in range(text.count("\n") + 1)]

    def _unknown(self, name: str, why: str) -> None:
        bare = re.sub(r"^env:", "", name, flags=re.IGNORECASE)
        self.known[name.lower()] = [[(bare, why)]]

    def _parameters(self, text: str) -> None:
        for name, default in _PARAMETER.findall(text):
            if default:
                self.known[name.lower()] = self.words(default)
            else:
                self._unknown(name, "it is a parameter of the script")

    def _assign(self, line: int, found: re.Match[str]) -> None:
        env, name, operator, value = found[1] or "", found[2], found[3], found[4].strip()
        key = f"{env}{name}".lower()
        if not env:
            if key in self.set:
                self.unused(*self.set[key])
            self.set[key] = (line, found[0])
        if not env and _COMMAND.match(value):
            self._command(line, value)
        words = self._value(value)
        if words is None:
            self._unknown(f"{env}{name}", f"it is worked out when the script runs (line {line})")
            if env:
                what = f"${env}{name} is worked out when the script runs: it is left out"
                self.lines.notes.append((line, what))
            return
        before = self.known.get(key, []) if operator == "+=" else []
        self.known[key] = [*before, *words]
        if env:
            self.lines.add(
                line, f"export {name}={posix([piece for word in self.known[key] for piece in word])}"
            )

    def _value(self, text: str) -> list[Word] | None:
        """A text, a number, a name, or a list of such; None for what is more than that."""
        array = re.fullmatch(r"@\(([\s\S]*)\)", text)
        inner = array[1] if array else text
        found: list[Word] = []
        for piece in _PIECE.findall(inner):
            if piece.isspace() or piece == "," or (array and piece == ";"):
                continue
            plain = piece.rstrip(",")
            if not re.fullmatch(r"[\"'][\s\S]*|\$\w[\w:]*|\$\{[\w:]+\}|-?[\d.]+", plain):
                return None
            if re.fullmatch(r"\$(?:true|false|null)", plain, re.IGNORECASE):
                return None
            found += self.words(plain)
        return found if array or "," in text or len(found) <= 1 else None

    def _command(self, line: int, text: str) -> None:
        bare = unredirected(text, _ENDING)
        bare = re.sub(r"^&\s*", "", bare)
        if within_wsl(bare) != bare:
            self.lines.notes.append((line, IN_WSL))
        words = [self._passed(line, one) for one in self.words(within_wsl(bare))]
        self.lines.add(line, " ".join(posix(one) for one in words))

    def _passed(self, line: int, word: Word) -> Word:
        """A word as a program gets it: what becomes of quotes in it depends on the release of PowerShell."""
        text = "".join(one for one in word if isinstance(one, str))
        if '"' not in text:
            return word
        old = '\\"' in text
        which = "Windows PowerShell 5.1 passes it" if old else "PowerShell 7.3 and later pass it"
        self.lines.notes.append((line, f"{short(text)} is read as {which}: other releases pass other quotes"))
        return [one.replace('\\"', '"') if isinstance(one, str) else one for one in word]

    def words(self, text: str) -> list[Word]:
        """The words of a text."""
        found: list[Word] = []
        current: Word | None = None
        pieces = _PIECE.findall(text)
        for at, piece in enumerate(pieces):
            if re.fullmatch(r"\$\w+", piece) and re.match(r":(?!:)", "".join(pieces[at + 1 : at + 2])):
                piece += ":"  # noqa: PLW2901 - the name does not end before it
            if piece.isspace() or piece in ("`\n", "`\r"):
                found, current = ([*found, current] if current is not None else found), None
                continue
            whole = self._whole(piece) if current is None else None
            if whole is not None:
                found += whole
                continue
            current = [*(current or []), *self._piece(piece)]
        return [*found, current] if current is not None else found

    def _whole(self, piece: str) -> list[Word] | None:
        """A list that becomes several words: `@Args`, `$Args`."""
        named = re.fullmatch(r"[@$]\{?((?:env:)?\w+)\}?", piece)
        known = self.known.get(named[1].lower()) if named else None
        if named and known is not None:
            self.set.pop(named[1].lower(), None)
        if named and known is None and piece.startswith("@"):
            return [[(named[1], "nothing in the script sets it")]]
        return known if known is not None and len(known) != 1 else None

    def _piece(self, piece: str) -> Word:
        if piece.startswith("'"):
            return [piece[1:-1].replace("''", "'")]
        if piece.startswith('"') and len(piece) > 1:
            return self._within(piece[1:-1], quoted=True)
        if piece.startswith("`") and len(piece) == 2:
            return [_ESCAPES.get(piece[1], piece[1])]
        if piece.startswith("$"):
            return self._within(piece, quoted=False)
        return [piece]

    def _within(self, text: str, *, quoted: bool) -> Word:
        """A text with its names filled in."""
        found: Word = [""]
        at = 0
        for one in _WITHIN.finditer(text):
            found.append(text[at : one.start()])
            at = one.end()
            if one[1] or one[2]:
                found.append(_ESCAPES.get(one[1], one[1]) if one[1] else '"')
            elif one[5]:
                found.append(("EXPRESSION", f"{short(one[5])} is worked out when the script runs"))
            else:
                scope = _SCOPED.match(text, one.start())
                if scope and one[4] and scope[1].lower() not in _SCOPES:
                    what = "PowerShell takes the colon for a part of the name; put the name in braces"
                    return [*found, (scope[1], what)]
                env = "env:" if re.match(r"\$\{?env:", one[0], re.IGNORECASE) else ""
                found += self._named(f"{env}{one[3] or one[4]}")
                if not quoted and re.match(r"\.\w|\[", text[at : at + 2]):
                    found.append(("EXPRESSION", f"{short(text)} is worked out when the script runs"))
                    return found
        return [*found, text[at:]]

    def _named(self, name: str) -> Word:
        if name.lower() in ("pwd", "psscriptroot"):
            return [str(self.origin.folder)]
        known = self.known.get(name.lower())
        self.set.pop(name.lower(), None)
        bare = name.rpartition(":")[2]
        if known is None:
            return [(bare, "nothing in the script sets it")]
        return [piece for at, word in enumerate(known) for piece in ([" "] if at else []) + word]


def powershell_lines(origin: Origin, lines: Lines) -> None:
    """Say a PowerShell script again; what stands within braces is not worked out."""
    script = _Script(origin, lines)
    for line, text, inner in _statements(origin.text):
        if inner or re.match(r"(?:if|foreach|for|while|switch|try|function|do)\b", text, re.IGNORECASE):
            script.branch(line, text)
        else:
            script.statement(line, text)
    for line, text in script.set.values():
        script.unused(line, text)


def _statements(text: str) -> list[tuple[int, str, bool]]:
    """Line and text of each statement, and whether it holds braces of a block."""
    plain = re.sub(r"<#[\s\S]*?#>", lambda found: "\n" * found[0].count("\n"), text)
    plain = re.sub(
        r"@(['\"])[ \t]*\n[\s\S]*?\n\1@", lambda one: f"(TEXT{chr(10) * one[0].count(chr(10))})", plain
    )
    found: list[tuple[int, str, bool]] = []
    current, first, depth, braces = "", 0, 0, False
    for number, one in enumerate(plain.splitlines(), 1):
        bare = _without_comment(one).rstrip()
        if not current and not bare.strip():
            continue
        first = first if current else number
        current = f"{current}\n{bare}" if current else bare
        outside = re.sub(
            r"'(?:''|[^'])*'|\"(?:`[\s\S]|[^\"`])*\"|\$\{\w[\w:]*\}|@?\{[^{}\n]*\}(?=\s*$)", "", bare
        )
        depth += sum(outside.count(sign) for sign in "({[") - sum(outside.count(sign) for sign in ")}]")
        braces |= "{" in outside
        if depth <= 0 and not bare.endswith(("`", "|", ",")):
            whole = re.sub(r"`\n", "`\n ", current).strip()
            found += [(first, one.strip(), braces) for one in parted_at(whole, ";|&&", "'\"")]
            current, depth, braces = "", 0, False
    if current:
        found.append((first, current.strip(), True))
    return found


def _without_comment(text: str) -> str:
    known = re.match(r"(?:'(?:''|[^'])*'|\"(?:`.|[^\"`])*\"|`.|[^#'\"`]|(?<=\S)#)*", text)
    return known[0] if known and text[known.end() : known.end() + 1] == "#" else text
