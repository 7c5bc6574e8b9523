"""Refusals, in the shape that each vLLM version gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.sim.versions import Version


class ApiError(Exception):
    """A request that is refused with an error object.

    Args:
        message: the sentence.
        status: HTTP status; also the error's `code`.
        kind: the error's `type`.
        param: what it names; None when nothing.
    """

    def __init__(
        self, message: str, status: int = 400, kind: str = "BadRequestError", param: str | None = None
    ) -> None:
        """Keep the parts."""
        super().__init__(message)
        self.message, self.status, self.kind, self.param = message, status, kind, param

    def told(self, version: Version) -> str:
        """The sentence as a version says it."""
        del version
        return self.message


class Invalid(ApiError):  # noqa: N818 - what it says of the value
    """A value that vLLM's own rules refuse; names the parameter and the value behind the sentence."""

    def __init__(self, message: str, param: str | None = None, value: Any = None) -> None:
        """Append `(parameter=…, value=…)` as vLLM does."""
        extras = [f"parameter={param}"] if param is not None else []
        extras += [f"value={value}"] if value is not None else []
        super().__init__(f"{message} ({', '.join(extras)})" if extras else message, param=param)


class Detail(Exception):  # noqa: N818 - a refusal of the web framework, not of vLLM
    """A refusal that the web framework gives: `{"detail": …}`."""

    def __init__(self, status: int, detail: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Keep the parts."""
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def envelope(error: ApiError, version: Version) -> dict[str, Any]:
    """The error object: flat until 0.10.0, wrapped from 0.10.1."""
    info = {"message": error.told(version), "type": error.kind, "param": error.param, "code": error.status}
    if version < "0.10.1":
        return {"object": "error", **info}
    return {"error": info}


def encode(body: Any) -> bytes:
    """JSON as the server writes it: compact, UTF-8; lone surrogates become escapes."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()
