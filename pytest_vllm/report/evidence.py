"""The evidence behind one result, ready to be shown: redacted, cut, the same for every format."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.decide.causes import named_at
from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.declare.sources import url_of
from pytest_vllm.report.excerpt import Line, excerpt, is_stream
from pytest_vllm.report.outline import outline
from pytest_vllm.report.text import clip, printable
from pytest_vllm.wire.redact import HIDDEN
from pytest_vllm.wire.sse import read_stream
from pytest_vllm.wire.store import SUFFIX, file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.report.record import ServerRun
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.redact import Redactor

EXCHANGES_SHOWN, LOG_LINES_SHOWN = 3, 4
BODY_COLUMNS, LOG_COLUMNS = 400, 300
#: Seconds that a log line may arrive after the exchange it belongs to: the log is read in steps.
LOG_LAG = 0.5

#: Verdicts that owe the reader evidence.
ACCOUNTABLE = frozenset({Verdict.FAIL, Verdict.UNDECIDED, Verdict.ADVISORY, Verdict.WAIVED})

_LOUD = re.compile(r"\b(WARNING|ERROR|CRITICAL|FATAL|Traceback|\w+(Error|Exception)\b)")


@dataclass(frozen=True)
class Exhibit:
    """One exchange as evidence.

    Args:
        key: the recording's key.
        file: the recording's file, relative to the run folder; empty when there is none.
        request: method and path.
        headers: request headers worth showing, credentials hidden.
        body: the request body on one line, cut; empty when there is none.
        status: HTTP status; None when no response came, or nothing was recorded.
        content_type: of the response.
        events: how many events the stream held; None when the response is not a stream.
        size: bytes of the response body.
        seconds: from sending to the last byte.
        error: why there is no (complete) response.
        lines: the excerpt of the response.
    """

    key: str
    file: str = ""
    request: str = ""
    headers: tuple[str, ...] = ()
    body: str = ""
    status: int | None = None
    content_type: str = ""
    events: int | None = None
    size: int = 0
    seconds: float = 0.0
    error: str = ""
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What a person needs to act on a result.

    Args:
        keys: the exchanges that are shown, at most three.
        exhibits: what is shown of them.
        left_out: how many more there are.
        log: server log lines of that time window, warnings and errors first.
        log_total: how many lines the window held.
        log_file: where the whole log lies.
        spec_url: the page of the requirement.
        rerun: the command that runs this check alone.
        script: the curl script, relative to the run folder.
    """

    keys: tuple[str, ...]
    exhibits: tuple[Exhibit, ...]
    left_out: int
    log: tuple[str, ...]
    log_total: int
    log_file: str
    spec_url: str
    rerun: str
    script: str


def evidence_of(result: Result, run: ServerRun, redactor: Redactor) -> Evidence:
    """The evidence behind a result."""
    keys = _keys_shown(result, run)
    recordings = [run.recordings[key] for key in result.exchanges if key in run.recordings]
    log = _log_window(run, recordings)
    loud_first = sorted(log, key=lambda line: not _LOUD.search(line))
    return Evidence(
        keys=tuple(keys),
        exhibits=tuple(_exhibit(key, result.reason, run, redactor) for key in keys),
        left_out=len(result.exchanges) - len(keys),
        log=tuple(clip(printable(redactor.text(line)), LOG_COLUMNS) for line in loud_first[:LOG_LINES_SHOWN]),
        log_total=len(log),
        log_file=redactor.text(run.log_file),
        spec_url=spec_url(result.spec),
        rerun=redactor.text(rerun(result, run)),
        script=script_file(redactor.text(result.check)) if recordings else "",
    )


def spec_url(spec: str) -> str:
    """The page of a spec reference; empty when it has none."""
    try:
        url = url_of(spec)
    except KeyError:
        return ""
    return "" if url == spec else url


def rerun(result: Result, run: ServerRun) -> str:
    """The command that runs one check alone, against this server or one booted like it."""
    where = f" {shlex.quote(result.file)}" if result.file else ""
    return f"pytest {run.selection}{where} --vllm-check={shlex.quote(result.check)}"


def script_file(check: str) -> str:
    """Where the curl script of a check lies: `checks/ID.sh` in the run folder."""
    return f"checks/{file_name(check).removesuffix(SUFFIX)}.sh"


def body_text(request: Request) -> str:
    """The request body on one line, long parts cut; empty when there is none."""
    if request.content is not None:
        return printable(request.content)
    return "" if request.json is None else outline(request.json)


def _keys_shown(result: Result, run: ServerRun) -> list[str]:
    """At most three keys: as the reason names them, then those not answered as expected, then the first."""

    def rank(key: str) -> tuple[int, int]:
        recording = run.recordings.get(key)
        if (at := named_at(result.reason, key)) >= 0:
            return 0, at
        if recording is None or recording.request.expect not in (None, recording.status):
            return 1, 0
        return 2, 0

    chosen = sorted(result.exchanges, key=rank)[:EXCHANGES_SHOWN]
    return [key for key in result.exchanges if key in chosen]


def _log_window(run: ServerRun, recordings: Sequence[Recording]) -> list[str]:
    windows = [(one.sent, one.sent + one.seconds + LOG_LAG) for one in recordings]
    return [line for at, line in run.log if line.strip() and any(a <= at <= b for a, b in windows)]


def _exhibit(key: str, reason: str, run: ServerRun, redactor: Redactor) -> Exhibit:
    recording = run.recordings.get(key)
    if recording is None:
        return Exhibit(redactor.text(key), error="this exchange was not recorded")
    file = redactor.text(run.files.get(key, ""))
    return exhibit_of(
        recording, reason, redactor, file=file, headers=_headers(redactor.request(recording.request), run)
    )


def exhibit_of(
    recording: Recording,
    reason: str,
    redactor: Redactor,
    *,
    file: str = "",
    headers: tuple[str, ...] = (),
) -> Exhibit:
    """An exchange as evidence, redacted and cut.

    Args:
        recording: the exchange.
        reason: what is said of it: the excerpt shows what it names.
        redactor: takes secrets out.
        file: the recording's file, relative to the run folder.
        headers: request headers worth showing.
    """
    recording = redactor.recording(recording)
    request = recording.request
    stream = is_stream(recording)
    return Exhibit(
        key=recording.key,
        file=file,
        request=printable(f"{request.method} {request.path}"),
        headers=headers,
        body=clip(body_text(request), BODY_COLUMNS),
        status=recording.status,
        content_type=printable(recording.header("content-type")),
        events=len(read_stream(list(recording.chunks))[0]) if stream else None,
        size=len(recording.body),
        seconds=recording.seconds,
        error=printable(recording.error),
        lines=excerpt(recording, redactor.text(reason), redactor),
    )


def _headers(request: Request, run: ServerRun) -> tuple[str, ...]:
    sent = [printable(f"{name}: {value}") for name, value in request.headers.items() if value is not None]
    if run.server.api_key and "authorization" not in {name.lower() for name in request.headers}:
        sent.insert(0, f"Authorization: Bearer {HIDDEN}")
    return tuple(sent)
