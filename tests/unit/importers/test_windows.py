"""What PowerShell and cmd make of a line is what the importer reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.profile.importers import ImportProblem, ImportResult, imported

if TYPE_CHECKING:
    from pathlib import Path


def read(tmp_path: Path, name: str, text: str) -> ImportResult:
    """A script of that name."""
    file = tmp_path / name
    file.write_text(text)
    return imported(file, environ={"HOME": "/home/me"})


POWERSHELL: list[tuple[str, str, Any]] = [
    ("$S = 5\nvllm serve org/a --seed $S\n", "seed", 5),
    ("$s = 5\nvllm serve org/a --seed ${S}\n", "seed", 5),
    ('$M = "a b"\nvllm serve org/a --chat-template "$M.jinja"\n', "chat-template", "a b.jinja"),
    ("vllm serve org/a --chat-template 'it''s $M'\n", "chat-template", "it's $M"),
    ('vllm serve org/a --chat-template "a`$b"\n', "chat-template", "a$b"),
    ("$A = @(\n  '--seed', 5,\n  '--dtype', 'half'\n)\nvllm serve org/a @A\n", "dtype", "half"),
    ("$A = @('--seed')\n$A += 5\nvllm serve org/a $A\n", "seed", 5),
    ("$S = 5; vllm serve org/a --seed $S; exit\n", "seed", 5),
    ('$T = @"\nvllm serve org/b\n"@\nvllm serve org/a --seed 5\n', "seed", 5),
    ("param([int]$Seed = 5)\nvllm serve org/a --seed $Seed\n", "seed", 5),
    ("<# vllm serve org/b #>\nvllm serve org/a --seed 5 # why\n", "seed", 5),
    ("if ($x) {\n  docker rm llm\n}\nvllm serve org/a `\n  --seed 5\n", "seed", 5),
    ("vllm serve org/a --hf-overrides '{\"a\": 1}'\n", "hf-overrides", {"a": 1}),
    ("vllm serve org/a --hf-overrides '{\\\"a\\\": 1}'\n", "hf-overrides", {"a": 1}),
    ("wsl -d Ubuntu -- vllm serve org/a --seed 5\n", "seed", 5),
]


@pytest.mark.parametrize(("text", "flag", "value"), POWERSHELL)
def test_powershell(text: str, flag: str, value: object, tmp_path: Path) -> None:
    """Names, quotes, lists, parameters, lines that go on."""
    assert read(tmp_path, "a.ps1", text).profile.server.args.get(flag) == value


BATCH: list[tuple[str, str, Any]] = [
    ("set SEED=5\nvllm serve org/a --seed %SEED%\n", "seed", 5),
    ('set "SEED=5"\nvllm serve org/a --seed %seed%\n', "seed", 5),
    ("if not defined SEED set SEED=5\nvllm serve org/a --seed %SEED%\n", "seed", 5),
    ('if not defined S (\n  set "S=5"\n)\nvllm serve org/a --seed %S%\n', "seed", 5),
    ("set SEED=4\nif not defined SEED set SEED=5\nvllm serve org/a --seed %SEED%\n", "seed", 4),
    ("rem vllm serve org/b\nvllm serve org/a ^\n  --seed 5\npause\n", "seed", 5),
    ('vllm serve org/a --chat-template "a b"\n', "chat-template", "a b"),
    (
        'vllm serve org/a --speculative-config "{\\"method\\":\\"mtp\\",\\"num_speculative_tokens\\":1}"\n',
        "speculative-config",
        {"method": "mtp", "num_speculative_tokens": 1},
    ),
    ("vllm serve org/a --seed 5 > log.txt 2>&1\n", "seed", 5),
    ("set S=5& cd x && vllm serve org/a --seed %S% || exit /b 1\n", "seed", 5),
    ('vllm serve org/a --seed 5 --chat-template ""\n', "chat-template", ""),
    ('vllm serve org/a --chat-template "a\\\\" --seed 5\n', "chat-template", "a\\"),
]


@pytest.mark.parametrize(("text", "flag", "value"), BATCH)
def test_batch(text: str, flag: str, value: object, tmp_path: Path) -> None:
    """Names in any letters, quotes, lines that go on."""
    assert read(tmp_path, "a.bat", f"@echo off\n{text}").profile.server.args.get(flag) == value


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.ps1", "param($Model)\nvllm serve $Model\n", "a.ps1:2: Model has to be set: it is a parameter"),
        (
            "a.ps1",
            "$N = Get-Content x\nvllm serve org/a --seed $N\n",
            "it is worked out when the script runs",
        ),
        ("a.ps1", "foreach ($m in $ms) {\n  vllm serve $m\n}\n", "no command runs vLLM"),
        ("a.ps1", "vllm serve $($c.model)\n", "is worked out when the script runs"),
        (
            "a.ps1",
            "$P = 8000\ndocker run -p $P:8000 vllm/vllm-openai:v0.30.0 --model a\n",
            "put the name in braces",
        ),
        ("a.bat", 'if "%X%"=="1" set M=org/b\nvllm serve %M%\n', "M has to be set: it is set by a condition"),
        ("a.bat", "if 1==1 (\n  set M=org/b\n)\nvllm serve %M%\n", "it is set in a branch (line 3)"),
        ("a.bat", 'vllm serve org/a --hf-overrides "{""a"":1}"\n', "two quotes within quotes"),
        ("a.bat", "goto b\n:a\nset M=org/a\n:b\nvllm serve %M%\n", "behind another label (line 5)"),
        ("a.bat", "vllm serve %1\n", "%1 is an argument of the script"),
    ],
)
def test_what_is_not_worked_out(name: str, text: str, said: str, tmp_path: Path) -> None:
    """It is refused where a command uses it."""
    with pytest.raises(ImportProblem, match=r"[\s\S]*") as caught:
        read(tmp_path, name, text if name.endswith("ps1") else f"@echo off\n{text}")

    assert said in str(caught.value)


def test_the_home_folder(tmp_path: Path) -> None:
    """It is the one of whoever runs the gate."""
    text = '@echo off\ndocker run -v "%USERPROFILE%\\.cache\\hf:/c" vllm/vllm-openai:v0.30.0 --model org/a\n'
    assert read(tmp_path, "a.bat", text).profile.server.volumes == ["~/.cache/hf:/c"]


def test_variables_of_a_branch(tmp_path: Path) -> None:
    """They are said, for the server may have them there."""
    ps = read(tmp_path, "a.ps1", "if ($f) { $env:VLLM_X = 1 }\nvllm serve org/a\n").notes
    bat = read(tmp_path, "a.bat", '@echo off\nif "%F%"=="1" set VLLM_X=1\nvllm serve org/a\n').notes

    assert any("$env:VLLM_X is set in a branch or a function: it is left out" in note for note in ps)
    assert any("VLLM_X is set by a condition: it is left out" in note for note in bat)
