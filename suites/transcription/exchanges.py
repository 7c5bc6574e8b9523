"""Requests of the transcription suite: tones, in which nobody knows what is heard."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange

from .sounds import heard, wave

#: Seconds of the recordings: of most, and of one that has to be cut into pieces of half a minute.
SHORT, LONG = 4.0, 35.0
#: Bytes beyond what many proxies take unless told otherwise.
LARGE = 1_200_000
#: Words that a client gives for context.
PROMPT = "A talk about the harbour of Bergen."

#: Requests that make no sense, and files that hold no sound.
sound_refusal = cases(
    "sound_refusal",
    [
        {"id": "no-file", "file": None, "set": {}},
        {"id": "language", "file": "sound", "set": {"language": "no-such-language"}},
        {"id": "format", "file": "sound", "set": {"response_format": "no-such-format"}},
        {"id": "model", "file": "sound", "set": {"model": "pytest-vllm-no-such-model"}},
    ],
)
sound_unreadable = cases(
    "sound_unreadable",
    [
        {"id": "words", "file": "This is no recording. " * 20},
        {"id": "cut-head", "file": "RIFF"},
        {"id": "empty", "file": ""},
    ],
)


@exchange("transcription.plain", alone=True)
def transcription_plain(server: Server) -> Request:
    """A short recording."""
    return heard(server, wave(SHORT))


@exchange("transcription.again", alone=True)
def transcription_again(server: Server, transcription_plain: Recording) -> Request:
    """The same again."""
    del transcription_plain
    return heard(server, wave(SHORT))


@exchange("transcription.stream", alone=True)
def transcription_stream(server: Server, transcription_again: Recording) -> Request:
    """The same, streamed."""
    del transcription_again
    return heard(server, wave(SHORT), stream="true", stream_include_usage="true")


@exchange("transcription.large")
def transcription_large(server: Server) -> Request:
    """The short recording in a file of a megabyte and more."""
    return heard(server, wave(SHORT, more=LARGE), expect=None)


@exchange("transcription.text")
def transcription_text(server: Server) -> Request:
    """The same, as plain text."""
    return heard(server, wave(SHORT), response_format="text")


@exchange("transcription.verbose")
def transcription_verbose(server: Server) -> Request:
    """The same with times, which not every model tells."""
    return heard(server, wave(SHORT), response_format="verbose_json", expect=None)


@exchange("transcription.long")
def transcription_long(server: Server) -> Request:
    """A recording longer than a model hears at once, with times."""
    return heard(server, wave(LONG), response_format="verbose_json", expect=None)


@exchange("transcription.long-plain")
def transcription_long_plain(server: Server) -> Request:
    """The same without."""
    return heard(server, wave(LONG))


@exchange("transcription.translated")
def transcription_translated(server: Server) -> Request:
    """A short recording, to be written down in English, which not every model does."""
    return heard(server, wave(SHORT), path="/v1/audio/translations", expect=None)


@exchange("transcription.prompted", alone=True)
def transcription_prompted(server: Server, transcription_again: Recording) -> Request:
    """The short recording with words for context, its language and other wishes that clients send."""
    del transcription_again
    wishes: dict[str, Any] = {"prompt": PROMPT, "language": "en", "temperature": "0", "seed": "7"}
    return heard(server, wave(SHORT), **wishes)


@exchange("transcription.refusal")
def transcription_refusal(server: Server, sound_refusal: Case) -> Request:
    """A request that makes no sense."""
    file = wave(1.5) if sound_refusal["file"] == "sound" else None
    fields: dict[str, Any] = sound_refusal["set"]
    return heard(server, file, expect=None, **fields)


@exchange("transcription.unreadable")
def transcription_unreadable(server: Server, sound_unreadable: Case) -> Request:
    """A file that holds no sound."""
    return heard(server, str(sound_unreadable["file"]).encode(), expect=None)


@exchange("transcription.after")
def transcription_after(
    server: Server, sound_unreadable: Case, transcription_unreadable: Recording
) -> Request:
    """A good one, once that was answered."""
    del sound_unreadable, transcription_unreadable
    return heard(server, wave(1.5))
