"""The process of Locust's master: spreads users over the workers, passes on what is told both ways.

    python -m pytest_vllm.measure.swarm.master HOST PORT WORKERS

Takes orders on stdin and tells on stdout, one JSON object a line; ends when stdin does. Started by `Crew`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import AsyncResult
from locust.env import Environment
from locust.runners import MasterRunner

from pytest_vllm.measure.swarm.stream import MESSAGE, Stream, lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locust.rpc.protocol import Message

#: Questions to each clock, and seconds for each answer.
ROUNDS, ANSWER = 8, 2.0


class Master(MasterRunner):
    """Locust's master for a fixed number of workers."""

    def __init__(self, environment: Environment, host: str, port: int, workers: int) -> None:
        """Listening."""
        super().__init__(environment, host, port)
        self._expected = workers

    def handle_message(self, client_id: str, msg: Message) -> None:
        """What a worker says; one too many is sent away, since users would be moved to it during a load."""
        new = msg.type == "client_ready" and client_id not in self.clients
        if new and len(self.clients) >= self._expected:
            self.send_message("quit", client_id=client_id)
            return
        super().handle_message(client_id, msg)

    def spread(self, users: int) -> None:
        """So many users in all, spread evenly, whatever ran before. Returns once they run."""
        self._users_dispatcher = None
        self.start(users, spawn_rate=users)


class Relay:
    """Between the crew's pipes and the workers."""

    def __init__(self, master: Master, out: int) -> None:
        """Listening to the workers."""
        self._master, self._out = master, out
        self._asked: AsyncResult = AsyncResult()
        master.register_message(MESSAGE, self.hear)
        master.environment.events.worker_connect.add_listener(self.joined)  # type: ignore[no-untyped-call]

    def say(self, kind: str, **more: Any) -> None:
        """Tell the crew."""
        data = json.dumps({"is": kind, **more}).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]

    def joined(self, client_id: str) -> None:
        """A worker is there, or there again: Locust forgets one that quits."""
        self.say("joined", worker=client_id)

    def hear(self, environment: Environment, msg: Message) -> None:
        """Pass on what a worker tells, but for its clock."""
        del environment
        if msg.data["what"] == "clock":
            self._asked.set(msg.data)
        else:
            self.say("worker", worker=msg.node_id, **msg.data)

    def obey(self, order: dict[str, Any]) -> bool:
        """Do what the crew orders. Whether to go on."""
        do = order["do"]
        if do == "tell":
            self._master.send_message(MESSAGE, order["message"], client_id=order["to"] or None)
        elif do == "users":
            self._master.spread(order["users"])
            self.say("users", load=order["load"])
        elif do == "clocks":
            self.say("clocks", load=order["load"], rounds={one: self._rounds(one) for one in order["of"]})
        return bool(do != "quit")

    def _rounds(self, worker: str) -> list[tuple[float, float, float]]:
        """When a worker's clock was asked, what it said, when that came."""
        found = []
        for number in range(ROUNDS):
            self._asked = AsyncResult()
            asked = time.perf_counter()
            self._master.send_message(MESSAGE, {"what": "clock", "number": number}, client_id=worker)
            try:
                told = self._asked.get(timeout=ANSWER)
            except gevent.Timeout:
                continue
            if told["number"] == number:
                found.append((asked, told["clock"], time.perf_counter()))
        return found

    def watch(self) -> None:
        """Tell of workers that leave, or that Locust hears nothing of."""
        known: set[str] = set()
        while True:
            gevent.sleep(0.2)
            there = {one.id for one in self._master.clients.all if one.state != "missing"}
            for worker in known - there:
                self.say("left", worker=worker)
            known = there


def main(argv: Sequence[str]) -> int:
    """Serve until told to quit, or until nobody is there to tell."""
    host, port, workers = argv
    out = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed is not a message
    master = Master(Environment(user_classes=[Stream]), host, int(port), int(workers))
    relay = Relay(master, out)
    relay.say("listening", port=master.server.port)
    watch = gevent.spawn(relay.watch)
    for line in lines_of(0):
        if not relay.obey(json.loads(line)):
            break
    watch.kill()
    master.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
