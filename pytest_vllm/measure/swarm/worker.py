"""The process of one of Locust's workers: its users send with our driver, every record goes to the master.

    pytest-vllm load-worker HOST:PORT

Waits for a master at that address, sends its part of every load, and ends with the run.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import AsyncResult, Event
from gevent.socket import wait_read
from locust.env import Environment

from pytest_vllm.measure.asking import Asking
from pytest_vllm.measure.driver import Driver
from pytest_vllm.measure.sender import CONNECTIONS, Part, Sender
from pytest_vllm.measure.swarm.stream import MESSAGE, Stream, lines_of
from pytest_vllm.measure.workload import Script, Workload
from pytest_vllm.wire.policy import Access
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from locust.rpc.protocol import Message
    from locust.runners import WorkerRunner

    from pytest_vllm.measure.driver import Call

#: Seconds between two reports of how far it is, between two looks for a master, and between two looks at
#: the connections where the system has nothing to wait for.
TICK, RETRY, POLL = 0.05, 0.5, 0.001
#: Records in one message, records made before others get their turn, lags that are told at most.
BATCH, FEW, LAGS = 200, 20, 20_000


class Worker:
    """One worker's parts of loads, one load after the other."""

    def __init__(self, runner: WorkerRunner) -> None:
        """Nothing to do yet."""
        self._runner = runner
        self._gate = Event()
        self._driver: Driver | None = None
        self._sender: Sender | None = None
        self._load: dict[str, Any] = {}
        self._begun = self._shipped = 0
        self._every = TICK
        self._parts: dict[str, Callable[[dict[str, Any]], None]] = {
            "load": self._prepare,
            "open": self._open,
            "go": self._go,
            "steady": self._steady,
            "stop": lambda _: self._stop(),
            "read": lambda _: self._ship("read"),
            "close": self._close,
            "drop": lambda _: self._drop(),
            "clock": lambda told: self._say("clock", number=told["number"], clock=time.perf_counter()),
        }

    def hello(self, name: str) -> None:
        """Tell the crew who this is, by the name that it gave, if it did."""
        self._say("hello", name=name, host=socket.gethostname(), version=version("pytest-vllm"))
        for work in (self._pump, self._report):
            gevent.spawn(self._told_of, work)

    def hear(self, environment: Environment, msg: Message) -> None:
        """Do what the crew tells; what goes wrong is told back."""
        del environment
        self._told_of(self._parts[msg.data["what"]], msg.data)

    def turn(self) -> None:
        """A user's part in a load: one stream of it, or what arrives of an open loop."""
        self._gate.wait()
        self._told_of(self._take_part)

    def _take_part(self) -> None:
        if (sender := self._sender) is None:
            return
        if sender.workload.open_loop:
            while sender.due < inf:
                gevent.sleep(min(max(0.0, sender.due - time.perf_counter()), TICK))
                sender.serve(time.perf_counter())
        else:
            self._stream(sender)
        self._gate.clear()  # nothing of this load is to be sent any more

    def _stream(self, sender: Sender) -> None:
        number, self._begun = self._begun, self._begun + 1
        last: Call | None = None
        while sender.may_ask():
            over: AsyncResult = AsyncResult()
            if last is None:
                sender.ask_first(number, over.set)
            else:
                sender.ask(last.ended, then=over.set)
            last = over.get()

    def _told_of(self, work: Callable[..., None], *given: Any) -> None:
        """Do it; what goes wrong is told to the crew: Locust would log it and go on."""
        try:
            work(*given)
        except Exception as error:  # noqa: BLE001 - whatever it is, the load counts for nothing
            self._gate.clear()
            self._say("failed", why=f"{type(error).__name__}: {error}")

    def _say(self, what: str, **more: Any) -> None:
        self._runner.send_message(MESSAGE, {"what": what, "load": self._load.get("load", 0), **more})

    def _prepare(self, told: dict[str, Any]) -> None:
        """Another load is to come; what is left of the last one is dropped."""
        self._drop()
        self._sender, self._load = None, told
        self._begun = self._shipped = 0
        server = _server(told["server"])
        self._driver = Driver(server.url, access=server.access)  # `_pump` closes the one before

    def _open(self, told: dict[str, Any]) -> None:
        """Locust has given its users: connect for each."""
        del told
        if self._runner.spawning_greenlet is not None:
            self._runner.spawning_greenlet.join()
        users = self._runner.user_count
        if self._driver is not None:
            self._driver.open(min(users, CONNECTIONS))
        self._say("ready", users=users)

    def _go(self, told: dict[str, Any]) -> None:
        """The load begins at a moment of this clock."""
        driver, load = self._driver, self._load
        if driver is None:
            return
        workload = Workload.of(load["workload"])
        script = Script(workload, load["salt"], load["lines"], tuple(told["turns"]))
        script.words_per_token = load["words"]
        script.pass_over(load["after"])
        asking = Asking(_server(load["server"]), driver.route)
        self._sender = Sender(workload, driver, asking, script, Part(**told["part"]), told["kept"])
        self._sender.begin_at(told["begin"], told["speed"])
        self._every = told["every"]
        gc.disable()  # it takes tens of milliseconds at the wrong moment
        gevent.spawn_later(max(0.0, told["begin"] - time.perf_counter()), self._begin, self._sender)

    def _begin(self, sender: Sender) -> None:
        if sender is self._sender:  # else it was dropped meanwhile
            self._gate.set()

    def _steady(self, told: dict[str, Any]) -> None:
        del told
        if self._sender is not None:
            self._sender.steady()

    def _stop(self) -> None:
        self._gate.clear()
        if self._sender is not None:
            self._sender.ends()
            self._sender.stop()
            self._progress()

    def _drop(self) -> None:
        """Nobody waits for what is left of the load."""
        self._stop()
        if self._driver is not None:
            self._driver.cancel()
        gc.enable()

    def _close(self, told: dict[str, Any]) -> None:
        sender = self._sender
        if sender is None:
            return
        sender.driver.cancel(why=told["why"])
        self._ship("")
        print_ = asdict(sender.footprints()[0])
        lags = print_["lags"]
        self._say(
            "closed",
            sent=sender.sent,
            footprint={**print_, "lags": [float(one) for one in lags[:: 1 + len(lags) // LAGS]]},
        )
        gc.enable()

    def _ship(self, then: str) -> None:
        """Make records of what has ended, and send all that the crew has not got."""
        sender = self._sender
        if sender is None:
            return
        while sender.read(FEW):
            gevent.sleep(0)
        while rows := [one.plain() for one in sender.samples[self._shipped : self._shipped + BATCH]]:
            self._say("samples", first=self._shipped, samples=rows)
            self._shipped += len(rows)
        if then:
            self._say(then, count=self._shipped)

    def _pump(self) -> None:
        """Serve the driver's connections whenever one of them has something."""
        while True:
            driver = self._driver
            if driver is None:
                gevent.sleep(TICK)
                continue
            readable = driver.fileno()
            if readable < 0:
                gevent.sleep(POLL)
            else:
                with suppress(TimeoutError):
                    wait_read(readable, timeout=TICK, timeout_exc=TimeoutError())
            if driver is self._driver:
                driver.step(0.0)
            else:
                driver.close()

    def _report(self) -> None:
        """Tell how far it is, again and again."""
        while True:
            gevent.sleep(self._every)
            self._progress()

    def _progress(self) -> None:
        if (sender := self._sender) is not None:
            names = ("sent", "in_flight", "begun", "reads", "hopeless", "finished", "stopped")
            self._say("progress", **{name: getattr(sender, name) for name in names})


def _server(told: dict[str, Any]) -> Server:
    return Server(**{**told, "access": Access(**told["access"])})


def wait_for(host: str, port: int) -> None:
    """Wait until something listens there: a run measures only after its server has booted."""
    told = False
    while True:
        with suppress(OSError), socket.create_connection((host, port), 5.0):
            return
        if not told:
            print(f"waiting for a master at {host}:{port}", file=sys.stderr, flush=True)
            told = True
        gevent.sleep(RETRY)


def end_with_parent() -> None:
    """End at once when the other end of stdin is closed."""
    for _ in lines_of(0):
        pass
    os._exit(1)


def main(argv: Sequence[str]) -> int:
    """Work for one run."""
    parser = argparse.ArgumentParser(prog="pytest-vllm load-worker", description=__doc__)
    parser.add_argument("address", help="HOST:PORT of the master, as `locust-address` in [measure] says")
    parser.add_argument("--name", default="", help=argparse.SUPPRESS)  # one that a run starts itself
    options = parser.parse_args(argv)
    host, _, port = options.address.rpartition(":")
    if not host or not port.isdecimal():
        print(f"pytest-vllm: {options.address!r} is not HOST:PORT, such as 10.0.0.5:5557", file=sys.stderr)
        return 4
    if options.name:
        gevent.spawn(end_with_parent)
    wait_for(host, int(port))
    environment = Environment(user_classes=[Stream])
    runner = environment.create_worker_runner(host, int(port))
    environment.parsed_options = argparse.Namespace()  # else it would look for a locust.conf in this folder
    worker = Worker(runner)
    Stream.turn = worker.turn
    runner.register_message(MESSAGE, worker.hear)
    worker.hello(options.name)
    runner.greenlet.join()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
