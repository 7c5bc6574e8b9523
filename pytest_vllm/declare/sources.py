"""Where requirements come from: a check's `spec` is `source:anchor`, and a test refuses unknown sources."""

from __future__ import annotations

#: source -> (URL template with {anchor}, date it was read)
SOURCES: dict[str, tuple[str, str]] = {
    "openai": ("https://platform.openai.com/docs/api-reference/{anchor}", "2026-11-27"),
    "vllm": ("https://docs.vllm.ai/en/latest/{anchor}", "2026-11-27"),
    "sse": ("https://html.spec.whatwg.org/multipage/server-sent-events.html#{anchor}", "2026-11-27"),
    "rfc9110": ("https://www.rfc-editor.org/rfc/rfc9110#{anchor}", "2026-11-27"),
    "rfc8259": ("https://www.rfc-editor.org/rfc/rfc8259#{anchor}", "2026-11-27"),
    "jsonschema": ("https://json-schema.org/draft/2020-12/json-schema-validation#{anchor}", "2026-11-27"),
    "prometheus": ("https://prometheus.io/docs/instrumenting/exposition_formats/#{anchor}", "2026-11-27"),
    "anthropic": ("https://docs.anthropic.com/en/api/{anchor}", "2026-11-27"),
    "fault": ("https://github.com/{anchor}", "2026-11-27"),
    "profile": ("profile:{anchor}", "2026-11-27"),
}


def url_of(spec: str) -> str:
    """The page that a spec reference points at. Raises KeyError on an unknown source."""
    source, _, anchor = spec.partition(":")
    return SOURCES[source][0].format(anchor=anchor)
