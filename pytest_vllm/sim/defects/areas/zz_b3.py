"""Blind round 3."""
from __future__ import annotations
import time, json, re
from itertools import count
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, remembering, only as _only
BOTH = (CHAT, COMPLETIONS)
ALL = (CHAT, COMPLETIONS, MESSAGES, RESPONSES)
def guard(fn):
    if hasattr(fn, "fresh"): return fn
    def inner(v, *c):
        try: return fn(v, *c)
        except Exception: return v
    return inner
def only(paths, fn): return _only(paths, guard(fn))
def b(name, summary, on, **f): add("b3." + name, summary, on, area="chat", **f)
def q(e): return e.body if isinstance(e.body, dict) else {}
# bodies
def sysdrop(v, p):
    if v.get("tools") and len(v["messages"]) > 1: v = {**v, "messages": [m for m in v["messages"] if m.get("role") != "system"]}
    return v
b("system-lost-with-tools", "x", {"body": only((CHAT,), sysdrop)})
def mct(v, p):
    if "max_completion_tokens" in v and isinstance(v["max_completion_tokens"], int): v = {k: x for k, x in v.items() if k != "max_completion_tokens"}
    return v
b("max-completion-tokens-ignored", "x", {"body": only((CHAT,), mct)})
def firstof(field):
    def f(v, p):
        x = v.get(field)
        if isinstance(x, list) and len(x) > 1: v = {**v, field: x[:1]}
        if isinstance(x, dict) and len(x) > 1: v = {**v, field: dict([next(iter(x.items()))])}
        return v
    return f
b("only-first-bad-word", "x", {"body": only(BOTH, firstof("bad_words"))})
b("only-first-stop-id", "x", {"body": only(BOTH, firstof("stop_token_ids"))})
b("only-first-bias", "x", {"body": only(BOTH, firstof("logit_bias"))})
def seedless(v, p):
    if v.get("stream") and "seed" in v: v = {k: x for k, x in v.items() if k != "seed"}
    return v
b("seed-ignored-in-chat-streams", "x", {"body": only((CHAT,), seedless)})
def mint(v, p):
    return {k: x for k, x in v.items() if k != "min_tokens"} if v.get("min_tokens") and v["min_tokens"] < (v.get("max_tokens") or 99) else v
b("min-tokens-ignored-in-chat", "x", {"body": only((CHAT,), mint)})
def _late():
    c = count(1)
    def f(s, e): return s + (2.0 if next(c) % 9 == 0 else 0.0)
    return f
b("each-ninth-late", "x", {"late": only(BOTH, remembering(_late))})
def trunc(v, p):
    x = v.get("truncate_prompt_tokens")
    return {**v, "truncate_prompt_tokens": x + 1} if isinstance(x, int) and x > 0 else v
b("truncation-one-more", "x", {"body": only(BOTH, trunc)})
# rewrites
def dup(events, e):
    if (q(e).get("n") or 1) > 1:
        last = [c for _, c in choices(events) if text_of(c)][-1]; set_text(last, text_of(last) * 2)
    return events
b("last-piece-twice-of-several", "x", {"events": only(BOTH, dup)})
def nostop(body, e):
    for c in body.get("choices") or ():
        if isinstance(c.get("stop_reason"), str): c["stop_reason"] = None
    return body
b("stop-reason-untold", "x", {"json": only(BOTH, nostop)})
def ptid(body, e):
    for h in (body, *(body.get("choices") or ())):
        if h.get("prompt_token_ids"): h["prompt_token_ids"] = h["prompt_token_ids"][1:]
    return body
b("prompt-ids-lack-first", "x", {"json": only(BOTH, ptid)})
def dupid(events, e):
    for _, c in choices(events):
        if c.get("token_ids") and c.get("finish_reason"): c["token_ids"] = c["token_ids"] + c["token_ids"][-1:]
    return events
b("last-id-twice", "x", {"events": only(BOTH, dupid)})
def wrongseq(body, e):
    s = q(e).get("stop_sequences") or []
    if body.get("stop_sequence") and s: body["stop_sequence"] = s[0] if body["stop_sequence"] != s[0] else "zz"
    return body
b("other-stop-sequence", "x", {"json": only((MESSAGES,), wrongseq)})
def name2(events, e):
    names = {}
    for _, c in choices(events):
        for call in (c.get("delta") or {}).get("tool_calls") or ():
            f = call.setdefault("function", {})
            if f.get("name"): names[call["index"]] = f["name"]
            elif call["index"] in names: f["name"] = names[call["index"]]
    return events
b("name-in-each-delta", "x", {"events": only((CHAT,), name2)})
def rev(body, e):
    d = body.get("data") or []
    if len(d) > 20:
        vs = [r["embedding"] for r in d][::-1]
        for r, v in zip(d, vs): r["embedding"] = v
    return body
b("many-embeddings-reversed", "x", {"json": only(("/v1/embeddings",), rev)}, profile="sim-embed")
b("running-stuck", "x", {"metrics": lambda t, e: re.sub(r"(?m)^(vllm:num_requests_running\S*) \S+$", r"\1 0.0", t)})
b("prompt-histogram-doubled", "x", {"metrics": lambda t, e: re.sub(r"(?m)^(vllm:request_prompt_tokens_sum\S*) (\S+)$", lambda m: f"{m[1]} {float(m[2]) * 2}", t)})
b("first-token-histogram-stuck", "x", {"metrics": lambda t, e: re.sub(r"(?m)^(vllm:time_to_first_token_seconds_(?:count|sum|bucket)\S*) (\S+)$", r"\1 1.0", t)})
def notfound(reply, e):
    if reply.status == 404 and b"does not exist" in reply.body: reply.status = 400
    return reply
b("unknown-model-400", "x", {"reply": only(ALL, notfound)})
def fin2(events, e):
    n = q(e).get("n") or 1
    if n > 2:
        for _, c in choices(events):
            if c.get("index") == n - 1: c["finish_reason"] = None
    return events
b("last-streamed-choice-unfinished", "x", {"events": only(BOTH, fin2)})
def cached0(body, e):
    u = body.get("usage") or {}
    if u.get("prompt_tokens_details"): u["prompt_tokens_details"]["cached_tokens"] = 0
    return body
b("whole-chat-cached-untold", "x", {"json": only((CHAT,), cached0)})
def ttft(events, e):
    if len(events) > 6:
        for ev in events[:4]: ev.when = events[4].when + 1.0
        for ev in events[4:]: ev.when += 1.0
    return events
b("first-pieces-held-a-second", "x", {"events": only(BOTH, ttft)})
def lastchar(events, e):
    if q(e).get("structured_outputs"):
        last = [c for _, c in choices(events) if text_of(c)][-1]; set_text(last, text_of(last)[:-1])
    return events
b("bound-stream-short", "x", {"events": only((COMPLETIONS,), lastchar)})
def itemtext(body, e):
    for it in body.get("output") or ():
        for p in it.get("content") or ():
            if p.get("type") == "output_text" and len(p["text"]) > 30: p["text"] = p["text"][:-1]
    return body
b("long-response-loses-a-letter", "x", {"json": only((RESPONSES,), itemtext)})
def ident(body, e):
    if "id" in body and q(e).get("logprobs"): body["id"] = "cmpl-constant"
    return body
b("id-constant-when-scored", "x", {"json": only(BOTH, ident)})
