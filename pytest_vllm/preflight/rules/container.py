"""The container and the unit around the server: shared memory, ports, restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, put, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_SHM = "/dev/shm"  # noqa: S108 - where vLLM's processes meet
_RUNS = ("compose", "docker-run", "podman-run")


def _published(of: Deployment) -> Iterator[tuple[int, str, str]]:
    for index, port in enumerate(of.profile.deployment.ports):
        yield index, port, port.rpartition(":")[2].partition("/")[0]


def _shared(of: Deployment) -> bool:
    """Whether the server's /dev/shm is more than an engine gives by itself."""
    server = of.profile.server
    return server.ipc == "host" or bool(server.shm) or of.mounted(_SHM) is not None


@rule("container.shared-memory", WARNING, source="vLLM's Docker page: --ipc=host or --shm-size")
def shared_memory(of: Deployment) -> Iterator[Finding]:
    """Several processes share 64 MiB of /dev/shm."""
    pod = of.profile.deployment.kind == "kubernetes"
    machines = max(of.profile.deployment.machines, of.whole("nnodes", 1))
    here = -(-of.devices // machines)
    if of.in_container and here > 1 and not _shared(of):
        yield Finding(
            "server.shm" if pod else "server.ipc",
            f"{here} GPUs with the engine's 64 MiB of /dev/shm",
            "NCCL and the workers' queues need more: bus error or a hanging start",
            None if pod else put("server.ipc", "host"),
            "an emptyDir with medium: Memory on /dev/shm" if pod else "",
        )


@rule(
    "container.shared-memory-cpu",
    ERROR,
    versions=">=0.32",
    source="measured: vLLM 0.32.0 on the CPU asks for 160 MiB",
)
def shared_memory_cpu(of: Deployment) -> Iterator[Finding]:
    """The CPU back end needs more shared memory than containers have by default."""
    cpu = of.hardware is not None and of.hardware.vendor == "cpu"
    if of.in_container and cpu and not _shared(of):
        yield Finding(
            "server.shm",
            "the engine's 64 MiB of /dev/shm",
            f"{of.shown_version} on the CPU asks for 160 MiB",
            put("server.shm", "1g"),
        )


@rule("container.shm-idle", NOTE, source="docker run: --shm-size has no effect with --ipc=host")
def shm_idle(of: Deployment) -> Iterator[Finding]:
    """The size of /dev/shm is set although it is the host's."""
    server = of.profile.server
    in_pod = of.profile.deployment.kind == "kubernetes"  # a memory folder lies over the host's there
    if of.in_container and server.ipc == "host" and server.shm and not in_pod:
        yield Finding(
            "server.shm",
            f"shm = {server.shm!r} with ipc = 'host'",
            "its size is the host's",
            drop("server.shm"),
        )


@rule("container.no-restart", WARNING, source="guides: restart: unless-stopped")
def no_restart(of: Deployment) -> Iterator[Finding]:
    """Nothing starts the server again after a crash or a reboot."""
    part = of.profile.deployment
    if part.kind in _RUNS and part.restart in (None, "no", "never") and not part.remove:
        yield Finding(
            "deployment.restart",
            "no restart policy",
            "a crash or a reboot ends the service",
            put("deployment.restart", "unless-stopped"),
        )


@rule("container.unit-restart", WARNING, source="systemd.service")
def unit_restart(of: Deployment) -> Iterator[Finding]:
    """A unit that is not started again after a failure."""
    part = of.profile.deployment
    if part.kind in ("systemd", "systemd-user") and part.restart in (None, "no"):
        yield Finding(
            "deployment.restart", "the unit has no Restart=", "a crash ends the service",
            put("deployment.restart", "on-failure"),
        )  # fmt: skip


@rule("container.remove-and-restart", ERROR, source="docker run: conflicting options --restart and --rm")
def remove_and_restart(of: Deployment) -> Iterator[Finding]:
    """A container that is to be removed and restarted."""
    part = of.profile.deployment
    unit = bool(part.service) or part.kind in ("systemd", "systemd-user")  # which starts it again itself
    if part.remove and part.restart not in (None, "no") and not unit:
        yield Finding(
            "deployment.remove",
            f"remove with restart = {part.restart!r}",
            "the engine refuses both",
            drop("deployment.remove"),
        )


@rule("container.port-inside", WARNING, source="deployment.ports against port")
def port_inside(of: Deployment) -> Iterator[Finding]:
    """A published port leads to one that the server does not listen on."""
    listens = str(of.profile.deployment.listens or of.whole("port", 8000))
    if of.profile.deployment.network_shared:
        return  # a neighbour may listen there
    if of.profile.server.command and "port" not in of.profile.server.args:
        return  # a command of its own may say where it listens
    ports = list(_published(of))
    if of.in_container and ports and not any(inside == listens for _, _, inside in ports):
        index, port, inside = ports[0]
        outside = port.rpartition(":")[0] or inside
        fixed = [one for _, one, _ in ports]
        fixed[index] = f"{outside}:{listens}"
        yield Finding(
            "deployment.ports",
            f"{port} leads to port {inside} of the container, the server listens on {listens}",
            "connections are refused",
            put("deployment.ports", fixed),
        )


@rule("container.loopback-inside", ERROR, source="docker run -p: packets arrive on the container's address")
def loopback_inside(of: Deployment) -> Iterator[Finding]:
    """The server listens on the container's own loopback, and a port is published."""
    part = of.profile.deployment
    host = str(of.given("host") or part.binds or "")
    key = of.key("host") if of.has("host") else "deployment.binds"
    bridged = part.network in (None, "bridge") and not part.network_shared
    if of.in_container and host in ("127.0.0.1", "localhost", "::1") and part.ports and bridged:
        yield Finding(
            key,
            f"host = {host!r} inside a container that publishes {part.ports[0]}",
            "nothing outside of the container reaches it",
            drop(key),
            severity=WARNING if part.kind == "kubernetes" else ERROR,  # a neighbour in the pod reaches it
        )


@rule("container.ports-idle", NOTE, source="docker run: published ports are discarded with host networking")
def ports_idle(of: Deployment) -> Iterator[Finding]:
    """Ports are published although the network is the host's."""
    part = of.profile.deployment
    if part.network == "host" and part.ports and of.in_container and part.kind != "kubernetes":
        yield Finding(
            "deployment.ports", "ports with network = 'host'", "they have no effect", drop("deployment.ports")
        )


@rule("container.selinux", NOTE, source="podman run: :z and :Z")
def selinux(of: Deployment) -> Iterator[Finding]:
    """Volumes under SELinux without a label."""
    if of.profile.server.launcher != "podman" or "label=disable" in of.profile.deployment.security_opt:
        return
    for index, outside, _, mode in of.volumes():
        if outside.startswith(("/", "~")) and not {"z", "Z"} & set(mode.split(",")):
            yield Finding(
                f"server.volumes.{index}",
                f"{outside} without :z or :Z",
                "where SELinux is on, the container may not read it",
            )


@rule("container.start-timeout", WARNING, source="guides: two to ten minutes")
def start_timeout(of: Deployment) -> Iterator[Finding]:
    """The start is given up before the weights can be read."""
    if of.model is None or of.simulated or of.profile.server.launcher == "attach":
        return
    needs = of.model.weights / 2e9 + 30
    if of.profile.boot.timeout < needs:
        yield Finding(
            "boot.timeout",
            f"the start is given up after {of.profile.boot.timeout:.0f} s",
            f"reading {of.model.weights / 1e9:.0f} GB at 2 GB/s and compiling takes {needs:.0f} s at least",
            put("boot.timeout", f"{max(10, round(needs / 60 * 2))}m"),
        )


@rule("container.proxy-buffering", WARNING, source="nginx: proxy_buffering off for event streams")
def proxy_buffering(of: Deployment) -> Iterator[Finding]:
    """The proxy holds streams back until they end."""
    proxy = of.profile.deployment.proxy
    if proxy is not None and proxy.buffering and "stream" in of.profile.expect.capabilities:
        yield Finding(
            "deployment.proxy.buffering",
            "the proxy buffers responses",
            "streams arrive in one piece",
            put("deployment.proxy.buffering", value=False),
        )


@rule("container.proxy-timeout", WARNING, source="nginx: proxy_read_timeout, 60 s by default")
def proxy_timeout(of: Deployment) -> Iterator[Finding]:
    """The proxy gives up while the server still computes."""
    proxy = of.profile.deployment.proxy
    waits = proxy.read_timeout if proxy is not None else None
    if proxy is not None and (waits if waits is not None else 60.0) < 120:
        said = f"waits {waits:.0f} s" if waits is not None else "waits its default, 60 s,"
        yield Finding(
            "deployment.proxy.read-timeout",
            f"the proxy {said} for the next bytes",
            "an answer that is not streamed, or a queued request, ends in 504",
            put("deployment.proxy.read-timeout", "300s"),
        )
