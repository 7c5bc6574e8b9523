"""Every fault of a profile: file, line, what is wrong, what would be right. Whole messages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.profile.conftest import Project

FILE = "vllm-profiles/mine.toml"


def cases() -> dict[str, tuple[str, str]]:
    """Name -> profile and message, as refusals.txt holds them."""
    blocks = (Path(__file__).parent / "refusals.txt").read_text("utf-8").split("=== ")[1:]
    found = {}
    for block in blocks:
        name, _, rest = block.partition("\n")
        text, _, message = rest.partition("---\n")
        found[name] = (text, message.strip())
    return found


CASES = cases()


@pytest.mark.parametrize(("text", "message"), CASES.values(), ids=CASES)
def test_refused(project: Project, text: str, message: str) -> None:
    """One line with the place, the fault and the way out."""
    said = project.refusal(text)

    if message.endswith("(one of"):
        assert said.startswith(f"{FILE}:{message}")
    else:
        assert said == f"{FILE}:{message}"


def test_all_faults_at_once(project: Project) -> None:
    """In the order of the file, so that one round of editing is enough."""
    said = project.refusal(
        '[server.args]\nmax-modle-len = 1\nprot = 2\n[boot]\ntimeout = "x"\nstaled = "1s"\n'
    )

    assert said.splitlines() == [
        f"{FILE}:2: unknown vllm flag 'max-modle-len' in [server.args]; did you mean 'max-model-len'?",
        f"{FILE}:3: unknown vllm flag 'prot' in [server.args]; did you mean 'port'?",
        f'{FILE}:5: [boot] timeout is \'x\': not a duration, such as "15m", "900ms" or "2h30m"',
        f"{FILE}:6: unknown key 'staled' in [boot]; did you mean 'stalled'? (one of stalled, timeout)",
    ]


def test_a_secret_is_never_repeated(project: Project) -> None:
    """The refusal names the key and keeps the value to itself."""
    secret = "hf_" + "x" * 30
    for text in (
        f'[server.env]\nA = "{secret}"\n',
        f'[server]\nimage = ["{secret}"]\n',
        f'hardware = "{secret}"\n',
        f'[[waive]]\ncheck = "{secret}"\n',
    ):
        assert secret not in project.refusal(text)


def test_not_a_text_file(project: Project) -> None:
    """Bytes that are no UTF-8 and folders give one line too."""
    project.write("").write_bytes(b"description = '\xff'")
    assert project.refusal() == f"{FILE}: not UTF-8 text (byte 15)"
    (project.root / "vllm-profiles" / "folder.toml").mkdir()
    assert project.refusal(name="folder") == ("vllm-profiles/folder.toml: is a folder; name a file in it")


def test_key_free_secrets_are_allowed(project: Project) -> None:
    """A placeholder that says there is no key is no secret."""
    project.write('[server.env]\nAPI_KEY = "none"\nTOKENIZERS_PARALLELISM = "false"\n')

    assert project.load().server.env == {"API_KEY": "none", "TOKENIZERS_PARALLELISM": "false"}
