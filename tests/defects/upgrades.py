"""Every defect as a new version: a healthy simulator before, the broken one after, and what `compare` shows.

    python -m tests.defects.upgrades                 a sample of 40, each asked the areas that it concerns
    python -m tests.defects.upgrades --runs 0        every defect: a night on two cores
    python -m tests.defects.upgrades NAME …          these only, with every difference that counts

Both gates are `pytest --vllm-profile=…` as a person runs it; with --whole they ask every check. A defect is
shown when `pytest-vllm compare` lists a difference that is not for information: broken, slower or changed.
The exit status says whether all were.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections import Counter
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.face.profiles import flags_of
from pytest_vllm.report.compare import kept
from pytest_vllm.report.compare.comparison import compare
from pytest_vllm.report.compare.difference import Weight
from pytest_vllm.sim.defects.registry import Defect, all_defects, find
from tests.defects.gates import sample
from tests.defects.matrix import suites
from tests.defects.room import own_pool, room
from tests.real.gate import run_gate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: The profile of servers that need more than a bundled one has, and where the key lies that it refers to.
OWN, KEY = "upgraded", "VLLM_API_KEY"

Kind = tuple[str, tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Upgrade:
    """A defect as a comparison shows it.

    Args:
        name: of the defect.
        answer: of its gate.
        counts: differences by weight.
        first: the heaviest difference, in words; empty when there is none.
        heavy: every difference that is not for information, in words.
    """

    name: str
    answer: str
    counts: Mapping[str, int]
    first: str
    heavy: tuple[str, ...]

    @property
    def shown(self) -> bool:
        """Whether a person learns of it."""
        return bool(self.heavy)


def kind_of(defect: Defect) -> Kind:
    """What the healthy server is like: profile, arguments and environment of the broken one."""
    return defect.profile, defect.needs, defect.environ


def write_profile(folder: Path, kind: Kind) -> dict[str, str]:
    """Write the profile OWN of one kind of server; returns the environment that its gate needs."""
    base, words, environ = kind
    env = dict(pair.split("=", 1) for pair in environ)
    secret = f'{{ from-env = "{KEY}" }}'
    lines = [f"extends = {json.dumps(base)}", *(["[server]", f"api-key = {secret}"] if KEY in env else [])]
    for table, values in (("args", flags_of(words)), ("env", env)):
        written = {name: secret if name == KEY else _toml(value) for name, value in values.items()}
        lines += [f"[server.{table}]", *(f"{name} = {value}" for name, value in written.items())]
    (folder / "vllm-profiles").mkdir(parents=True)
    (folder / "vllm-profiles" / f"{OWN}.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return {KEY: env[KEY]} if KEY in env else {}


def _toml(value: object) -> str:
    return json.dumps(value if isinstance(value, bool | int | float | str) else json.dumps(value))


def gate(kind: Kind, folder: Path, *options: str) -> dict[str, Any]:
    """Run the gate of one kind of server; its extract, with the reasons of its report."""
    folder.mkdir()
    env = write_profile(folder, kind) if any(kind[1:]) else {}
    with contextlib.redirect_stdout(io.StringIO()):
        run = run_gate(folder, f"--vllm-profile={_name(kind)}", "--vllm-launcher=sim", *options, **env)
    found = list(run.folder.glob("runs/*"))
    if len(found) != 1:
        raise RuntimeError(f"a gate of {kind} left {len(found)} runs and ended with {run.exit}:\n{run.text}")
    return kept.with_reasons(kept.read(found[0]), found[0])


def _name(kind: Kind) -> str:
    return OWN if any(kind[1:]) else kind[0]


def no_options(_: Sequence[Defect]) -> list[str]:
    """The options that ask every check."""
    return []


def areas_of(defects: Sequence[Defect]) -> list[str]:
    """The options that ask only the areas in which these defects are to show."""
    with contextlib.redirect_stdout(io.StringIO()):  # pytest lists what it collected
        area_of = {check.spec.id: check.area for check in suites()[0]}
    areas = {area_of[check] for one in defects for check in one.catches if check in area_of}
    return [f"--vllm-check={area}" for area in sorted(areas or {"health"})]


def upgrade(name: str, before: Mapping[str, Any], *options: str) -> Upgrade:
    """Compare the server that has this defect with a healthy one of its kind."""
    with room(f"upgrade-{name}") as folder:
        after = gate(kind := kind_of(find(name)), folder, f"--vllm-defect={name}", *options)
    document = compare(before, after, (_name(kind), _name(kind)))
    heavy = tuple(
        f"{row['weight']}: {row['change']} {row['what']}: {row['before']} → {row['after']}  {row['means']}"
        for row in document["differences"]
        if row["weight"] != Weight.INFO
    )
    counts = document["answer"]["counts"]
    return Upgrade(name, document["after"]["answer"], counts, heavy[0] if heavy else "", heavy)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print; the exit status says whether every defect was shown."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects.upgrades", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these defects")
    parser.add_argument("--runs", type=int, default=40, help="how many of them; 0: every one")
    parser.add_argument("--workers", type=int, default=1, help="gates at once; a gate takes two cores")
    parser.add_argument("--whole", action="store_true", help="ask every check, not only the areas concerned")
    options = parser.parse_args(argv)
    drawn = [find(name) for name in options.names] or sample(options.runs or len(all_defects()))
    asked = no_options if options.whole else areas_of
    done: list[Upgrade] = []
    with own_pool(options.workers) as pool:
        healthy = {}
        for kind in dict.fromkeys(map(kind_of, drawn)):
            alike = [one for one in drawn if kind_of(one) == kind]
            healthy[kind] = pool.submit(_healthy, kind, *asked(alike))
        tasks = [
            pool.submit(upgrade, one.name, healthy[kind_of(one)].result(), *asked([one])) for one in drawn
        ]
        for task in as_completed(tasks):
            done.append(last := task.result())
            print(_line(last), *(last.heavy if options.names else ()), sep="\n    ", flush=True)
    shown = sum(one.shown for one in done)
    heaviest = Counter(one.first.partition(":")[0] for one in done if one.shown)
    words = ", ".join(f"{count} {weight}" for weight, count in heaviest.most_common())
    print(f"{shown} of {len(done)} defects shown as differences between versions: {words}")
    return 0 if shown == len(done) else 1


def _healthy(kind: Kind, *options: str) -> dict[str, Any]:
    with room("upgrade-healthy") as folder:
        return gate(kind, folder, *options)


def _line(one: Upgrade) -> str:
    if not one.shown:
        return f"NOT SHOWN, {one.answer}  {one.name}"
    counts = ", ".join(f"{count} {weight}" for weight, count in one.counts.items() if count)
    return f"shown, {one.answer}, {counts}  {one.name}  {one.first[:110]}"


if __name__ == "__main__":
    sys.exit(main())
