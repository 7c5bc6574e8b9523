"""Every option and its ini twin, read once into one frozen `Options`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.face.session import GateSession

OPTIONS: pytest.StashKey[Options] = pytest.StashKey()
SESSION: pytest.StashKey[GateSession] = pytest.StashKey()
#: How the options begin.
OPTION = "--vllm-"
#: The mark of a check, and the parameter through which several profiles reach the items.
MARK, PROFILE_PARAM = "vllm_check", "vllm_profile_name"
TIERS = ("smoke", "gate", "soak", "explore")
#: Tier -> the tiers whose checks it runs; exploring needs no soak.
INCLUDES = {
    **{tier: TIERS[: at + 1] for at, tier in enumerate(TIERS)},
    "explore": ("smoke", "gate", "explore"),
}
#: What face/fixtures.py provides where a server was asked for.
FIXTURES = (
    "vllm_again",
    "vllm_async_client",
    "vllm_baseline",
    "vllm_capabilities",
    "vllm_client",
    "vllm_client_runs",
    "vllm_death",
    "vllm_explored",
    "vllm_figures",
    "vllm_http",
    "vllm_live_server",
    "vllm_log",
    "vllm_measurements",
    "vllm_metrics",
    "vllm_profile",
    "vllm_profile_name",
    "vllm_recordings",
    "vllm_restart",
    "vllm_roofline",
    "vllm_server",
    "vllm_servers",
    "vllm_session",
    "vllm_startup_warnings",
    "vllm_timeline",
)
#: What `--vllm-baseline` takes instead of a file: `compare.kept` knows what it means.
LAST_GOOD = "last-good"
#: What passing own tests are without any check: a GO, or only pytest's own exit status.
OWN_TESTS = ("count", "report")
#: What names the older server that a run is compared with.
AGAINST = ("against", "against-url", "against-image")
LAUNCHERS = ("docker", "podman", "process", "attach", "sim")


@dataclass(frozen=True)
class Options:
    """What the person asked for."""

    profiles: tuple[str, ...] = ()
    url: str | None = None
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    proxy: str | None = None
    source: str | None = None
    service: str | None = None
    preflight: bool = False
    api_key_env: str = "VLLM_API_KEY"
    launcher: str | None = None
    image: str | None = None
    model_config: Path | None = None
    hardware: str | None = None
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    tier: str = "gate"
    explore_seconds: float | None = None
    explore_seed: int | None = None
    checks: tuple[str, ...] = ()
    concurrency: int | None = None
    report: Path = Path(".vllm")
    keep: bool = False
    evict_tenants: bool = False
    replay: Path | None = None
    strict: bool = False
    list: bool = False
    plan: bool = False
    defects: tuple[str, ...] = ()
    baseline: Path | None = None
    save_baseline: Path | None = None
    no_worse: bool = False
    against: str | None = None
    against_url: str | None = None
    against_image: str | None = None

    @property
    def compares(self) -> bool:
        """Whether an older server is recorded too, and compared with the one under test."""
        return bool(self.against or self.against_url or self.against_image)

    @property
    def only_looks(self) -> bool:
        """Whether nothing is to be started: what would be done is printed."""
        return self.list or self.plan

    own_tests: str = "report"
    suites: bool = False

    @property
    def wants_server(self) -> bool:
        """Whether this run is about a vLLM server at all."""
        return bool(self.profiles or self.url or self.replay or self.source)


class Adder:
    """Adds options of the group `vllm`, each with its ini twin."""

    def __init__(self, parser: pytest.Parser) -> None:
        """Make the group."""
        self._parser = parser
        self._group = parser.getgroup("vllm", "verify a vLLM deployment (pytest-vllm)")

    def one(self, name: str, text: str, **more: Any) -> None:
        """An option that takes a value."""
        self._add(name, text, "store", "string", more)

    def many(self, name: str, text: str, metavar: str) -> None:
        """An option that may be repeated."""
        self._add(name, f"{text}; repeatable", "append", "args", {"metavar": metavar})

    def flag(self, name: str, text: str) -> None:
        """An option without a value."""
        self._add(name, text, "store_true", "bool", {})

    def _add(self, name: str, text: str, action: str, ini: Any, more: dict[str, Any]) -> None:
        self._group.addoption(
            f"{OPTION}{name}", action=action, dest=_dest(name), default=None, help=text, **more
        )
        self._parser.addini(_dest(name), text, type=ini, default=None)


def add_options(parser: pytest.Parser) -> None:
    """Register the `vllm` option group and the ini twins of its options."""
    add = Adder(parser)
    add.many("profile", "boot and verify this profile: a name or a .toml path", "NAME")
    add.one(
        "url", "verify the server that runs at this URL (or unix:/PATH) and leave it running", metavar="URL"
    )
    add.one("ca-file", "authority to trust beside the system's, of the server's certificate", metavar="FILE")
    add.one("client-cert", "client certificate to show to the server, with its key or not", metavar="FILE")
    add.one("client-key", "key of the client certificate, if it lies in a file of its own", metavar="FILE")
    add.one("proxy", "HTTP proxy for every address, or none; default: http_proxy and its kin", metavar="URL")
    add.one(
        "from",
        "verify the deployment that this file describes (compose, docker run, systemd, Kubernetes, "
        "vllm serve), - for standard input, or container:NAME",
        metavar="FILE",
    )
    add.one("service", "which vLLM server of --vllm-from, where it describes several", metavar="NAME")
    add.flag("preflight", "check the profile by static rules only; nothing is started")
    add.one(
        "api-key-env", "environment variable that holds the API key (default VLLM_API_KEY)", metavar="VAR"
    )
    add.one("launcher", "how to start the server, instead of the profile's launcher", choices=LAUNCHERS)
    add.one("image", "container image to start, instead of the profile's", metavar="REF")
    add.one("model-config", "the model's config.json, where it cannot be found by itself", metavar="FILE")
    add.one(
        "hardware", "hardware file to judge by, or a GPU's name, instead of the profile's", metavar="NAME"
    )
    add.one("tool-parser", "override the profile's --tool-call-parser", metavar="NAME")
    add.one("reasoning-parser", "override --reasoning-parser; `none` serves without one", metavar="NAME")
    add.one(
        "tier",
        "run checks up to this tier (default gate); explore: the gate, then requests drawn at random",
        choices=TIERS,
    )
    add.one(
        "explore-seconds",
        "how long --vllm-tier=explore draws requests, instead of the profile's (default 120)",
        type=_seconds,
        metavar="S",
    )
    add.one("explore-seed", "draw the requests that a run with this seed drew", type=_seed, metavar="N")
    add.many("check", "run only checks with this id or id prefix, or of this suite", "ID")
    help_ = "exchanges recorded at once (default: max-num-seqs, at most 16)"
    add.one("concurrency", help_, type=_positive, metavar="N")
    add.one("report", "folder for runs and reports (default .vllm)", metavar="DIR")
    add.flag("keep", "leave the started server running and say how to stop it")
    add.flag("evict-tenants", "ask other model servers on this machine (Ollama) to unload first")
    add.one("replay", "judge the recordings of this run folder again, without a server", metavar="DIR")
    add.flag("strict", "a SHOULD check that fails or is undecided counts like a MUST check")
    add.flag("list", "list the checks that would run, with level, family and requirement, and stop")
    add.flag("plan", "print what the run would send and how long it would take, and stop")
    add.many("defect", "break the simulator by this named defect", "NAME")
    add.one(
        "baseline", "compare every verdict with this saved baseline, run folder, or last-good", metavar="FILE"
    )
    add.flag("no-worse", "what failed in --vllm-baseline and still fails is reported and does not count")
    add.one("against-url", "compare with the older server that runs at this URL", metavar="URL")
    add.one("against", "compare with the server of this profile, booted too", metavar="NAME")
    add.one("against-image", "compare with this image under the same profile, booted too", metavar="REF")
    add.one("save-baseline", "save this run's verdicts as a baseline", metavar="FILE")
    add.one(
        "own-tests",
        "count: passing tests of your own are a GO without any check; report (default): they are reported",
        choices=OWN_TESTS,
    )
    add.flag("suites", "run the bundled checks beside this project's own tests, where no path is given")


def read_options(config: pytest.Config) -> Options:
    """The options of this run: command line first, then ini."""
    read = _reader(config)
    _one_source(config, read)
    _about_a_server(config, read)
    if read("plan") and not any(read(name) for name in ("profile", "url", "from")):
        raise pytest.UsageError("--vllm-plan needs to know for which server: add --vllm-profile=NAME")
    report = Path(read("report") or ".vllm")
    return Options(
        profiles=tuple(read("profile") or ()),
        url=read("url"),
        source=_source(config, read("from")),
        ca_file=_path(config, read("ca-file")),
        client_cert=_path(config, read("client-cert")),
        client_key=_path(config, read("client-key")),
        proxy=read("proxy"),
        service=read("service"),
        preflight=bool(read("preflight")),
        api_key_env=read("api-key-env") or "VLLM_API_KEY",
        launcher=read("launcher"),
        image=read("image"),
        model_config=_path(config, read("model-config")),
        hardware=read("hardware"),
        tool_parser=read("tool-parser"),
        reasoning_parser=read("reasoning-parser"),
        tier=read("tier") or "gate",
        explore_seconds=read("explore-seconds"),
        explore_seed=read("explore-seed"),
        checks=tuple(read("check") or ()),
        concurrency=read("concurrency"),
        report=report if report.is_absolute() else config.rootpath / report,
        keep=bool(read("keep")),
        evict_tenants=bool(read("evict-tenants")),
        replay=_path(config, read("replay")),
        strict=bool(read("strict")),
        list=bool(read("list")),
        plan=bool(read("plan")),
        defects=tuple(read("defect") or ()),
        baseline=_baseline(config, read("baseline")),
        save_baseline=_path(config, read("save-baseline")),
        no_worse=bool(read("no-worse")),
        against=read("against"),
        against_url=read("against-url"),
        against_image=read("against-image"),
        own_tests=_chosen("own-tests", read("own-tests"), OWN_TESTS),
        suites=bool(read("suites")),
    )


def _one_source(config: pytest.Config, read: Any) -> None:
    """Refuse a replay beside a server: its old answers would be taken for that server's.

    What an ini file says of a server is for runs that ask for nothing else.
    """
    older = [name for name in AGAINST if config.getoption(_dest(name))]
    live = [name for name in ("profile", "url", "from") if config.getoption(_dest(name))] + older
    if live and read("replay"):
        named = " and ".join(f"--vllm-{name}" for name in live)
        raise pytest.UsageError(
            f"--vllm-replay judges recordings, {named} a server: leave one of them out, "
            "or the answers of one would be taken for the other's"
        )
    if older and not any(read(name) for name in ("profile", "url", "from")):
        raise pytest.UsageError(
            f"--vllm-{older[0]} names the older server: name the one under test too, by --vllm-profile=NAME "
            "or --vllm-url=URL"
        )


def _about_a_server(config: pytest.Config, read: Any) -> None:
    """Refuse options that say how a server is judged where no server is named: nothing would run."""
    if any(
        read(name) for name in ("profile", "url", "from", "replay", "list", "plan", "preflight", *AGAINST)
    ):
        return
    for name in ("check", "tier", "defect", "launcher", "image", "baseline", "strict", "no-worse"):
        if config.getoption(_dest(name)):
            raise pytest.UsageError(
                f"--vllm-{name} needs to know of which server: add --vllm-profile=NAME "
                "(try --vllm-profile=sim) or --vllm-url=URL"
            )


def _source(config: pytest.Config, given: str | None) -> str | None:
    """What `--vllm-from` names; for `-` the text on standard input, which pytest keeps from its tests.

    The text takes the option's place: it is read once, and workers are given it.
    """
    if given != "-":
        return given
    from pytest_vllm.profile.importers.origin import ImportProblem, piped  # noqa: PLC0415

    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        config.option.vllm_from = text = piped()
    except ImportProblem as error:
        raise pytest.UsageError(f"--vllm-from={error}") from error
    finally:
        if capture is not None:
            capture.resume_global_capture()
    return text


def _chosen(name: str, given: str | None, known: tuple[str, ...]) -> str:
    """One of the known words, which an ini file may write in quotes; the last one unless given."""
    word = (given or known[-1]).strip("\"'")
    if word not in known:
        raise pytest.UsageError(f"{_dest(name)} = {word!r}: choose from {', '.join(known)}")
    return word


def _path(config: pytest.Config, value: str | None) -> Path | None:
    return config.invocation_params.dir / value if value else None


def _baseline(config: pytest.Config, value: str | None) -> Path | None:
    """A path, or the word for the newest good run of each profile."""
    path = _path(config, value)
    return Path(LAST_GOOD) if value == LAST_GOOD and path is not None and not path.exists() else path


def _reader(config: pytest.Config) -> Any:
    def read(name: str) -> Any:
        given = config.getoption(_dest(name))
        if given is not None:
            return given
        try:
            value = config.getini(_dest(name))
        except (ValueError, pytest.UsageError) as error:  # words of pytest that do not name the key
            raise pytest.UsageError(f"{_dest(name)} in the ini file: {error}; write true or false") from None
        if name in READ and value:
            return READ[name](value)
        return value or None

    return read


def _dest(name: str) -> str:
    return f"vllm_{name.replace('-', '_')}"


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer (for instance 8)")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (for instance 120)")
    return seconds


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number (for instance 4711)")
    return int(text)


#: How options that are numbers are read from an ini file.
READ: dict[str, Callable[[str], float]] = {
    "concurrency": _positive,
    "explore-seconds": _seconds,
    "explore-seed": _seed,
}
