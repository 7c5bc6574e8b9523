"""Speech to text: `/v1/audio/transcriptions` and `/v1/audio/translations`."""

from __future__ import annotations

import json
import math
import zlib
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.audiochunks import AudioChunks
from pytest_vllm.sim.api.generate import Generation, check_alive, check_model
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.api.stream import Stream
from pytest_vllm.sim.check.body import bad_request, validated_as_any
from pytest_vllm.sim.check.sampling import Sampling
from pytest_vllm.sim.errors import ApiError, Invalid
from pytest_vllm.sim.generation import produce
from pytest_vllm.sim.hearing import Sound, hear
from pytest_vllm.sim.http.multipart import Upload, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.generation import Output
    from pytest_vllm.sim.http.server import Call

Body = dict[str, Any]
LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "zh")
#: The largest upload in MiB, unless VLLM_MAX_AUDIO_CLIP_FILESIZE_MB says otherwise.
LARGEST = 25
_STREAMED = ("stream_include_usage", "stream_continuous_usage_stats")


async def transcriptions(server: Server, call: Call) -> Reply | None:
    """What is said in a recording."""
    return await _heard(server, call, "transcribe")


async def translations(server: Server, call: Call) -> Reply | None:
    """The same in English."""
    return await _heard(server, call, "translate")


async def _heard(server: Server, call: Call, task: str) -> Reply | None:
    body, upload = _read(server, call, task)
    request = AudioRequest(server, call, body, upload, task)
    if body.get("stream"):
        await request.stream()
        return None
    return await request.whole()


def _read(server: Server, call: Call, task: str) -> tuple[Body, Upload]:
    form: Body = server.hooks.run("body", dict(fields(call.request)), call.request.path)
    upload = form.get("file")
    if isinstance(upload, str):
        text = "Expected 'file' to be a file-like object, not 'str'."
        raise ApiError(text, 422, "Unprocessable Entity")
    given = next((name for name in _STREAMED if form.get(name)), None)
    if given and not form.get("stream"):
        raise Invalid("Stream options can only be defined when `stream=True`.", given)
    if isinstance(form.get("vllm_xargs"), str):
        try:
            form["vllm_xargs"] = json.loads(form["vllm_xargs"])
        except ValueError as error:
            text = f"Failed to parse vllm_xargs. Must be valid JSON: {error}"
            raise Invalid(text, "vllm_xargs") from None
    if not isinstance(upload, Upload):
        raise bad_request([{"type": "missing", "loc": "body.file", "msg": "Field required", "input": form}])
    name = "TranscriptionRequest" if task == "transcribe" else "TranslationRequest"
    body = validated_as_any(
        (name,), {key: form[key] for key in form if key != "file"}, server.settings.version
    )
    most = int(server.settings.environ.get("VLLM_MAX_AUDIO_CLIP_FILESIZE_MB") or LARGEST)
    size = len(upload.content) / (1 << 20)
    if size > most:
        raise Invalid("Maximum file size exceeded", "audio_filesize_mb", size)
    return body, upload


class AudioRequest:
    """One recording on its way through the server."""

    def __init__(self, server: Server, call: Call, body: Body, upload: Upload, task: str) -> None:
        """Check what is asked for. Raises ApiError."""
        self.server, self.call, self.body, self.task = server, call, body, task
        if body.get("stream") and body.get("use_beam_search"):
            raise ApiError("Streaming is not currently supported with beam search")
        self.model = check_model(server, body)
        check_alive(server)
        self.format = body.get("response_format") or "json"
        self._format()
        self.language = self._language(body.get("language"))
        self.sound: Sound = hear(upload.content)
        given = call.request.headers.get("x-request-id") or server.ids.hex()
        self.id, self.created = f"{task}-{given}", int(server.clock.wall())
        # language, task and timestamps are a token each, as is the beginning
        self.prompt = [1, 2, 1, 2, *server.tokens.encode(body.get("prompt") or "")]
        limit = min(
            server.settings.max_model_len - len(self.prompt), body.get("max_completion_tokens") or 10**9
        )
        wishes = {"temperature": 0.0, **body, "n": 1, "stop": None}
        self.sampling = Sampling.of(wishes, limit, None, server.settings)

    def _format(self) -> None:
        formats = ["text", "json", "verbose_json"]
        newer = self.server.settings.version >= "0.27.0"
        formats += ["diarized_json"] * newer
        if self.format not in formats:
            listed = ", ".join(f"`{name}`" for name in formats[:-1])
            raise ApiError(f"Currently only support response_format: {listed} or `{formats[-1]}`")
        if self.format == "diarized_json":
            raise ApiError(f"Currently do not support diarized_json for {self.model}")
        if self.format == "verbose_json" and self.body.get("stream"):
            raise ApiError("verbose_json format doesn't support streaming case")

    def _language(self, given: str | None) -> str:
        if given and given not in LANGUAGES:
            raise ApiError(f"Unsupported language: {given!r}. Must be one of {list(LANGUAGES)}.")
        return given or "en"

    def _output(self) -> Output:
        def more() -> Iterator[str]:
            while True:
                yield " "

        output = produce(self.sound.words, more, self.sampling, self.server.tokens)
        heard: Output = self.server.hooks.run("output", output, self.body)
        return heard

    async def whole(self) -> Reply | None:
        """The whole answer; None when the client left before it was there."""
        output = self._output()
        generation = Generation(self.server, self.call, [output])
        generation.add(self.id, self.prompt, output, self.sampling, self.body)
        generation.submit(1)
        await generation.finished
        return None if self.call.gone else Reply.json(self._answer(output))

    async def stream(self) -> None:
        """Send the words as they come."""
        output = self._output()
        stream = Stream(self.server, self.call, [], self.body)
        stream.writer = AudioChunks(self, output)
        stream.begin()
        stream.expect([output])
        stream.add(self.id, self.prompt, output, self.sampling, self.body)
        try:
            stream.submit(1)
        except ApiError as error:
            stream.refuse(error)
            return
        await stream.finished

    def _answer(self, output: Output) -> Body:
        text, seconds, version = output.text, self.sound.seconds, self.server.settings.version
        if self.format == "verbose_json":
            return {
                "duration": seconds if version >= "0.27.0" else str(seconds),
                "language": self.language,
                "text": text,
                "segments": [
                    self._segment(number, *part) for number, part in enumerate(self.sound.segments())
                ],
                "words": None,
            }
        if self.task == "translate" or version < "0.10.2":
            return {"text": text}
        return {"text": text, "usage": {"type": "duration", "seconds": math.ceil(seconds)}}

    def _segment(self, number: int, begin: float, end: float, text: str) -> Body:
        raw = text.encode()
        return {
            "id": number,
            "avg_logprob": -0.2,
            "compression_ratio": len(raw) / len(zlib.compress(raw)),
            "end": round(end, 2),
            "no_speech_prob": None,
            "seek": int(begin),
            "start": round(begin, 2),
            "temperature": self.sampling.temperature,
            "text": text,
            "tokens": self.server.tokens.encode(text),
        }
