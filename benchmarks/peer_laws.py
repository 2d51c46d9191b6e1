"""Which law each peer breaks, and the least counterexample: the table of docs/testing.md.

    python benchmarks/peer_laws.py --pycute FOLDER [--examples 3000]

FOLDER holds pycute: the site-packages of an environment with ``nvidia-cutlass==4.2.0.0`` (``pip install --no-deps``).
tensor-layouts==0.3.2 is in the extra ``dev``. Writes tests/data/peer_laws.json and prints the table; the operands are
the same in every run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from judges import peers  # noqa: E402

from layoutalg.testing.laws import LAWS, counterexample, laws_of  # noqa: E402


def table(found: dict[str, dict[str, Any]], tested: dict[str, list[str]]) -> str:
    """The table in Markdown: a row per law, a column per library."""
    lines = ["| law | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for law in LAWS:
        cells = []
        for name, rows in found.items():
            if law not in tested[name]:
                cells.append("not offered")
            elif law in rows:
                cells.append(f"`{rows[law]['text']}`: {rows[law]['because']}")
            else:
                cells.append("holds")
        lines.append(f"| {law} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pycute", type=Path, required=True, help="the folder that holds pycute")
    parser.add_argument("--examples", type=int, default=3000)
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    tested: dict[str, list[str]] = {}
    for library in (peers.cute(), peers.tensor_layouts(), peers.pycute(options.pycute)):
        rows = found[library.name] = {}
        tested[library.name] = [law.name for law in laws_of(library)]
        for law in tested[library.name]:
            least = counterexample(library, law, options.examples)
            if least is not None:
                rows[law] = {"operands": least.operands, "text": least.text, "because": least.because}
    document = {"examples": options.examples, "tested": tested, "peers": found}
    peers.STORED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(table(found, tested))


if __name__ == "__main__":
    main()
