"""A server in a container: created, started, watched and removed through an engine's API."""

from __future__ import annotations

import contextlib
import json
import secrets as random
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch import processes
from pytest_vllm.launch.diagnose import daemon_error
from pytest_vllm.launch.engine import words_of
from pytest_vllm.launch.gpus import proven
from pytest_vllm.launch.ports import LOOPBACK
from pytest_vllm.launch.protocol import BootError, Exit, Halt
from pytest_vllm.launch.pull import pull
from pytest_vllm.launch.recipe import INSIDE, Recipe, recipe_for
from pytest_vllm.launch.started import StartedServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import psutil

    from pytest_vllm.launch.engine import Engine
    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

#: Seconds between two looks for the end of a command inside, where the engine may not tell it.
_ASK_AGAIN = 5.0
#: What an engine reports for a process that it had to kill.
_KILLED = 128 + signal.SIGKILL
_REMEMBERED = ("Config", "HostConfig", "State", "NetworkSettings", "Mounts", "Image", "Id", "Created")


class ContainerHandle(StartedServer):
    """One container. A missing image is pulled in the background while the waiting goes on."""

    def __init__(
        self,
        engine: Engine,
        profile: Profile,
        context: LaunchContext,
        *,
        halted: ContainerHandle | None = None,
    ) -> None:
        """Create and start it, or begin to pull its image. Raises BootError.

        Args:
            engine: where.
            profile: what.
            context: the run.
            halted: a container that was stopped and is to be started again, instead of a new one.
        """
        super().__init__(context)
        self.url: str | None = None
        self.name: str = halted.name if halted else f"pytest-vllm-{random.token_hex(3)}"
        self._engine, self._profile = engine, profile
        self._container: Any = None
        self._recipe: Recipe | None = None
        self._exit: Exit | None = None
        self._facts: dict[str, Any] = {"engine": engine.shown}
        self._lock = threading.RLock()
        self._cancelled = self._stopped = False
        self._begun = False
        self._follower: threading.Thread | None = None
        if halted is not None:
            self._take_over(halted)
            return
        image = _find_image(engine, _image_of(profile))
        if image is not None:
            self._start(image)
        else:
            threading.Thread(target=self._pull_and_start, name="pytest-vllm pull", daemon=True).start()

    @property
    def description(self) -> str:
        """What runs, for people."""
        if self._container is None:
            return f"container {self.name} waits for its image {self._profile.server.image}"
        return f"container {self.name} started"

    def alive(self) -> bool:
        """Whether the container runs, or is on its way."""
        return self.failure is None and self.exit() is None

    def exit(self) -> Exit | None:
        """How it ended, None while it runs; still readable once stopped."""
        # until its start was confirmed it has not ended: a refusal tells more than the status it leaves
        if self._exit is None and self._container is not None and self._begun:
            state = self._state()
            if state is not None and not state.get("Running") and state.get("Status") != "created":
                self._exit = exit_of(state)
                self._settle()
        return self._exit

    def facts(self) -> Mapping[str, Any]:
        """Image, digest, container, engine, command with secrets replaced, GPUs seen inside."""
        return dict(self._facts)

    def resident(self) -> int | None:
        """Bytes of main memory that it holds as the engine counts them, the cache of files left out."""
        if self._container is None:
            return None
        try:
            found = self._engine.client.api.stats(self._container.id, stream=False, one_shot=True)
        except self._engine.errors:
            return None
        told = found.get("memory_stats") or {}
        used, cached = told.get("usage"), (told.get("stats") or {}).get("inactive_file", 0)
        return int(used) - int(cached) if isinstance(used, int) else None

    def inside(self, words: Sequence[str], patience: float, env: Mapping[str, str]) -> tuple[int | None, str]:
        """Run a command in the container: its exit status, None when it did not end, and what it printed."""
        api, place = self._engine.client.api, f"/tmp/{self.name}"  # noqa: S108 - the container's own
        told = ["sh", "-c", f'"$@" >{place}; echo $? >{place}.status', "sh", *words]
        run = api.exec_create(self._container.id, told, environment=dict(env))["Id"]
        api.exec_start(run, detach=True)  # a quiet command would outlast the wait for an answer
        began = asked = time.monotonic()
        while api.exec_inspect(run)["Running"]:
            now = time.monotonic()
            if now - began > patience:
                return None, ""
            if now - asked > _ASK_AGAIN:  # podman calls it running for ever
                asked = now
                if self._printed(f"{place}.status"):
                    break
            time.sleep(0.5)
        status = self._printed(f"{place}.status") or api.exec_inspect(run)["ExitCode"]
        return int(status), self._printed(place)

    def _printed(self, place: str) -> str:
        """What a file in the container holds; empty when it is not there."""
        found = self._container.exec_run(["cat", place])
        return found.output.decode("utf-8", "replace") if found.exit_code == 0 else ""

    def bench(self) -> tuple[tuple[str, ...], str] | None:
        """How `vllm bench serve` is called in the container, and where the server is for it."""
        return ("vllm", "bench", "serve"), f"http://127.0.0.1:{INSIDE}"

    def stop(self) -> None:
        """Stop and remove it with its anonymous volumes, also when interrupted meanwhile."""
        self._cancelled = True
        with self._lock:
            if self._stopped:
                return
            try:
                if self._container is not None and self.exit() is None:
                    with contextlib.suppress(*self._engine.errors):
                        self._container.stop(timeout=int(self.grace))
            finally:
                self._remove()
                self._settle()
            self._stopped = True
            self._engine.client.close()

    def halt(self) -> Halt:
        """`docker stop`: the container stays."""
        began = time.monotonic()
        inside = self._inside()
        with self._lock:
            if self._container is not None and self.exit() is None:
                try:
                    self._container.stop(timeout=int(self.grace))
                except self._engine.errors as error:
                    raise daemon_error("the container could not be stopped", words_of(error)) from error
        ended = self.exit()
        killed = ended is not None and ended.status == _KILLED
        seconds = round(time.monotonic() - began, 3)
        left = processes.outliving(lambda: processes.running(inside), processes.LEAVING)
        return Halt(seconds, killed=killed, left=processes.names_of(left))

    def again(self) -> ContainerHandle:
        """`docker start`: the same container once more. Raises BootError."""
        return ContainerHandle(self._engine, self._profile, self.context, halted=self)

    def _inside(self) -> list[psutil.Process]:
        """Its processes, where this machine can see them as its own."""
        if self._container is None:
            return []
        with contextlib.suppress(*self._engine.errors):
            return processes.of_rows(self._container.top().get("Processes") or [])
        return []

    def _take_over(self, halted: ContainerHandle) -> None:
        self._container, self._recipe = halted._container, halted._recipe
        self._facts = dict(halted._facts)
        self.lines.hide(self._recipe.secrets if self._recipe else ())
        self._run(since=time.time())

    def _pull_and_start(self) -> None:
        image_name = _image_of(self._profile)
        try:
            pull(self._engine, image_name, self.lines.say, lambda: self._cancelled)
            with self._lock:
                if not self._cancelled:
                    self._start(_find_image(self._engine, image_name))
        except BootError as error:
            self.failure = error
        except self._engine.errors as error:
            self.failure = daemon_error("the container could not be started", words_of(error))

    def _start(self, image: Any) -> None:
        engine, context = self._engine, self.context
        recipe = recipe_for(engine, self._profile, context, image.attrs.get("Config") or {}, self.name)
        self._recipe = recipe
        self.lines.hide(recipe.secrets)
        for note in recipe.notes:
            self.lines.say(f"pytest-vllm: {note}")
        self._facts |= {
            "image": self._profile.server.image,
            "image-id": image.id,
            "image-digest": next(iter(image.attrs.get("RepoDigests") or ()), None),
            "container": self.name,
            "command": recipe.shown,
            "notes": list(recipe.notes),
        }
        # written down before it exists: whoever dies in between leaves a name that can be looked for
        context.made(engine.name, f"{engine.url} {self.name}")
        try:
            self._container = engine.client.containers.create(**recipe.create)
            context.made("created", self.name)
            self._facts["container-id"] = self._container.id
        except engine.errors as error:
            raise self._not_started(error) from error
        self._run()

    def _run(self, since: float | None = None) -> None:
        """Start the container, which is there; follow its log from that moment on."""
        try:
            self._container.start()
        except self._engine.errors as error:
            raise self._not_started(error) from error
        self._begun = True
        self._follower = threading.Thread(
            target=self._follow, args=(since,), name="pytest-vllm log", daemon=True
        )
        self._follower.start()
        self._publish()
        recipe = self._recipe
        if recipe is not None and recipe.gpus:
            self._prove(recipe)

    def _not_started(self, error: Exception) -> BootError:
        what = f"{self._engine.name} could not start the container"
        refused = daemon_error(what, words_of(error), try_=_port_hint(self._profile))
        self.failure = refused  # told before the status that removing it will tell: somebody may be waiting
        self._remove()
        return refused

    def _publish(self) -> None:
        self._container.reload()
        ports = self._container.attrs["NetworkSettings"]["Ports"].get(f"{INSIDE}/tcp") or []
        if ports:
            self.url = f"http://{LOOPBACK}:{ports[0]['HostPort']}"

    def _prove(self, recipe: Recipe) -> None:
        assert recipe.gpus is not None  # noqa: S101 - asked by the caller
        try:
            seen = proven(self._container, self._engine, recipe.gpus)
        except BaseException:
            self.stop()
            raise
        self._facts |= {"gpus": seen, "gpus-by": recipe.gpus.how}

    def _state(self) -> Mapping[str, Any] | None:
        """None when the engine does not answer just now."""
        try:
            self._container.reload()
        except self._engine.missing:
            return {"Running": False, "Status": "removed", "ExitCode": None}
        except self._engine.errors:
            return None
        state: Mapping[str, Any] = self._container.attrs["State"]
        return state

    def _follow(self, since: float | None) -> None:
        with contextlib.suppress(*self._engine.errors, OSError, ValueError):
            for chunk in self._container.logs(stream=True, follow=True, since=since):
                self.lines.feed(chunk)
        self.lines.close()

    def _settle(self) -> None:
        """Let the last lines arrive; the stream of an ended container ends by itself."""
        if self._follower is not None and self._follower is not threading.current_thread():
            self._follower.join(timeout=2)

    def _remove(self) -> None:
        container = self._container
        if container is None:
            # the answer to the create call may have got lost with an interrupt
            container = next(iter(self._leftover()), None)
        if container is None:
            return
        with contextlib.suppress(*self._engine.errors):
            self._remember(container)
        try:
            container.remove(force=True, v=True)
        except self._engine.missing:
            pass
        except self._engine.errors as error:
            if "already in progress" not in str(error):
                self.lines.say(f"pytest-vllm: {self.name} could not be removed: {words_of(error)}")
        if self._engine.name == "podman":
            processes.end(lambda: list(processes.lingering(container.id)))

    def _leftover(self) -> list[Any]:
        with contextlib.suppress(*self._engine.errors):
            return [self._engine.client.containers.get(self.name)]
        return []

    def _remember(self, container: Any) -> None:
        """Keep exit status, last lines and the inspection, secrets replaced."""
        container.reload()
        state = container.attrs["State"]
        if self._exit is None and not state["Running"]:
            self._exit = exit_of(state)
        self._settle()
        text = json.dumps({key: container.attrs.get(key) for key in _REMEMBERED}, indent=2)
        for secret in self._recipe.secrets if self._recipe else ():
            text = text.replace(json.dumps(secret)[1:-1], "***")
        if self.context.folder.is_dir():
            (self.context.folder / "inspect.json").write_text(text, "utf-8")


def _image_of(profile: Profile) -> str:
    if profile.server.image:
        return profile.server.image
    raise BootError(
        "the profile names no image to start a container from",
        try_=('[server] image = "vllm/vllm-openai:v0.32.0"', "or pass --vllm-image=IMAGE"),
    )


def _find_image(engine: Engine, name: str) -> Any:
    try:
        return engine.client.images.get(name)
    except engine.missing:
        return None
    except engine.errors as error:
        raise daemon_error(f"{engine.name} cannot look up the image {name}", words_of(error)) from error


def exit_of(state: Mapping[str, Any]) -> Exit:
    """How a container ended, from the `State` of its inspection."""
    status = state.get("ExitCode")
    name = ""
    if status is not None and 128 < status <= 128 + signal.SIGRTMAX:
        with contextlib.suppress(ValueError):
            name = signal.Signals(status - 128).name
    return Exit(status, oom=bool(state.get("OOMKilled")), signal=name)


def _port_hint(profile: Profile) -> tuple[str, ...]:
    port = profile.server.args.get("port")
    return (f"the profile asks for port {port} of this machine",) if port else ()
