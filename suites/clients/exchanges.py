"""The clients, each as one exchange that a program performs: its steps against this server."""

from __future__ import annotations

from pytest_vllm import Case, Request, Server, case_file, cases, exchange

from .saying import SAYS, texts, wishes

client = cases("client", case_file("clients"))


@exchange("clients.run", program=True)
def clients_run(server: Server, client: Case) -> Request:
    """A client goes through those of its steps that the server can be asked for."""
    steps, left = wishes(server, client["steps"], client.get("context", 0))
    scripted = server.can("scripted")
    task = {
        "script": f"scripts/{client['script']}",
        "seconds": client["seconds"],
        "steps": steps,
        "left": left,
        "free": bool(client.get("agent")) and not scripted,
        "says": SAYS if scripted else {},
        "writes": texts(server) if scripted else {},
    }
    return Request("RUN", f"/{client.id}", json=task)
