"""Requests of the vision suite: chat with one-coloured pictures, made here, of many sizes."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if, picture

QUESTION = "What colour is this picture? Answer with one word."
#: Pixels of the picture that most requests show, and tokens of their answers.
SIDE, TOKENS = 72, 8
#: Tokens of answers that are written at the same time: long enough to be.
LONG = 32
#: Characters of a text that no batch reads at once, those that are too few for it, those kept for a picture;
#: characters of a token.
DEEP, SHORT, RESERVED, EACH = 12_000, 4_000, 3_000, 2.5
#: Bytes beyond what many proxies take unless told otherwise.
LARGE = 1_200_000
#: Characters that a context has to hold for a picture within a long text.
AMID = 6_000
COLOURS = {"red": (255, 0, 0), "green": (0, 160, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0)}

SIZES = ((32, 32), (64, 64), (100, 200), (224, 224), (336, 336), (300, 500), (500, 300), (640, 480))
picture_size = cases("picture_size", [{"id": f"{w}x{h}", "width": w, "height": h} for w, h in SIZES])
picture_lane = cases(
    "picture_lane",
    [{"id": f"{w}x{h}", "width": w, "height": h} for w, h in ((64, 96), (96, 64), (160, 128), (256, 256))],
)
picture_colour = cases("picture_colour", [{"id": name, "colour": name} for name in COLOURS])
#: Pictures that a server may take or refuse: a single pixel, a strip, a line that few processors take; and
#: the side of the good one that is sent then, which no other request shows.
ODD = [
    {"id": "pixel", "width": 1, "height": 1, "then": 65},
    {"id": "strip", "width": 640, "height": 2, "then": 66},
    {"id": "line", "width": 1, "height": 512, "then": 67},
]
picture_odd = cases("picture_odd", ODD)


def shown(
    server: Server, *urls: str, expect: int | None = 200, first: bool = False, **params: Any
) -> Request:
    """The question with pictures after it, or before it (`first`)."""
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    text = {"type": "text", "text": QUESTION}
    content = [*pictures, text] if first else [text, *pictures]
    given: dict[str, Any] = {"max_tokens": TOKENS, **calm(server), **params}
    return server.chat([{"role": "user", "content": content}], expect=expect, **given)


def weighed(server: Server) -> dict[str, Any]:
    """Asks for what else was likely: it tells pictures apart where the words do not."""
    return {"logprobs": True, "top_logprobs": 3} if server.can("logprobs") else {}


def calm(server: Server) -> dict[str, Any]:
    """Asks a model that thinks not to."""
    return {"chat_template_kwargs": {"enable_thinking": False}} if server.can("reasoning") else {}


@exchange("vision.large")
def vision_large(server: Server) -> Request:
    """A picture in a body of a megabyte and more: blanks, which JSON passes over, stand for pixels."""
    made = shown(server, picture(SIDE, SIDE, COLOURS["red"]), max_tokens=1)
    body = f"{{{' ' * LARGE}{json.dumps(made.json)[1:]}"
    return Request("POST", made.path, content=body, headers={"content-type": "application/json"}, expect=None)


@exchange("vision.text")
def vision_text(server: Server) -> Request:
    """The question without a picture, in the same shape."""
    return shown(server)


@exchange("vision.image")
def vision_image(server: Server) -> Request:
    """The question with a grey square."""
    return shown(server, picture(SIDE, SIDE))


@exchange("vision.again")
def vision_again(server: Server, vision_image: Recording) -> Request:
    """The same request again, once it was answered."""
    del vision_image
    return shown(server, picture(SIDE, SIDE))


@exchange("vision.third")
def vision_third(server: Server, vision_again: Recording) -> Request:
    """And a third time."""
    del vision_again
    return shown(server, picture(SIDE, SIDE), **weighed(server))


@exchange("vision.other")
def vision_other(server: Server, vision_third: Recording) -> Request:
    """The same question with another picture of that size, once the first is cached."""
    del vision_third
    return shown(server, picture(SIDE, SIDE, COLOURS["red"]), **weighed(server))


@exchange("vision.before")
def vision_before(server: Server) -> Request:
    """The picture first, then the question."""
    return shown(server, picture(SIDE, SIDE), first=True)


@exchange("vision.behind")
def vision_behind(server: Server) -> Request:
    """A picture behind a text that is read in several steps."""
    room = int((server.max_model_len or 0) * EACH) - RESERVED
    only_if(room > SHORT, f"a context of {server.max_model_len} tokens has no room for such a text")
    words = {"type": "text", "text": ("The harbour lies in the sun. " * DEEP)[: min(DEEP, room)]}
    part = {"type": "image_url", "image_url": {"url": picture(71, 71)}}
    content = [words, part, {"type": "text", "text": QUESTION}]
    return server.chat([{"role": "user", "content": content}], max_tokens=TOKENS, **calm(server))


@exchange("vision.amid")
def vision_amid(server: Server) -> Request:
    """A picture within a text so long that what caches keep ends behind it."""
    return amid(server, "green")


@exchange("vision.amid-other")
def vision_amid_other(server: Server, vision_amid: Recording) -> Request:
    """The same text with another picture of that size, once the first is cached."""
    del vision_amid
    return amid(server, "yellow")


def amid(server: Server, colour: str) -> Request:
    """A question far behind a picture, which stands within a text."""
    only_if((server.max_model_len or 0) * EACH > AMID, "the context has no room for such a text")
    before, behind = ("The harbour lies in the sun. " * number for number in (20, 100))
    part = {"type": "image_url", "image_url": {"url": picture(SIDE, SIDE, COLOURS[colour])}}
    content = [{"type": "text", "text": before}, part, {"type": "text", "text": f"{behind}\n{QUESTION}"}]
    given: dict[str, Any] = {"max_tokens": TOKENS, **calm(server), **weighed(server)}
    return server.chat([{"role": "user", "content": content}], **given)


@exchange("vision.stream")
def vision_stream(server: Server) -> Request:
    """The question with the grey square, streamed."""
    return shown(server, picture(SIDE, SIDE), stream=True, stream_options={"include_usage": True})


@exchange("vision.sized")
def vision_sized(server: Server, picture_size: Case) -> Request:
    """A picture of some size."""
    return shown(server, picture(picture_size["width"], picture_size["height"]))


@exchange("vision.together")
def vision_together(server: Server, picture_lane: Case, vision_third: Recording) -> Request:
    """One of four pictures that are sent at once."""
    del vision_third
    sizes = picture_lane["width"], picture_lane["height"]
    return shown(server, picture(*sizes), max_tokens=LONG, ignore_eos=True)


@exchange("vision.named")
def vision_named(server: Server, picture_colour: Case) -> Request:
    """A picture of one colour, as large as the others."""
    room = 600 if server.can("reasoning") else TOKENS
    url = picture(224, 224, COLOURS[picture_colour["colour"]])
    return shown(server, url, max_tokens=room, **weighed(server))


@exchange("vision.cut")
def vision_cut(server: Server) -> Request:
    """A picture whose second half is missing."""
    head, _, data = picture(224, 224, COLOURS["red"]).partition(",")
    return shown(server, f"{head},{data[: len(data) // 8 * 4]}", expect=None)


@exchange("vision.odd")
def vision_odd(server: Server, picture_odd: Case) -> Request:
    """A picture of a shape that few expect."""
    return shown(server, picture(picture_odd["width"], picture_odd["height"]), expect=None)


@exchange("vision.after-cut")
def vision_after_cut(server: Server, vision_cut: Recording) -> Request:
    """A good picture, once the cut one was answered."""
    del vision_cut
    return shown(server, picture(68, 68))


@exchange("vision.after-odd")
def vision_after_odd(server: Server, picture_odd: Case, vision_odd: Recording) -> Request:
    """A good picture, once an odd one was answered."""
    del vision_odd
    return shown(server, picture(picture_odd["then"], picture_odd["then"]))


@exchange("vision.too-long", anyway=True)
def vision_too_long(server: Server) -> Request:
    """A good picture beside more words than the context holds."""
    words = "sea " * (2 * (server.max_model_len or 8192))
    part = {"type": "image_url", "image_url": {"url": picture(69, 69)}}
    content = [part, {"type": "text", "text": words}]
    return server.chat([{"role": "user", "content": content}], max_tokens=1, expect=None)


@exchange("vision.after-too-long")
def vision_after_too_long(server: Server, vision_too_long: Recording) -> Request:
    """The same picture beside the question, once that was refused."""
    del vision_too_long
    return shown(server, picture(69, 69))


@exchange("vision.several")
def vision_several(server: Server, vision_third: Recording) -> Request:
    """Two pictures in one request: one that was sent before, and a large one that was not."""
    del vision_third
    return shown(server, picture(SIDE, SIDE), picture(640, 448, COLOURS["blue"]))


@exchange("vision.pair")
def vision_pair(server: Server) -> Request:
    """Two pictures of one size; a server may allow one at a time."""
    two = [picture(SIDE, SIDE, COLOURS[name]) for name in ("blue", "red")]
    return shown(server, *two, expect=None, **weighed(server))


@exchange("vision.pair-turned")
def vision_pair_turned(server: Server, vision_pair: Recording) -> Request:
    """The same pictures in the other order."""
    del vision_pair
    two = [picture(SIDE, SIDE, COLOURS[name]) for name in ("red", "blue")]
    return shown(server, *two, expect=None, **weighed(server))


@exchange("vision.tokenized")
def vision_tokenized(server: Server) -> Request:
    """The tokens of a question with a picture, which not every version tells."""
    body = shown(server, picture(70, 70)).json
    return server.post("/tokenize", {"messages": body["messages"]}, expect=None)


@exchange("vision.after-tokenized")
def vision_after_tokenized(server: Server, vision_tokenized: Recording) -> Request:
    """The same question, once its tokens were asked for."""
    del vision_tokenized
    return shown(server, picture(70, 70))


other_route = cases("other_route", [{"id": "responses"}, {"id": "messages"}])


@exchange("vision.pair-over")
def vision_pair_over(server: Server, other_route: Case) -> Request:
    """The question with two pictures over another route, which may take none."""
    only_if(server.can(other_route.id), f"the server has no {other_route.id}")
    urls = [picture(SIDE, SIDE, COLOURS[name]) for name in ("blue", "red")]
    more = {**calm(server), "temperature": 0}
    if other_route.id == "responses":
        parts = [{"type": "input_image", "image_url": url, "detail": "auto"} for url in urls]
        content: list[dict[str, Any]] = [{"type": "input_text", "text": QUESTION}, *parts]
        said = {"input": [{"role": "user", "content": content}], "max_output_tokens": 1, "store": False}
        return server.post("/v1/responses", {**said, **more}, expect=None)
    sources = [{"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]} for url in urls]
    content = [{"type": "text", "text": QUESTION}, *({"type": "image", "source": one} for one in sources)]
    said = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
    return server.post("/v1/messages", {**said, **more}, expect=None)
