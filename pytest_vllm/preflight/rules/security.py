"""What a deployment opens to others: ports, keys, switches that are meant for a developer's desk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.facts import guarded_prefixes
from pytest_vllm.preflight.facts import entries, lives
from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, put, rule
from pytest_vllm.profile.secrets import literal_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment


@rule("security.open", WARNING, source="docs/usage/security.md; 320,102 public endpoints were counted")
def open_port(of: Deployment) -> Iterator[Finding]:
    """The port is published on every address and no key is asked for."""
    if (where := of.open_port) and not of.key_required:
        key, _, value = where.partition(" ")
        published = key == "deployment.ports"
        docker = published and of.profile.server.launcher == "docker"
        past = "; Docker publishes past the firewall's rules" if docker else ""
        closed = 'publish "127.0.0.1:…"' if published else 'host = "127.0.0.1"'
        shown = f"port {of.whole('port', 8000)} of the host's network" if value == "host" else value
        yield Finding(
            key,
            f"{shown} is reachable from every network and no key is asked for",
            f"anyone who reaches the machine uses the model{past}",
            advice=f'{closed}, or set api-key = {{ from-env = "VLLM_API_KEY" }}',
        )


@rule("security.key-on-command-line", WARNING, source="measured: /proc/PID/cmdline shows it")
def key_on_command_line(of: Deployment) -> Iterator[Finding]:
    """The key stands among the arguments, where `ps` and `docker inspect` show it."""
    if of.has("api-key"):
        yield Finding(
            of.key("api-key"),
            "api-key is an argument",
            "ps and docker inspect show it to everyone on the machine",
            advice='write it in [server]: api-key = { from-env = "VLLM_API_KEY" }',
        )


@rule("security.key-guards-part", NOTE, source="guarded prefixes of each release")
def key_guards_part(of: Deployment) -> Iterator[Finding]:
    """The key guards some prefixes only."""
    if of.key_required and of.open_port:
        guarded = ", ".join(guarded_prefixes(of.version))
        yield Finding(
            "server.api-key",
            f"the key guards {guarded}",
            "/tokenize, /pooling, /score, /invocations and /metrics answer without it",
            advice="let the proxy pass on what clients need and nothing else",
        )


@rule("security.literal-secret", ERROR, source="docker inspect and ps show them")
def literal_secret(of: Deployment) -> Iterator[Finding]:
    """A secret is written down in the profile."""
    server = of.profile.server
    raw = {
        "server": {"env": {k: v for k, v in server.env.items() if isinstance(v, str)}, "args": server.args}
    }
    for path, fix in literal_secrets(raw):
        yield Finding(".".join(map(str, path)), f"{path[-1]} is a secret in plain text", "", advice=fix)


@rule("security.dev-mode", ERROR, source="vLLM's security page: VLLM_SERVER_DEV_MODE")
def dev_mode(of: Deployment) -> Iterator[Finding]:
    """Development mode: /collective_rpc, /sleep and /server_info answer without a key."""
    if of.env_on("VLLM_SERVER_DEV_MODE") and not of.simulated:
        reached = bool(of.open_port)
        key = "server.env.VLLM_SERVER_DEV_MODE"
        yield Finding(
            key,
            "VLLM_SERVER_DEV_MODE is on"
            + (f" and {of.open_port.partition(' ')[2]} is open" if reached else ""),
            "/collective_rpc runs code and /sleep stops the server, both without a key",
            drop(key),
            severity=ERROR if reached else WARNING,
        )


def _native(of: Deployment) -> bool:
    """Whether this version has the model's architecture itself."""
    row = entries("architectures").get(of.model.architecture) if of.model else None
    return row is not None and lives(row, of.release)


@rule("security.remote-code", WARNING, source="vLLM's security page: trust_remote_code")
def remote_code(of: Deployment) -> Iterator[Finding]:
    """Code of the model's repository runs in the server."""
    if not of.on("trust-remote-code"):
        return
    native = _native(of)
    means = "the repository's code runs with the server's rights"
    if native and of.model:
        means += f"; {of.shown_version} has {of.model.architecture} itself, so it is not needed"
    key = of.key("trust-remote-code")
    yield Finding(key, "trust-remote-code is set", means, drop(key) if native else None)


@rule("security.remote-code-unpinned", WARNING, source="vLLM's security page; CVE-2026-47155")
def remote_code_unpinned(of: Deployment) -> Iterator[Finding]:
    """Code of a repository runs, whichever it holds on the day."""
    pinned = of.has("revision") and of.has("code-revision")
    if of.on("trust-remote-code") and not pinned and not of.local_model and not _native(of):
        yield Finding(
            of.key("trust-remote-code"),
            "trust-remote-code without revision and code-revision",
            "whoever changes the repository changes what runs here",
            advice="revision and code-revision = a commit",
        )


@rule("security.serialization", WARNING, source="vLLM's security page")
def serialization(of: Deployment) -> Iterator[Finding]:
    """Messages between processes are unpickled."""
    if of.env_on("VLLM_ALLOW_INSECURE_SERIALIZATION"):
        key = "server.env.VLLM_ALLOW_INSECURE_SERIALIZATION"
        yield Finding(
            key, "VLLM_ALLOW_INSECURE_SERIALIZATION is on", "who reaches a socket runs code", drop(key)
        )


_TRUSTING = {
    "trust-request-chat-template": "requests bring their own template, which can loop without end",
    "enable-prompt-embeds": "requests bring tensors; four advisories are about them",
    "enable-mm-embeds": "requests bring tensors",
    "trust-request-mm-kwargs": "requests choose how media are read",
}


@rule("security.trusting-requests", WARNING, source="vLLM's security page; advisories")
def trusting_requests(of: Deployment) -> Iterator[Finding]:
    """Requests may bring what only a trusted client should."""
    for flag, why in _TRUSTING.items():
        if of.on(flag):
            yield Finding(of.key(flag), f"{flag} is set", why, drop(of.key(flag)))


@rule("security.local-media", WARNING, source="vLLM's security page")
def local_media(of: Deployment) -> Iterator[Finding]:
    """Requests may read files of the server."""
    path = of.given("allowed-local-media-path")
    if isinstance(path, str) and path:
        yield Finding(
            of.key("allowed-local-media-path"),
            f"requests may read files below {path}",
            "the whole file system" if path == "/" else "everything in that folder",
            drop(of.key("allowed-local-media-path")) if path == "/" else None,
        )


@rule("security.cors", WARNING, source="CORS middleware of vllm")
def cors(of: Deployment) -> Iterator[Finding]:
    """Every web page may call the server with the visitor's credentials."""
    origins = of.value("allowed-origins")
    every = isinstance(origins, list) and "*" in origins
    if every and of.on("allow-credentials"):
        key = of.key("allow-credentials")
        yield Finding(
            key, 'allow-credentials with allowed-origins ["*"]', "any page acts as its visitor", drop(key)
        )


@rule("security.prompts-logged", WARNING, source="request logger; default until 0.10.0")
def prompts_logged(of: Deployment) -> Iterator[Finding]:
    """Prompts are written to the log."""
    if of.on("enable-log-requests") or of.on("enable-log-outputs"):
        flag = "enable-log-requests" if of.on("enable-log-requests") else "enable-log-outputs"
        yield Finding(of.key(flag), f"{flag} is set", "what people write is in the log", drop(of.key(flag)))
    elif not of.at_least("0.10.1") and not of.on("disable-log-requests"):
        yield Finding(
            "server.args.disable-log-requests",
            f"{of.shown_version} writes every request to its log",
            "what people write is in the log",
            put("server.args.disable-log-requests", value=True),
        )


@rule("security.debug-log", WARNING, source="vllm/envs.py")
def debug_log(of: Deployment) -> Iterator[Finding]:
    """Answers are written to the log."""
    for name in ("VLLM_DEBUG_LOG_API_SERVER_RESPONSE", "VLLM_TRACE_FUNCTION"):
        if of.env_on(name):
            yield Finding(
                f"server.env.{name}",
                f"{name} is on",
                "a debugger's switch: slow, and shows all",
                drop(f"server.env.{name}"),
            )


@rule("security.profiler", WARNING, source="vLLM's profiling page")
def profiler(of: Deployment) -> Iterator[Finding]:
    """Anyone may start the profiler, which slows the server and fills the disk."""
    variable = "VLLM_TORCH_PROFILER_DIR"
    config = of.given("profiler-config")
    if of.env(variable) is not None and not of.at_least("0.16.0"):
        yield Finding(
            f"server.env.{variable}",
            f"{variable} is set",
            "/start_profile is open",
            drop(f"server.env.{variable}"),
        )
    elif isinstance(config, dict) and config.get("profiler"):
        key = of.key("profiler-config")
        yield Finding(key, "profiler-config is set", "/start_profile is open", drop(key))


@rule("security.more-routes", WARNING, source="routes of each release")
def more_routes(of: Deployment) -> Iterator[Finding]:
    """Routes that show or change more than clients need."""
    extra = {
        "enable-tokenizer-info-endpoint": "/tokenizer_info shows the chat template",
        "enable-scale-out": "/inference and render routes take raw tokens",
        "enable-fault-tolerance": "routes that change the engine",
    }
    for flag, why in extra.items():
        if of.on(flag):
            yield Finding(of.key(flag), f"{flag} is set", why)


@rule("security.runtime-lora", WARNING, source="vLLM's LoRA page: not for untrusted users")
def runtime_lora(of: Deployment) -> Iterator[Finding]:
    """Requests may load adapters from any path or repository."""
    name = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
    if of.env_on(name) and not of.simulated:
        means = "requests load adapters from any path or repository"
        yield Finding(f"server.env.{name}", f"{name} is on", means, drop(f"server.env.{name}"))


@rule("security.half-tls", ERROR, source="uvicorn")
def half_tls(of: Deployment) -> Iterator[Finding]:
    """A TLS key without a certificate, or the reverse."""
    one, two = "ssl-keyfile", "ssl-certfile"
    if of.has(one) and not of.has(two):
        yield Finding(of.key(one), "ssl-keyfile without ssl-certfile", "TLS cannot be set up")
    elif of.has(two) and not of.has(one):
        yield Finding(
            of.key(two),
            "ssl-certfile without ssl-keyfile",
            "the key must stand in the same file",
            severity=WARNING,
        )


@rule("security.docker-socket", WARNING, source="Docker's security page")
def docker_socket(of: Deployment) -> Iterator[Finding]:
    """The server can start containers, which is root on the host."""
    for index, outside, _, _ in of.volumes():
        if outside.endswith(("docker.sock", "podman.sock")) or outside == "/":
            yield Finding(
                f"server.volumes.{index}",
                f"{outside} is mounted",
                "whoever runs code in the server is root on the host",
            )


@rule("security.unconfined", NOTE, source="Docker's security page")
def unconfined(of: Deployment) -> Iterator[Finding]:
    """The container's confinement is switched off."""
    for option in of.profile.deployment.security_opt:
        if "unconfined" in option or option in ("label=disable", "label:disable"):
            yield Finding(
                "deployment.security-opt", f"{option}", "a part of the container's confinement is off"
            )
