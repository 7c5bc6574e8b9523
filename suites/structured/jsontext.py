"""JSON that a constraint should have made: whole answers, and answers cut by their token limit."""

from __future__ import annotations

import json
import re
from typing import Any

from jsonschema import Draft202012Validator

_DECODER = json.JSONDecoder()
_LITERALS = ("true", "false", "null")
_BROKEN_STRING = ("Invalid control character", "Invalid \\escape")


def schema_fault(text: str, schema: Any) -> str:
    """Why a whole answer does not fit its schema; empty when it does."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON ({error}): {text[:120]!r}"
    fault = next(iter(Draft202012Validator(schema).iter_errors(value)), None)
    return f"{fault.message[:160]} in {text[:120]!r}" if fault else ""


def cut_fault(text: str) -> str:
    """Why a cut answer can be the beginning of no JSON value; empty when it can."""
    text = text.lstrip()
    if not text:
        return ""
    try:
        _, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        return "" if _goes_on(error.msg, text[error.pos :]) else f"no JSON ({error}): {text[:120]!r}"
    rest = text[end:].strip()
    return f"text behind the JSON value: {text[:120]!r}" if rest and not _number_goes_on(rest) else ""


def _goes_on(fault: str, rest: str) -> bool:
    """Whether a fault only says that the text ended too early."""
    if fault.startswith("Unterminated string"):
        return True
    if fault.startswith(_BROKEN_STRING):
        return fault.startswith("Invalid \\escape") and len(rest) <= 1
    if fault.startswith("Invalid \\uXXXX escape"):
        return re.fullmatch(r"\\?u?[0-9a-fA-F]{0,4}", rest) is not None
    rest = rest.strip()
    return (
        not rest or rest == "-" or any(word.startswith(rest) for word in _LITERALS) or _number_goes_on(rest)
    )


def _number_goes_on(rest: str) -> bool:
    return re.fullmatch(r"\.|[eE][+-]?|\.\d+[eE][+-]?", rest) is not None
