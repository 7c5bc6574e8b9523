"""The shell script of a request sends the same request."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.curl import curl
from pytest_vllm.wire.policy import Access
from pytest_vllm.wire.recording import Request
from pytest_vllm.wire.server import Server
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from pathlib import Path

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

REQUESTS = {
    "get": Request("GET", "/v1/models"),
    "json": Request(
        "POST", "/v1/x?a=b&c", json={"text": 'it\'s $HOME `id` \\n "q" é\n', "n": [1.5, None, True]}
    ),
    "percent": Request("POST", "/x", json={"text": "100%s %d %%"}),
    "broken json": Request("POST", "/x", content='{"a": NaN, \n\n'),
    "raw bytes": Request("POST", "/x", content="\udcff\udc80\ud800x \\ 'q' \0 7"),
    "empty body": Request("POST", "/x", content=""),
    "headers": Request(
        "POST", "/x", json={}, headers={"X-A": "a b; 'c'", "Content-Type": "text/plain", "X-E": ""}
    ),
    "removed": Request("POST", "/x", content="hi", headers={"content-type": None, "User-Agent": None}),
    "path": Request("GET", "/v1/../x/[1]/{2}/ä b?q='$(id)'"),
    "delete": Request("DELETE", "/x"),
    "long": Request("POST", "/x", json={"text": "x" * 2_000_000}),
}


def shape(call: Call) -> dict[str, Any]:
    headers = sorted((name.lower(), value) for name, value in call.headers)
    quiet = ("connection", "host")
    return {"line": call.line, "headers": [h for h in headers if h[0] not in quiet], "body": call.body}


@needs_curl
@pytest.mark.parametrize("key", [None, "token-$HOME'x"])
@pytest.mark.parametrize("name", REQUESTS)
def test_the_script_repeats_the_request(name: str, key: str | None, tmp_path: Path) -> None:
    request = REQUESTS[name]

    async def echo(call: Call) -> None:
        await call.answer({"ok": True})

    async def run() -> list[Call]:
        async with fake_server(echo) as fake, WireClient(Server(fake.url, "m", api_key=key)) as client:
            recording = await client.send("k", request)
            assert recording.error == ""
            script = tmp_path / "request.sh"
            script.write_text(curl(request, fake.url, key_env="THE_KEY"), "utf-8")
            environ = {"PATH": "/usr/bin:/bin:/usr/local/bin"} | ({"THE_KEY": key} if key else {})
            shell = await asyncio.create_subprocess_exec(
                "sh", str(script), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            out, err = await shell.communicate()
            assert (shell.returncode, err) == (0, b""), err
            assert out.endswith(b'{"ok": true}')
            return fake.calls

    first, second = asyncio.run(run())

    assert shape(second) == shape(first)


@pytest.mark.parametrize("name", REQUESTS)
def test_any_posix_shell_reads_it(name: str) -> None:
    script = curl(REQUESTS[name], "http://127.0.0.1:8000")

    subprocess.run(["sh", "-n"], input=script.encode(), check=True)


def test_another_server_may_be_named() -> None:
    script = curl(REQUESTS["get"], "http://127.0.0.1:8000/")

    assert '"${1:-http://127.0.0.1:8000}"/v1/models 3<<END' in script


def test_the_key_is_on_no_command_line() -> None:
    script = curl(REQUESTS["get"], "http://h", key_env="THE_KEY")
    command, _, given = script.partition("3<<END")

    assert "Bearer" not in command
    assert 'header = "Authorization: Bearer $THE_KEY"' in given


def test_what_the_script_cannot_repeat_is_said() -> None:
    script = curl(
        Request("GET", "/x", headers={"Authorization": "Bearer ***"}, abort_after=3, timeout=5), "http://h"
    )

    assert "# a credential of the original request is hidden: put it where *** stands" in script
    assert "# the original closed the connection after 3 events" in script
    assert "--max-time 5" in script
    assert "VLLM_API_KEY" not in script


def test_the_way_to_the_server_is_repeated() -> None:
    """Authorities, the client certificate, the proxy, a unix socket."""
    access = Access("/ca.pem", "/c.pem", "/k.pem", "none")
    script = curl(Request("GET", "/x"), "https://host/llm/", access=access)
    socket = curl(Request("GET", "/x"), "unix:/run/v.sock:/llm", access=Access(proxy="http://p:1"))

    assert "--cacert /ca.pem" in script
    assert "--cert /c.pem" in script
    assert "--key /k.pem" in script
    assert "--noproxy '*'" in script
    assert '"${1:-https://host/llm}"/x' in script
    assert "--unix-socket /run/v.sock" in socket
    assert "--proxy http://p:1" in socket
    assert '"${1:-http://localhost/llm}"/x' in socket
