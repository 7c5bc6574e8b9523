"""What differs in the fields of answers, in the order of events and in the outcome of requests.

What a model says decides which of its fields an answer has, so a field counts as gone only where it was in
every answer, or in many, and its parent is still there.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.difference import Difference, Weight
from pytest_vllm.report.compare.extract import UNASKED, ungrouped
from pytest_vllm.report.compare.fields import DONE, FieldSeen, fields_of, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Answers in which a field that is not in every one was, for its absence to say anything.
MANY = 5
#: How alike two names are that are one field renamed.
ALIKE = 0.5
#: Words that tell one kind of object from another: clients choose by them.
TAGS = frozenset({"object", "type", "role"})
REFUSED = "4"

#: The answer that lists the routes, and the fields of it that do.
DOCUMENT, PATHS = "GET /openapi.json", ".paths./"


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Every difference between two `observed` parts. One that several kinds of answers share is told once."""
    kinds, others = before["kinds"], after["kinds"]
    yield from _requests(before, after)
    shared: dict[tuple[Any, ...], list[str]] = {}
    routes = bool(before["routes"] and after["routes"])
    for kind in sorted(kinds.keys() & others.keys()):
        one, other = fields_of(kinds[kind]), fields_of(others[kind])
        if routes and kind == DOCUMENT:  # what is gone of them is reported as a route
            one, other = (
                {path: seen for path, seen in each.items() if not path.startswith(PATHS)}
                for each in (one, other)
            )
        for found in [
            *_fields(one, other),
            *_media(kinds[kind], others[kind]),
            *_order(kinds[kind], others[kind]),
        ]:
            shared.setdefault(found, []).append(kind)
    for (weight, area, what, was, now, means), where in shared.items():
        yield Difference(weight, area, f"{what} of {_listed(where)}", was, now, means)
    events = {kind for kind in kinds.keys() - others.keys() if " event " in kind}
    for kind in sorted(events):
        if kinds[kind]["n"] >= MANY and kind.partition(" event ")[0] in others:
            means = "clients that wait for this event wait for ever"
            yield Difference(Weight.BREAKS, "events", kind, f"in {kinds[kind]['n']} answers", "", means)
    for kind in sorted(kind for kind in others.keys() - kinds.keys() if " event " in kind):
        if kind.partition(" event ")[0] in kinds:
            yield Difference(Weight.INFO, "events", kind, "", f"in {others[kind]['n']} answers")


Found = tuple[Weight, str, str, str, str, str]


def _fields(before: Mapping[str, FieldSeen], after: Mapping[str, FieldSeen]) -> Iterator[Found]:
    gone = [path for path in before if path not in after and _tells(path, before, after)]
    fresh = [path for path in after if path not in before and split(path)[0] in before]
    for path in list(gone):
        twin = _twin(path, before[path], {name: after[name] for name in fresh})
        if twin:
            gone.remove(path)
            fresh.remove(twin)
            means = f"clients that read {_leaf(path)!r} get nothing; the new name is {_leaf(twin)!r}"
            yield (
                Weight.BREAKS,
                "fields",
                f"{_leaf(path)!r} became {_leaf(twin)!r}, a field",
                path,
                twin,
                means,
            )
    for path in gone:
        if not _below(path, gone):
            means = f"clients that read {_leaf(path)!r} get nothing"
            yield Weight.BREAKS, "fields", f"field {path}", _often(path, before), "", means
    for path in fresh:
        if not _below(path, fresh) and not path.endswith("[]"):
            means = "clients that refuse unknown fields fail on it; others do not see it"
            yield Weight.INFO, "fields", f"field {path}", "", "/".join(sorted(after[path].types)), means
    for path in before.keys() & after.keys():
        yield from _same(path, before[path], after[path])


def _same(path: str, was: FieldSeen, now: FieldSeen) -> Iterator[Found]:
    """What became of a field that both have."""
    types, others = "/".join(sorted(was.types)), "/".join(sorted(now.types))
    if was.filled >= MANY and now.n >= MANY and not now.filled and was.filled * 2 > was.n:
        means = f"clients that read {_leaf(path)!r} find it empty"
        yield (
            Weight.BREAKS,
            "fields",
            f"field {path}",
            f"held something in {was.filled} of {was.n} answers",
            "is always empty",
            means,
        )
    elif was.kinds and now.kinds and not was.kinds & now.kinds:
        means = f"clients of typed languages fail to read {_leaf(path)!r}"
        yield Weight.BREAKS, "fields", f"type of {path}", types, others, means
    elif now.kinds - was.kinds and was.kinds and was.filled >= MANY:
        means = "clients meet a type that they have not met there"
        yield (
            Weight.BEHAVIOUR if now.filled >= MANY else Weight.INFO,
            "fields",
            f"type of {path}",
            types,
            others,
            means,
        )
    if was.words and now.words and not was.words & now.words:
        weight = Weight.BREAKS if _leaf(path) in TAGS else Weight.BEHAVIOUR
        means = f"clients that choose by {_leaf(path)!r} take another way"
        if (was.n >= 2 and now.n >= 2) or _leaf(path) in TAGS:
            yield weight, "fields", f"value of {path}", _words(was.words), _words(now.words), means
    often = was.n >= MANY and now.n >= MANY and 0 < now.filled < now.n / 2
    if often and "null" in now.types and "null" not in was.types:
        means = f"clients that expect a value in {_leaf(path)!r} meet null"
        yield Weight.BEHAVIOUR, "fields", f"null in {path}", types, others, means


def _tells(path: str, before: Mapping[str, FieldSeen], after: Mapping[str, FieldSeen]) -> bool:
    """Whether the absence of a field is the server's doing, and not what the model happened to say."""
    parent, leaf = split(path)
    if leaf == "[]" or parent not in after:
        return False
    every = before[path].n == before[parent].n if parent in before else False
    return every or before[path].n >= MANY


def _twin(path: str, was: FieldSeen, fresh: Mapping[str, FieldSeen]) -> str:
    """The new name of a field that is gone: beside it, of the same types, and like it; empty without one."""
    parent, leaf = split(path)
    beside = [
        name
        for name, now in fresh.items()
        if split(name)[0] == parent
        and was.kinds & now.kinds
        and difflib.SequenceMatcher(None, leaf, split(name)[1]).ratio() >= ALIKE
    ]
    return max(
        beside, key=lambda name: difflib.SequenceMatcher(None, leaf, split(name)[1]).ratio(), default=""
    )


def _below(path: str, others: Iterable[str]) -> bool:
    return any(path.startswith((f"{other}.", f"{other}[")) for other in others if other != path)


def _leaf(path: str) -> str:
    return path.removesuffix("[]").rpartition(".")[2]


def _often(path: str, fields: Mapping[str, FieldSeen]) -> str:
    parent = fields.get(split(path)[0])
    return f"in {fields[path].n} of {parent.n} answers" if parent else f"in {fields[path].n} answers"


def _words(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "nothing"


def _media(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Found]:
    was, now = set(before.get("media", ())), set(after.get("media", ()))
    if was and now and not was & now:
        means = "clients that go by the media type cannot read the answer"
        yield Weight.BREAKS, "headers", "content-type", _words(was), _words(now), means


def _order(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Found]:
    """Kinds of events that always came in one order and now come in the other; the last event."""
    was, now = _pairs(before.get("orders", {})), _pairs(after.get("orders", {}))
    for one, other in sorted(was):
        if (other, one) in now and (other, one) not in was and (one, other) not in now and one != DONE:
            means = "clients that build the answer in the order of its events build another"
            yield (
                Weight.BEHAVIOUR,
                "events",
                "order of events",
                f"{one} before {other}",
                f"{other} before {one}",
                means,
            )
    ends = [{order.split()[-1] for order in kind.get("orders", {}) if order} for kind in (before, after)]
    if ends[0] and ends[1] and DONE in ends[0] and DONE not in ends[1]:
        means = "clients that wait for [DONE] wait until the connection ends"
        yield Weight.BREAKS, "events", "[DONE]", "ends every stream", "never comes", means


def _pairs(orders: Mapping[str, int]) -> set[tuple[str, str]]:
    """(a, b) for every a that came before b."""
    found = set()
    for order in orders:
        events = order.split()
        found |= {(one, other) for place, one in enumerate(events) for other in events[place + 1 :]}
    return found


def _requests(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Requests whose outcome is another one; those that changed alike are told once."""
    then, now = dict(ungrouped(before["statuses"])), dict(ungrouped(after["statuses"]))
    known = set(before["recorded"]) & set(after["recorded"])
    alike: dict[tuple[str, str], list[str]] = {}
    for key in sorted(then.keys() | now.keys()):
        pair = then.get(key, "200"), now.get(key, "200")
        if pair[0] != pair[1] and UNASKED not in pair and key.partition("[")[0] in known:
            alike.setdefault(pair, []).append(key)
    for (was, is_), keys in sorted(alike.items()):
        weight, means = _outcome(was, is_)
        count = f"{len(keys)} request{'s' * (len(keys) > 1)}"
        yield Difference(weight, "requests", f"{count}: {_listed(keys)}", was, is_, means)


def _outcome(was: str, now: str) -> tuple[Weight, str]:
    if was.startswith("2") and not now.startswith("2"):
        return Weight.BREAKS, f"requests that were served {'are refused' if now[:1] == REFUSED else 'fail'}"
    if now.startswith("2"):
        return (
            Weight.BEHAVIOUR,
            f"requests that {'were refused' if was[:1] == REFUSED else 'failed'} are served",
        )
    if was[:1] == REFUSED != now[:1]:
        return Weight.BEHAVIOUR, "a refusal became a failure: clients that try again on failures do so"
    return Weight.BEHAVIOUR, "clients that tell refusals apart by their status take another way"


def _listed(names: Iterable[str], most: int = 3) -> str:
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
