"""A stand-in for `vllm serve`: starts in steps, logs like vLLM, answers /health. Standard library only.

It runs as a program, also inside containers that hold nothing but Python. The model's name chooses what goes
wrong: `fake/MODE`, or `fake/MODE/SECONDS` for a start whose steps take that long each.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

DEATH = 3


class Answers(BaseHTTPRequestHandler):
    """`/health`, `/say/TEXT` (logs it), `/env/NAME`, `/argv`, `/die/STATUS`."""

    def do_GET(self) -> None:
        """Answer."""
        _, word, *rest = [unquote(part) for part in self.path.split("/")]
        text = {"say": lambda: log(rest[0]), "env": lambda: os.environ.get(rest[0], ""), "argv": _argv}
        if word == "die":
            log("going down")
            os._exit(int(rest[0]))
        body = str(text.get(word, str)() or "").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing by itself."""


def _argv() -> str:
    return "\n".join(sys.argv)


def log(line: str) -> None:
    """One line, at once."""
    print(line, flush=True)


def stay() -> None:
    """Do nothing until killed."""
    threading.Event().wait()


def die(status: int) -> None:
    """End as a start that fails does: the cause first, a wrapper last."""
    error = "(EngineCore pid=2) ERROR 11-27 20:50:01 [core.py:9]"
    log(f"{error} ValueError: No available memory for the cache blocks.")
    log("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    sys.exit(status)


def child(*, detached: bool) -> None:
    """Start something that outlives its parent, as EngineCore does."""
    program = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=detached)
    log(f"child {process.pid}")


def main() -> None:
    """Start in steps, then serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    parser.add_argument("serve")
    parser.add_argument("model")
    known, _ = parser.parse_known_args()
    _, mode, step = [*known.model.split("/"), "0"][:3]
    stubborn = mode == "stubborn"
    signal.signal(signal.SIGTERM, lambda *_: log("SIGTERM is ignored") if stubborn else os._exit(0))
    log("INFO 11-27 20:50:00 [api_server.py:1] vLLM API server version 0.32.0")
    if mode == "children":
        child(detached=False)
        child(detached=True)
    for shard in range(3):
        log(f"Loading safetensors checkpoint shards: {50 * shard}% Completed | {shard}/2 [00:00<00:00]")
        time.sleep(float(step))
    if mode == "die":
        die(DEATH)
    if mode == "hang":
        stay()
    log("INFO 11-27 20:50:01 [kv.py:1] GPU KV cache size: 93,184 tokens")
    server = ThreadingHTTPServer((known.host, known.port), Answers)
    log("INFO:     Application startup complete.")
    server.serve_forever()


if __name__ == "__main__":
    main()
