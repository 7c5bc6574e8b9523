"""Which of the collected items run: by tier, by check id, by profile."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pytest_vllm.face.collection import area_of, declared, is_of
from pytest_vllm.face.items import check_key, params_of, spec_of
from pytest_vllm.face.options import INCLUDES, PROFILE_PARAM

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import pytest

    from pytest_vllm.declare.checks import CheckSpec
    from pytest_vllm.face.options import Options
    from pytest_vllm.profile.model import Profile

#: How alike a word is to the name of a check that it surely means.
SURELY = 0.8


def select(
    items: Sequence[pytest.Item],
    options: Options,
    profile: Callable[[pytest.Item], Profile] | None = None,
    *,
    narrowed: str = "",
) -> tuple[list[pytest.Item], list[pytest.Item], list[str]]:
    """Split items into those that run and those that do not, and say which asked ids match nothing.

    Args:
        items: everything that was collected.
        options: which checks are asked for, and up to which tier.
        profile: the profile of an item: what it is about counts where no check is asked for.
        narrowed: options of pytest's that left items out before; what these leave out is not misspelt.
    """
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    tiers: dict[str, str] = {}
    hit: set[str] = set()
    beyond: dict[str, str] = {}
    wanted = _wanted(items, options.checks)
    areas = {area_of(item.nodeid) for item in items if spec_of(item) is not None}
    for item in items:
        spec = spec_of(item)
        if spec is not None:
            tiers[spec.id] = spec.tier
        matching = [asked for asked in options.checks if item in wanted[asked]]
        fits = spec is None or profile is None or _meant(profile(item), item, spec)
        chosen = bool(matching) if options.checks else fits
        in_tier = spec is None or spec.tier in INCLUDES[options.tier]
        if in_tier:
            hit.update(matching)
        elif spec is not None:
            beyond.update(dict.fromkeys(matching, spec.tier))
        (kept if chosen and in_tier else dropped).append(item)
    lost = [asked for asked in options.checks if asked not in hit and not (narrowed and _is_known(asked))]
    missed = [_missed(asked, tiers, beyond, areas, narrowed) for asked in lost]
    if profile is not None and not options.checks:
        missed += _misspelt({profile(item).name: profile(item) for item in items}.values(), items)
    if dropped and not kept and not missed and all(map(_scripted, dropped)):
        missed = ["these checks ask a scripted server: --vllm-profile=cpu-scripted, or sim-scripted"]
    return kept, dropped, missed


def _wanted(items: Sequence[pytest.Item], asked: Sequence[str]) -> dict[str, set[pytest.Item]]:
    """The checks that each word names: by id, or else by the suite that reports list them under."""
    checks = [(item, spec) for item in items if (spec := spec_of(item)) is not None]
    return {
        word: {item for item, spec in checks if asks_for(word, item, spec)}
        or {item for item, _ in checks if area_of(item.nodeid) == word}
        for word in asked
    }


def asks_for(asked: str, item: pytest.Item, spec: CheckSpec) -> bool:
    """Whether an id or id prefix names this check; a prefix ends at a dot, a case is written in brackets."""
    key = check_key(item, spec)
    return asked in (spec.id, key) or key.startswith(asked.rstrip(".") + ".")


def may_ask_for(asked: str, declared: str) -> bool:
    """Whether an id, an id prefix or a case may name a check of this id."""
    return asked.partition("[")[0] == declared or declared.startswith(asked.rstrip(".") + ".")


def client_of(item: pytest.Item) -> str:
    """The client that a check is about, by its id; empty for others. It runs only where it is wanted."""
    case = params_of(item).get("client")
    return "" if case is None or spec_of(item) is None else str(case.id)


def _scripted(item: pytest.Item) -> bool:
    spec = spec_of(item)
    return spec is not None and "scripted" in spec.needs


def _meant(profile: Profile, item: pytest.Item, spec: CheckSpec) -> bool:
    """Whether a check is for this profile; only a scripted server says what scripted checks ask it to say."""
    client = client_of(item)
    if client:
        return client in profile.expect.clients
    if _scripted(item) and not profile.server.scripted:
        return False
    about = profile.expect.checks
    return not about or any(asks_for(one, item, spec) or _of_area(one, item) for one in about)


def _of_area(word: str, item: pytest.Item) -> bool:
    """Whether a word that begins no id names the suite of this check, as reports list it."""
    return area_of(item.nodeid) == word and not any(
        may_ask_for(word, one) for ids in declared().values() for one in ids
    )


def _misspelt(profiles: Iterable[Profile], items: Sequence[pytest.Item]) -> list[str]:
    """What profiles say they are about and what is nearly, but not quite, the name of a check."""
    found = []
    for profile in profiles:
        for word in profile.expect.checks:
            mine = (item for item in items if (spec := spec_of(item)) and asks_for(word, item, spec))
            if _is_known(word) or any(mine):
                continue
            known = {one for ids in declared().values() for one in ids}
            words = {*known, *(one.partition(".")[0] for one in known)}
            words |= {path.parent.name for path in declared()}
            near = difflib.get_close_matches(word, sorted(words), n=1, cutoff=SURELY)
            if near:  # anything else may be a check of the person's own that this run does not collect
                meant = f"{word!r} names no check; did you mean {near[0]}?"
                found.append(f"{profile.name}: [expect] checks: {meant}")
    return found


def profile_of(item: pytest.Item, default: str) -> str:
    """The profile an item runs on."""
    name = params_of(item).get(PROFILE_PARAM, default)
    return str(name)


def needs_server(item: pytest.Item) -> bool:
    """Whether an item has anything to do with a vLLM server."""
    return spec_of(item) is not None or any(
        name.startswith("vllm_") and name != PROFILE_PARAM for name in getattr(item, "fixturenames", ())
    )


def needs_live(item: pytest.Item) -> bool:
    """Whether an item talks to the server itself, instead of judging recordings."""
    live = {"vllm_client", "vllm_async_client", "vllm_http", "vllm_metrics", "vllm_servers"}
    own = spec_of(item) is None and "vllm_server" in getattr(item, "fixturenames", ())
    return own or bool(live & set(getattr(item, "fixturenames", ())))


def listing(items: Sequence[pytest.Item]) -> list[str]:
    """One line for every check that would run: level, family, id, fact."""
    rows = [(spec, check_key(item, spec)) for item in items if (spec := spec_of(item)) is not None]
    width = max((len(key) for _, key in rows), default=0)
    lines = [f"{spec.level:6} {spec.family:11} {key:{width}}  {spec.fact}" for spec, key in rows]
    return [*lines, f"{len(rows)} checks"]


def _is_known(asked: str) -> bool:
    """Whether the bundled suites have checks of that name, whatever this run collected."""
    return any(
        is_of(path.parent, asked) or any(may_ask_for(asked, one) for one in ids)
        for path, ids in declared().items()
    )


def _missed(
    asked: str,
    tiers: Mapping[str, str],
    beyond: Mapping[str, str],
    areas: Collection[str],
    narrowed: str,
) -> str:
    if asked in beyond:
        tier = beyond[asked]
        return f"--vllm-check={asked} names checks of tier {tier} only; add --vllm-tier={tier}"
    if narrowed:
        return f"--vllm-check={asked} names no check that {narrowed} leaves"
    near = difflib.get_close_matches(asked, sorted({*tiers, *areas}), n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else "; `pytest-vllm checks` lists them all"
    return f"--vllm-check={asked} names no check{hint}"
