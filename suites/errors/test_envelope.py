"""The body of a refusal: a shape that clients can read, words that a person can act on, no secrets."""

import re

from pytest_vllm import MUST, SHOULD, Recordings, Server, check, listed, need

from .bodies import OPENAI_SHAPED, error_of, refusals, value_of

SPEC = "openai:error-codes"
AREA = ("errors.bad",)
KEYS = {"message", "type", "param", "code"}
INTERNALS = re.compile(
    r"Traceback \(most recent|File \"[^\"]+\", line \d+|site-packages"
    r"|(?<![\w:/.])/(?:home|usr|opt|root|tmp|var|srv|workspace|vllm-workspace)/[\w./-]+|\b0x[0-9a-f]{6,}"
)


@check("errors.envelope.json", MUST, spec=SPEC, exchanges=AREA, needs=["chat"])
def test_json(vllm_recordings: Recordings) -> None:
    """Every refusal is a JSON object and says so in its content type."""
    refused = refusals(vllm_recordings)
    need(refused, "nothing was refused")
    wrong = [
        f"{r.key}: {r.header('content-type')!r}" for r in refused if "/json" not in r.header("content-type")
    ]
    wrong += [f"{r.key}: {r.text[:60]!r}" for r in refused if not isinstance(value_of(r), dict)]

    assert not wrong, listed(wrong)


@check("errors.envelope.keys", MUST, spec=SPEC, exchanges=AREA, needs=["chat"])
def test_keys(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every refusal holds an error with `message`, `type`, `param` and `code`."""
    values = {r.key: value_of(r) for r in refusals(vllm_recordings)}
    objects = {key: value for key, value in values.items() if isinstance(value, dict)}
    need(objects, "no refusal is a JSON object")
    nested = vllm_server.at_least("0.10.1")
    errors = {key: value.get("error") if nested else value for key, value in objects.items()}
    wrong = [
        f"{key}: {sorted(error) if isinstance(error, dict) else error!r}"
        for key, error in errors.items()
        if not isinstance(error, dict) or not error.keys() >= KEYS
    ]

    assert not wrong, listed(wrong)


@check("errors.envelope.code", MUST, spec=SPEC, exchanges=AREA, needs=["chat"])
def test_code(vllm_recordings: Recordings) -> None:
    """The `code` of an error is the HTTP status."""
    errors = [(r, error_of(r)) for r in refusals(vllm_recordings)]
    coded = [(r, error["code"]) for r, error in errors if "code" in error]
    need(coded, "no refusal has a code")
    wrong = [
        f"{r.key}: code {code!r} under HTTP {r.status}" for r, code in coded if str(code) != str(r.status)
    ]

    assert not wrong, listed(wrong)


@check("errors.envelope.words", MUST, spec=SPEC, exchanges=AREA, needs=["chat"])
def test_words(vllm_recordings: Recordings) -> None:
    """The `message` and the `type` of an error are words."""
    errors = {r.key: error_of(r) for r in refusals(vllm_recordings)}
    need(any(errors.values()), "no refusal has an error object")
    wrong = [
        f"{key}: {name} is {error.get(name)!r}"
        for key, error in errors.items()
        for name in ("message", "type")
        if name in error and not (isinstance(error[name], str) and error[name].strip())
    ]

    assert not wrong, listed(wrong)


def named(name: str, text: str) -> bool:
    """Whether the text has the name as a word of its own."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}s?(?![A-Za-z0-9_])", text) is not None


@check("errors.names-culprit", MUST, spec=SPEC, exchanges=AREA, needs=["chat"])
def test_names_culprit(vllm_recordings: Recordings) -> None:
    """A refusal names the parameter that broke the rule, in `message` or `param`."""
    errors = [(r, OPENAI_SHAPED[r.key].get("names", ""), error_of(r)) for r in refusals(vllm_recordings)]
    judged = [
        (r, name, f"{error.get('param')} {error.get('message')}")
        for r, name, error in errors
        if name and error
    ]
    need(judged, "no refusal has an error object")
    wrong = [
        f"{r.key} does not name {name!r}: {text[:90]!r}" for r, name, text in judged if not named(name, text)
    ]

    assert not wrong, listed(wrong)


@check("errors.param", SHOULD, spec=SPEC, exchanges=AREA, needs=["chat"])
def test_param(vllm_recordings: Recordings) -> None:
    """The `param` of an error holds the name of the parameter that broke the rule."""
    errors = [(r, OPENAI_SHAPED[r.key].get("names", ""), error_of(r)) for r in refusals(vllm_recordings)]
    judged = [
        (r, name, str(error.get("param"))) for r, name, error in errors if name in (r.request.json or {})
    ]
    need(judged, "no refusal of a named parameter")
    wrong = [
        f"{r.key}: param is {param!r}"
        for r, name, param in judged
        if not named(name, param.replace(".", " "))
    ]

    assert not wrong, f"{len(wrong)} of {len(judged)} refusals: {listed(wrong)}"


@check("errors.no-internals", MUST, spec="fault:advisories/GHSA-hgg8-fqqc-vfmw", exchanges=("errors.",))
def test_no_internals(vllm_recordings: Recordings) -> None:
    """No refusal shows a file path, a traceback or a memory address of the server."""
    refused = [r for r in vllm_recordings.of("errors.") if (r.status or 0) >= 400]
    need(refused, "nothing was refused")
    shown = {r.key: INTERNALS.search(r.text.replace('\\"', '"')) for r in refused}
    wrong = [f"{key} shows {found[0][:80]!r}" for key, found in shown.items() if found]

    assert not wrong, listed(wrong)


@check("errors.no-echo", SHOULD, spec=SPEC, exchanges=("errors.",))
def test_no_echo(vllm_recordings: Recordings) -> None:
    """A refusal does not repeat a long input: it stays under 8 KiB."""
    refused = [r for r in vllm_recordings.of("errors.") if (r.status or 0) >= 400]
    need(refused, "nothing was refused")
    wrong = [f"{r.key}: {len(r.body)} bytes" for r in refused if len(r.body) > 8192]

    assert not wrong, listed(wrong)
