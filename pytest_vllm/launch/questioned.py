"""Runs inside of somebody's vLLM, by `python -c`: whether its own argument parser takes a command line.

Nothing of ours is importable there, so this file imports nothing of ours. One line of JSON is the answer:
`{"version", "refused", "unasked"}`; the words come as a JSON list in the first argument.
"""

# ruff: noqa: BLE001 - of a vLLM that nobody has seen before, anything may go wrong

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import sys
from typing import Any, NoReturn

#: Where releases hold each thing, newest first.
PLACES = {
    "make_arg_parser": ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args"),
    "FlexibleArgumentParser": ("vllm.utils.argparse_utils", "vllm.utils"),
    "validate_parsed_serve_args": ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args"),
    "validate_api_server_args": ("vllm.entrypoints.launchers.launcher", "vllm.entrypoints.openai.api_server"),
}
#: What vLLM raises of arguments that it does not like.
DISLIKES = (argparse.ArgumentTypeError, KeyError, TypeError, ValueError)


class Refused(Exception):  # noqa: N818 - it is no error of ours
    """The parser does not take the words."""


def found(name: str) -> Any:
    """A function or class of vLLM. Raises LookupError when this one holds it nowhere that we know."""
    for place in PLACES[name]:
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(place), name)
    raise LookupError(name)


def asked(words: list[str]) -> dict[str, str]:
    """What this vLLM says."""
    said = {"version": str(importlib.import_module("vllm").__version__), "refused": "", "unasked": ""}
    parser = found("make_arg_parser")(found("FlexibleArgumentParser")(prog="vllm serve"))

    def refuse(message: str) -> NoReturn:
        raise Refused(message)

    parser.error = refuse
    try:
        args = parser.parse_args(words)
        for name in ("validate_parsed_serve_args", "validate_api_server_args"):
            check = None
            with contextlib.suppress(LookupError):
                check = found(name)
            if check is not None:
                check(args)
    except Refused as error:
        said["refused"] = str(error)
    except OSError as error:  # a file that lies on the deployment's own machine
        said["unasked"] = f"{type(error).__name__}: {error}"
    except DISLIKES as error:
        said["refused"] = str(error.args[0] if error.args else error)
    return said


def main() -> None:
    """Answer on stdout; what vLLM prints meanwhile goes nowhere."""
    answer = {"version": "", "refused": "", "unasked": ""}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            answer = asked(json.loads(sys.argv[1]))
        except BaseException as error:
            answer["unasked"] = f"{type(error).__name__}: {error}"
    print("\n" + json.dumps(answer))


if __name__ == "__main__":
    main()
