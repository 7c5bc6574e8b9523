"""What every client script shares: its task from standard input, its steps, one JSON object at the end.

A script imports its client only inside its steps, so that a missing or broken package is a line of the
report. Nothing of pytest-vllm is imported: the process belongs to the client.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
import traceback
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters of an error that are kept.
LONG = 600
#: Distributions whose module has another name.
MODULES = {
    "pydantic-ai-slim": "pydantic_ai",
    "llama-index-llms-openai-like": "llama_index.llms.openai_like",
}
NOTHING = "the model says nothing to this, also when it is asked without a client"
PLEASE = "Say one short sentence. [[say:{}]]"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}
ABOUT = "The weather of a city."


class Unjudged(Exception):  # noqa: N818 - a verdict, not an error
    """The model gave nothing to judge: its answer ended before it said anything."""


@dataclass
class Task:
    """What the gate asks of a client.

    Args:
        url: the relay's, without `/v1`.
        key: the relay's token.
        model: the served name.
        steps: names of those to take, in order.
        says: step -> what a scripted model says there, turn by turn (`content`, `calls`); empty otherwise.
        program: where the client's packages of other languages lie.
    """

    url: str
    key: str
    model: str
    steps: list[str]
    says: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    program: str = ""

    @property
    def v1(self) -> str:
        """The base URL as OpenAI's clients want it."""
        return f"{self.url}/v1"

    @property
    def choice(self) -> str:
        """The choice among tools: a scripted model calls by itself, another one must."""
        return "auto" if self.says else "required"

    def ask(self, step: str) -> str:
        """The prompt of a step."""
        return PLEASE.format(step)

    def same(self, step: str, text: object, ended: object = "stop", turn: int = -1) -> None:
        """Whether a text is what the model said; of one that is not scripted, whether it is one at all."""
        if step in self.says:
            said = self.says[step][turn]["content"]
            assert isinstance(text, str), f"the client gives {text!r} for the text {said!r}"
            assert text.strip() == said, f"the client gives {text!r}, the model said {said!r}"
        else:
            if not text and ended in ("length", "max_tokens", "incomplete"):
                raise Unjudged("the answer ended at max_tokens before its text began")
            if not text and self.silent(step):
                raise Unjudged(NOTHING)
            assert isinstance(text, str), f"the client gives {text!r} for a text"
            assert text, "the client gives an empty text"

    def silent(self, step: str) -> bool:
        """Whether the server itself gives no text for the prompt of a step."""
        messages = [{"role": "user", "content": self.ask(step)}]
        body = {"model": self.model, "messages": messages, "max_tokens": 64, "temperature": 0}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        data = json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.v1}/chat/completions", data, headers)  # noqa: S310 - the relay's
        try:
            with urllib.request.urlopen(asked, timeout=100) as answer:  # noqa: S310
                return not json.load(answer)["choices"][0]["message"].get("content")
        except (OSError, ValueError, LookupError):  # then it is not the model that is silent
            return False

    def called(self, step: str, name: object, arguments: object) -> None:
        """Whether a call is the one that the model made; arguments as JSON text or as an object."""
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
        assert name == "weather", f"the client gives a call of {name!r}, weather was offered"
        assert isinstance(given, dict), f"the client gives {arguments!r} for the arguments"
        if step in self.says:
            said = self.says[step][0]["calls"][0]["arguments"]
            assert given == said, f"the client gives the arguments {given}, the model wrote {said}"
        else:
            assert isinstance(given.get("city"), str), f"the arguments {given} are not those of the schema"


def take(package: str, steps: dict[str, Callable[[Task], None]]) -> None:
    """Take the steps that are asked for and print what came of them.

    Args:
        package: the distribution; its module is named alike, with underscores.
        steps: by name.
    """
    task = Task(**json.loads(sys.stdin.read()))
    found: dict[str, Any] = {"version": "", "missing": "", "steps": {}}
    try:
        importlib.import_module(MODULES.get(package, package.replace("-", "_")))
        found["version"] = importlib.metadata.version(package)
    except ImportError as error:
        found["missing"] = f"{package} is not installed for {sys.executable} ({error})"
    except Exception as error:  # noqa: BLE001 - a broken package is a line of the report
        found["missing"] = f"{package} cannot be imported: {type(error).__name__}: {error}"
    if not found["missing"]:
        for name in task.steps:
            found["steps"][name] = taken(steps[name], task)
    print("\n" + json.dumps(found))


def taken(step: Callable[[Task], None], task: Task) -> dict[str, Any]:
    """What came of one step: `passed` is None where nothing could be judged."""
    wall, began, passed, error = time.time(), time.monotonic(), True, ""
    try:
        step(task)
    except Unjudged as why:
        passed, error = None, str(why)
    except Exception as why:  # noqa: BLE001 - whatever the client raises is the finding
        silent = _of_the_model(why) and not task.says and task.silent(step.__name__)
        passed, error = (None, NOTHING) if silent else (False, _said(why))
    return {"passed": passed, "error": error, "began": wall, "seconds": round(time.monotonic() - began, 3)}


def _of_the_model(why: Exception) -> bool:
    """Whether a step failed for what was said, and not for a refusal or a connection."""
    return isinstance(why, AssertionError) or type(why).__name__ == "LengthFinishReasonError"


def _said(why: Exception) -> str:
    """An error in words; that of a client, with its place."""
    if isinstance(why, AssertionError):
        return str(why)[:LONG]
    place = traceback.extract_tb(why.__traceback__)[-1]
    where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
    return f"{type(why).__name__}: {why} ({where})"[:LONG]
