"""Usage in a stream: when asked for, once, at the end, and right."""

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, listed, need, only_if

from .chunks import chunks, joined, readable, unreadable, usages
from .exchanges import FEW

SPEC = "openai:chat/create#stream_options"
AREA = ("streaming.",)
NEEDS = ("stream",)
RUNNING = "fault:vllm-project/vllm/issues/9028"


def asked(recordings: Recordings) -> list[Recording]:
    """The streams that asked for usage at the end, and only there."""
    options = {r.key: r.request.json.get("stream_options") for r in readable(recordings)}
    found = [r for r in readable(recordings) if options[r.key] == {"include_usage": True}]
    need(found, "no stream asked for usage")
    return found


@check("stream.usage.cached-part", MUST, spec=SPEC, needs=(*NEEDS, "cached-tokens"), exchanges=AREA)
def test_cached_part(vllm_recordings: Recordings) -> None:
    """Cached tokens of a stream are a whole number, a part of its prompt."""
    found = [
        (r.key, usage["prompt_tokens"], usage["prompt_tokens_details"].get("cached_tokens"))
        for r in readable(vllm_recordings)
        for usage in usages(r)
        if isinstance(usage.get("prompt_tokens_details"), dict)
    ]
    need(found, "no stream reported its prompt's tokens")
    wrong = [
        f"{key}: {cached!r} of {whole}"
        for key, whole, cached in found
        if not (isinstance(cached, int) and 0 <= cached <= whole)
    ]

    assert not wrong, listed(wrong)


@check("stream.usage.final-chunk", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_final_chunk(vllm_recordings: Recordings) -> None:
    """Asked for usage, the last chunk is the usage, with no choices."""
    lasts = {r.key: chunks(r)[-1] for r in asked(vllm_recordings) if chunks(r)}
    need(lasts, "no stream held a chunk")
    wrong = [
        f"{key}: choices {last.get('choices')!r:.60}, usage {last.get('usage')!r:.60}"
        for key, last in lasts.items()
        if last.get("choices") != [] or not last.get("usage")
    ]

    assert not wrong, f"the last chunk of {listed(wrong)}"


def forced(server: Server, *bare: Recording) -> bool:
    """Whether every stream gives usage, asked for or not: `--enable-force-include-usage`.

    Of a server that somebody else started only its answers say so.
    """
    if server.flags_known:
        return bool(server.args.get("enable-force-include-usage"))
    return bool(bare) and all(usages(r) for r in bare)


FORCED = "--enable-force-include-usage is set, or every stream gives usage unasked for another reason"


@check(
    "stream.usage.only-once", MUST, spec="fault:vllm-project/vllm/issues/7262", needs=NEEDS, exchanges=AREA
)
def test_only_once(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No chunk before the last carries usage, unless that was asked for."""
    bare = [r for r in readable(vllm_recordings) if r.key.endswith("-bare")]
    only_if(not forced(vllm_server, *bare), FORCED)
    spoken = [r for r in asked(vllm_recordings) if chunks(r)]
    need(spoken, "no stream held a chunk")
    early = {r.key: sum(bool(chunk.get("usage")) for chunk in chunks(r)[:-1]) for r in spoken}
    wrong = [f"{key}: {count} chunks" for key, count in early.items() if count]

    assert not wrong, f"usage before the end in {listed(wrong)}"


@check("stream.usage.not-asked", MUST, spec=SPEC, needs=NEEDS)
def test_not_asked(
    vllm_server: Server, streaming_chat_bare: Recording, streaming_completion_bare: Recording
) -> None:
    """A stream that asks for no usage holds none, and no chunk without choices."""
    bare = (streaming_chat_bare, streaming_completion_bare)
    only_if(not forced(vllm_server, *bare), FORCED)
    need(any(map(chunks, bare)), "the streams held no chunk")
    wrong = [f"{r.key}: usage {usages(r)[-1]}" for r in bare if usages(r)]
    wrong += [f"{r.key}: a chunk without choices" for r in bare if any(not c["choices"] for c in chunks(r))]

    assert not wrong, listed(wrong)


@check("stream.usage.options-empty", MUST, spec="fault:vllm-project/vllm/issues/36379", needs=NEEDS)
def test_options_empty(
    vllm_server: Server, streaming_options_empty: Recording, streaming_completion_bare: Recording
) -> None:
    """Empty stream options ask for no usage."""
    only_if(vllm_server.at_least("0.18.0"), "before 0.18 empty stream options ask for usage")
    only_if(not forced(vllm_server, streaming_completion_bare), FORCED)
    need(chunks(streaming_options_empty), "the stream held no chunk")
    found = usages(streaming_options_empty)

    assert not found, f"usage {found[-1:]}"


@check("stream.usage.options-without-stream", MUST, spec=SPEC, needs=NEEDS)
def test_options_without_stream(streaming_options_without_stream: Recording) -> None:
    """Stream options on a request that does not stream are refused with 400."""
    streaming_options_without_stream.answered()
    status = streaming_options_without_stream.status

    assert status == 400, f"answered with {status}: {streaming_options_without_stream.text[:120]}"


@check("stream.usage.sum", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_sum(vllm_recordings: Recordings) -> None:
    """In every usage of a stream, the total is prompt plus completion."""
    found = [(r.key, usage) for r in readable(vllm_recordings) for usage in usages(r)]
    need(found, "no stream gave usage")
    wrong = [
        f"{key}: {usage}"
        for key, usage in found
        if usage["total_tokens"] != usage["prompt_tokens"] + usage["completion_tokens"]
    ]

    assert not wrong, listed(wrong)


@check("stream.usage.running", MUST, spec=RUNNING, needs=NEEDS, exchanges=(*AREA, "canary.long-stream"))
def test_running(vllm_recordings: Recordings) -> None:
    """A running count has all of the prompt and no more than came in the end."""
    long = [
        one
        for one in vllm_recordings.of("canary.long-stream")
        if one.status == 200 and not any(map(unreadable, one.events))
    ]
    found = {
        one.key: usages(one)
        for one in (*readable(vllm_recordings), *long)
        if (one.request.json.get("stream_options") or {}).get("continuous_usage_stats")
    }
    only_if(any(len(counts) > 1 for counts in found.values()), "no stream gave a running count")
    wrong = [
        f"{key}: {one}, at the end {counts[-1]}"
        for key, counts in found.items()
        for one in counts
        if one["prompt_tokens"] != counts[-1]["prompt_tokens"]
        or one["completion_tokens"] > counts[-1]["completion_tokens"]
    ]
    limits = [(one.key, one.request.json["max_tokens"]) for one in long]
    wrong += [
        f"{key}: {found[key][-1]}, {limit} tokens were asked for"
        for key, limit in limits
        if found.get(key) and found[key][-1]["completion_tokens"] != limit
    ]

    assert not wrong, listed(wrong)


@check("stream.usage.all-choices", MUST, spec=SPEC, needs=NEEDS)
def test_all_choices(streaming_two: Recording, streaming_batch: Recording) -> None:
    """The usage of a stream counts the tokens of all its choices."""
    found = {r.key: usages(r)[-1]["completion_tokens"] for r in (streaming_two, streaming_batch) if usages(r)}
    need(found, "no stream gave usage")
    wrong = [f"{key}: {count}" for key, count in found.items() if count != 2 * FEW]

    assert not wrong, f"two choices of {FEW} tokens each are counted as {listed(wrong)}"


@check("stream.usage.continuous", SHOULD, spec="vllm:serving/openai_compatible_server/", needs=NEEDS)
def test_continuous(streaming_continuous: Recording) -> None:
    """With `continuous_usage_stats`, every chunk carries usage."""
    spoken = chunks(streaming_continuous)
    need(spoken, "the stream held no chunk")
    without = sum(not chunk.get("usage") for chunk in spoken)

    assert not without, f"{without} of {len(spoken)} chunks carry none"


@check("stream.usage.continuous-grows", SHOULD, spec="vllm:serving/openai_compatible_server/", needs=NEEDS)
def test_continuous_grows(streaming_continuous: Recording) -> None:
    """Continuous usage never falls, and ends at the number of tokens."""
    counts = [usage["completion_tokens"] for usage in usages(streaming_continuous)]
    need(len(counts) > 1, "the stream gave usage once at most")
    need(joined(streaming_continuous), "the stream held no text")

    assert counts == sorted(counts), f"completion tokens went {counts}"
    assert counts[-1] == FEW, f"completion tokens end at {counts[-1]}, {FEW} were generated"
