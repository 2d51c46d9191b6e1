"""The forms that documents describe: sparse ``mma.sync``, accesses of every width, copies, reductions.

*sparse*: every ``mma.sp`` of ``MMA_SP`` in both variants with every selector: products of random integers with random
metadata, exactly; A as it is multiplied when one nibble of one lane changes, and under each of the 16 codes. *moves*:
admitted plans of every ``ld.shared`` and ``st.shared`` with registers of the instruction's own width. *copies*: those
of ``cp.async`` with zeros behind an edge. *bulk*, *multicast*: admitted plans of ``bulk``, ``bulk.store``,
``bulk.multicast``, ``tma.multicast`` in clusters of 2 and 4. *reductions*: admitted plans of ``bulk.reduce.OP`` and
``tma.reduce.OP`` for every type. All are compared byte for byte with the layouts that were asked for. What the rules
refuse (addresses and sizes off their multiples, types that a reduction has not) runs too, each in its own process: a
fault confirms the rule, an answer is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from device import Launch, Run
from device_accesses import comparison
from device_forms_bulk import bulk_jobs, multicast_jobs
from device_forms_moves import copy_jobs, move_jobs
from device_forms_reductions import reduction_jobs
from device_forms_sparse import packed, sparse_answers, sparse_jobs


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


def forms_job(run: Run) -> None:
    """Run the sections one after the other and write what came out after each."""
    plans, seed = run.options.plans, run.options.seed
    makers: dict[str, Callable[[], list[Launch]]] = {
        "sparse": sparse_jobs,
        "moves": lambda: move_jobs(plans, seed),
        "copies": lambda: copy_jobs(2 * plans, seed),
        "bulk": lambda: bulk_jobs(4 * plans, seed),
        "multicast": lambda: multicast_jobs(6 * plans, seed),
        "reductions": lambda: reduction_jobs(max(2, plans // 3), seed),
    }
    chosen = run.options.only or list(makers)
    if run.options.rehearse:
        run.compile(job.kernel for section in chosen for job in makers[section]())
    rows: dict[str, list[dict[str, Any]]] = {}
    for section in chosen:
        jobs = makers[section]()
        results = run.launches(jobs)
        if section == "sparse":
            rows[section], kept = sparse_answers(jobs, results)
            run.save("sparse_dev", **packed(kept))
        else:
            rows[section] = comparison(jobs, results)
        run.write("forms_dev", {"plans": plans} | {name: summary(name, each) for name, each in rows.items()}, **rows)
