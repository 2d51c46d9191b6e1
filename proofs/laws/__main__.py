"""``python -m layoutalg.proofs.laws``: the laws that solvers prove, or their proofs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.laws import law, laws


def main(arguments: Sequence[str] | None = None) -> int:
    """List the laws; with ``--prove`` prove the laws named, or all, and return 1 where one is not proved."""
    parser = argparse.ArgumentParser(prog="python -m layoutalg.proofs.laws", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--prove", nargs="*", metavar="NAME", help="prove these laws, or all")
    chosen = parser.parse_args(arguments).prove
    if chosen is None:
        for each in laws():
            print(f"{each.name:32} {each.statement}")
        return 0
    failed = 0
    try:
        asked = [law(name) for name in chosen] or laws()
    except LayoutError as error:
        print(error, file=sys.stderr)
        return 2
    for each in asked:
        for obligation in each.obligations:
            verdict = obligation.prove()
            good = isinstance(verdict, Proved)
            failed += not good
            told = "proved" if good else str(verdict).replace("\n", " ")
            print(f"{each.name:32} {obligation.engine:12} {told}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
