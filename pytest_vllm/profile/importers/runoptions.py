"""The options of `docker run` and `podman run`, by whether a value follows."""

from __future__ import annotations

#: One-letter options by their long names.
SHORT = {
    "a": "attach",
    "c": "cpu-shares",
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "P": "publish-all",
    "q": "quiet",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}

_SWITCHES = """
detach disable-content-trust init interactive no-healthcheck no-hosts oom-kill-disable privileged publish-all
quiet read-only replace rm sig-proxy tls-verify tty
"""
#: Options without a value.
SWITCHES = frozenset(_SWITCHES.split())

_VALUED = """
add-host annotation arch attach authfile blkio-weight cap-add cap-drop cgroup-parent cgroupns cgroups
cidfile conmon-pidfile cpu-period cpu-quota cpu-shares cpus cpuset-cpus cpuset-mems detach-keys device
device-cgroup-rule dns dns-option dns-search domainname entrypoint env env-file expose gpus group-add
health-cmd health-interval health-retries health-start-interval health-start-period health-timeout
hooks-dir hostname ip ip6 ipc isolation kernel-memory label label-file link log-driver log-opt
mac-address memory memory-reservation memory-swap memory-swappiness mount name net network network-alias
oom-score-adj pid pids-limit platform pod publish pull restart runtime sdnotify secret security-opt
shm-size stop-signal stop-timeout storage-opt sysctl systemd tmpfs ulimit umask user userns uts volume
volume-driver volumes-from workdir
"""
#: Options with one.
VALUED = frozenset(_VALUED.split())
