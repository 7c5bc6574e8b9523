"""What makes a request independent of a server's own sampling defaults."""

from __future__ import annotations

from typing import Any

#: Whatever a server does by default (`--override-generation-config`, the checkpoint's own file): log
#: probabilities are those before penalties, and the likeliest token is drawn only without any.
UNPENALISED: dict[str, Any] = {"repetition_penalty": 1.0, "presence_penalty": 0, "frequency_penalty": 0}
