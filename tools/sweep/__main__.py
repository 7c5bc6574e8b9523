"""`python -m tools.sweep`: test every tool and reasoning parser of a vLLM build."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.report.tables import print_json, print_rows
from tools.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = 4


def parser() -> argparse.ArgumentParser:
    """The options of a sweep."""
    made = argparse.ArgumentParser(prog="python -m tools.sweep", description=__doc__)
    made.add_argument("--version", default="0.32.0", help="of the vLLM that is swept (default: %(default)s)")
    made.add_argument("--python", default="", help="the Python that has it; a container without")
    made.add_argument("--image", default="", help="of the container, instead of pytest-vllm/cpu:VERSION")
    made.add_argument("--parser", action="append", default=[], help="only this one; may be repeated")
    made.add_argument("--smoke", action="store_true", help="only three parsers")
    made.add_argument("--alone", action="store_true", help="its parser objects, without servers")
    made.add_argument("--folder", type=Path, default=Path(".vllm/sweeps"), help="keeps finished rows")
    made.add_argument("--no-waivers", action="store_true", help="known faults fail too")
    made.add_argument("--json", action="store_true", help="every case with its evidence")
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Sweep; exit status 0, 1 when a parser failed, 4 for a name that is unknown, 21 when undecided."""
    given = parser().parse_args(words)
    kept = given.folder.absolute() / f"{given.version}-{'alone' if given.alone else 'server'}"
    served = given.image or ("" if given.python else f"pytest-vllm/cpu:{given.version}")
    how = {"smoke": given.smoke, "alone": given.alone, "waivers": not given.no_waivers}
    try:
        rows = sweep.run(given.version, kept, given.parser, python=given.python, image=served, **how)
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    if given.json:
        print_json([one.plain() for one in rows])
    else:
        print_rows(sweep.table(rows), as_json=False)
    return sweep.status(rows)


if __name__ == "__main__":
    sys.exit(main())
