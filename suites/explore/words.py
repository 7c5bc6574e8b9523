# ruff: noqa: RUF001 - the scripts are what this is about
"""What explored prompts are made of: many scripts, odd characters, and headers of many clients."""

from __future__ import annotations

#: By name: words that are joined by spaces.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "latin": ("the", "heron", "stands", "in", "cold", "water", "and", "waits"),
    "accents": ("Über", "naïve", "façade", "Ångström", "šest", "żółw", "Ωmega"),
    "cyrillic": ("цапля", "стоит", "в", "холодной", "воде"),
    "greek": ("ο", "ερωδιός", "στέκεται", "στο", "νερό"),
    "hebrew": ("האנפה", "עומדת", "במים", "קרים"),
    "arabic": ("يقف", "مالك", "الحزين", "في", "الماء"),
    "thai": ("นกกระสา", "ยืน", "อยู่ใน", "น้ำเย็น"),
    "hindi": ("बगुला", "ठंडे", "पानी", "में", "खड़ा"),
    "tamil": ("கொக்கு", "குளிர்ந்த", "நீரில்", "நிற்கிறது"),
    "georgian": ("ყანჩა", "ცივ", "წყალში", "დგას"),
    "korean": ("왜가리가", "차가운", "물에", "서", "있다"),
    "chinese": ("苍鹭", "站在", "冷水", "中"),
    "japanese": ("サギは", "冷たい", "水の", "中に", "立つ"),
    "emoji": ("🐦", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🫠"),
    "combining": ("e\u0301te\u0301", "n\u0303o", "a\u030a\u0323"),
    "directions": ("\u202babc\u202c", "\u200fxy", "\u200bz", "a\u2060b"),
    "mathematics": ("∑ᵢ", "x²", "≤", "∂y/∂x", "𝔸", "√2"),
    "code": ("def f(x):\n\treturn", "x['a']", "{ }", "// no", "&amp;", "%s", "\\n"),
    "json": ('{"a":', '[1, "b"]', "null", "\\u00e9", '"', "}"),
    "markdown": ("# Title\n\n", "* one\n", "`x`", "| a | b |\n", "---\n"),
    "spaces": ("a  b", "\t", "c\n\n\nd", " e "),
    "numbers": ("0", "-1", "3.14159", "1e10", "007", "1,000,000"),
    "urls": ("https://example.org/a?b=c&d=%20", "user@example.org", "C:\\temp"),
}
HEADERS: dict[str, dict[str, str]] = {
    "plain": {},
    "openai": {"X-Stainless-Lang": "python", "X-Stainless-Retry-Count": "0", "User-Agent": "OpenAI/Python 2"},
    "anthropic": {"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "tools-2024-05-16"},
    "trace": {"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
    "baggage": {"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "Baggage": "a=b"},
    "proxy": {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https", "Via": "1.1 gate"},
    "browser": {"Accept-Language": "de;q=0.9", "Cookie": "session=none", "Cache-Control": "no-cache"},
    "named": {"X-Request-Id": "pytest-vllm-explored"},
    "long": {"X-Context": "x" * 2000},
}


def text(script: str, words: int, begin: int = 0) -> str:
    """So many words of a script."""
    known = SCRIPTS[script]
    return " ".join(known[(begin + at) % len(known)] for at in range(words))
