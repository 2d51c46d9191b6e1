"""Run the forms that documents describe on a GPU: sparse ``mma.sync``, accesses of every width, copies, reductions.

Run on a machine with an sm_90a GPU, from the root of the repository:

    python3 benchmarks/device_forms.py --out DIRECTORY [--plans 12] [--seed 1] [--rehearse]

*sparse*: every ``mma.sp`` of ``MMA_SP`` in both variants with every selector: products of random integers with random
metadata, exactly; A as it is multiplied when one nibble of one lane changes, and under each of the 16 codes. *moves*:
admitted plans of every ``ld.shared`` and ``st.shared`` with registers of the instruction's own width. *copies*: those
of ``cp.async`` with zeros behind an edge. *bulk*, *multicast*: admitted plans of ``bulk``, ``bulk.store``,
``bulk.multicast``, ``tma.multicast`` in clusters of 2 and 4. *reductions*: admitted plans of ``bulk.reduce.OP`` and
``tma.reduce.OP`` for every type. All are compared byte for byte with the layouts that were asked for. What the rules
refuse (addresses and sizes off their multiples, types that a reduction has not) runs too, each in its own process: a
fault confirms the rule, an answer is kept.

Writes ``forms_dev.json`` and ``sparse_dev.npz``. ``--rehearse`` compiles everything and runs nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "benchmarks")]

from device_backends import device_text  # noqa: E402
from device_forms_bulk import bulk_jobs, multicast_jobs  # noqa: E402
from device_forms_jobs import Job, Result, run_jobs  # noqa: E402
from device_forms_moves import copy_jobs, move_answers, move_jobs  # noqa: E402
from device_forms_reductions import reduction_jobs  # noqa: E402
from device_forms_sparse import packed, sparse_answers, sparse_jobs  # noqa: E402


def facts_now() -> dict[str, str]:
    """Return the date, the device and its driver."""
    return {"date": datetime.date.today().isoformat(), "device": device_text()}


def summary(section: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of a section."""
    if section == "sparse":
        products = [row["product"] for row in rows if "product" in row]
        return {
            "instructions": len({row["instruction"] for row in rows}), "forms": len(rows),
            "products": sum(one.get("runs", 0) for one in products),
            "wrong": sum(one.get("wrong", 0) for one in products),
            "faults": sum("fault" in one for row in rows for one in row.values() if isinstance(one, dict)),
            "heard_as_predicted": sum(row.get("heard", {}).get("agrees", False) for row in rows),
        }  # fmt: skip
    ran = [row for row in rows if "compared" in row]
    refused = [row for row in rows if row["kind"] == "refused"]
    return {
        "compared": len(ran), "bytes": sum(row["compared"] for row in ran),
        "wrong": sum(row["wrong"] > 0 for row in ran),
        "faults_of_admitted": sum("fault" in row for row in rows if row["kind"] != "refused"),
        "refused": len(refused), "refused_and_faulted": sum("fault" in row for row in refused),
    }  # fmt: skip


def main() -> None:
    """Run the sections one after the other and write what came out after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--plans", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--rehearse", action="store_true")
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    makers = {
        "sparse": sparse_jobs,
        "moves": lambda: move_jobs(given.plans, given.seed),
        "copies": lambda: copy_jobs(2 * given.plans, given.seed),
        "bulk": lambda: bulk_jobs(4 * given.plans, given.seed),
        "multicast": lambda: multicast_jobs(6 * given.plans, given.seed),
        "reductions": lambda: reduction_jobs(max(2, given.plans // 3), given.seed),
    }
    written: dict[str, Any] = {"facts": facts_now() | {"seed": given.seed, "plans": given.plans}, "summary": {}}
    for section, make in makers.items():
        if given.only and section not in given.only.split(","):
            continue
        began = time.monotonic()
        try:
            jobs: list[Job] = make()
            results: list[Result] = run_jobs(jobs, given.rehearse)
            if section == "sparse":
                rows, kept = sparse_answers(jobs, results)
                np.savez_compressed(out / "sparse_dev.npz", facts=json.dumps(written["facts"]), **packed(kept))
            else:
                rows = move_answers(jobs, results)
        except Exception:  # one section must not stop the others
            print(section, "failed:", traceback.format_exc(), flush=True)
            continue
        written[section] = rows
        written["summary"][section] = summary(section, rows)
        (out / "forms_dev.json").write_text(json.dumps(written))
        print(section, written["summary"][section], f"{time.monotonic() - began:.1f} s", flush=True)
        shown = 0
        for row in rows:
            bad = row.get("wrong") or (row.get("kind") not in (None, "refused") and "fault" in row)
            bad = bad or any(isinstance(one, dict) and ("fault" in one or one.get("wrong")) for one in row.values())
            if bad and shown < 12:
                shown += 1
                print("   ", json.dumps(row)[:400], flush=True)
    print(json.dumps(written["facts"]))


if __name__ == "__main__":
    main()
