"""A headless Chromium, spoken to over its debugging pipe: NUL-ended JSON on two descriptors, no library."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

#: Chromium reads commands from descriptor 3 and answers on 4: plug two pipes in there, and become it.
PLUGGED = """
import os, sys
theirs, back, program = sys.argv[1:4]
os.dup2(int(theirs), 3)
os.dup2(int(back), 4)
os.execvp(program, sys.argv[3:])
"""
HOME = "--user-data-dir"
#: Our own descriptors start here, out of the way of those two.
ABOVE = 20
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # the tests run as root in CI; the pages are our own
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
WIDE, PHONE = (1280, 900), (390, 844)


class Chromium:
    """One browser with one tab."""

    def __init__(self, program: str = "chromium") -> None:
        """Start it and open the tab. Raises OSError where there is no such program."""
        self._home = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        (theirs, self._to), (self._from, back) = os.pipe(), os.pipe()
        theirs, back = _raised(theirs), _raised(back)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                PLUGGED,
                str(theirs),
                str(back),
                program,
                *OPTIONS,
                f"{HOME}={self._home.name}",
            ],
            pass_fds=(theirs, back),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(back)
        self._buffer, self._sent, self._session = b"", 0, ""
        tab = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Page.setBypassCSP", enabled=True)  # for what the tests run beside the page's own script

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._to)
        os.close(self._from)
        self._home.cleanup()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and wait for its result. Raises RuntimeError, EOFError."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._to, left) :]
        while (answer := self._received()).get("id") != self._sent:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def open(self, page: Path, size: tuple[int, int] = WIDE, *, dark: bool = False) -> None:
        """Load a file in a window of this width and height in CSS pixels, and wait until it is loaded."""
        width, height = size
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=size == PHONE,
        )
        self.send("Emulation.setEmulatedMedia", media="", features=colours)
        self.send("Page.navigate", url=page.resolve().as_uri())
        while self._received().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """The value of an expression, its promise awaited, as JSON values. Raises RuntimeError."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as a PNG."""
        height = self.run("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self.run("innerWidth"), "height": min(height, 8000), "scale": 1}
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(shot["data"])

    def paper(self) -> bytes:
        """The page as it is printed, as a PDF."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def _received(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._from, 2**20)
            if not more:
                raise EOFError("Chromium has ended")
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


def _raised(descriptor: int) -> int:
    """The same pipe under a number that Chromium's own two do not collide with."""
    higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD, ABOVE)
    os.close(descriptor)
    return higher
