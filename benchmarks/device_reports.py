"""Sectors and shared memory's wavefronts of whole Triton kernels by the counters of ncu, beside what their reports say.

The record holds each kernel's TTGIR, its grid, the trips of its loop and the counters: reports are made from it on any
machine (``tests/differential/test_reports_device_data.py``).
"""

from __future__ import annotations

import re
from typing import Any

from device import Run

COUNTERS = {
    "loaded": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "stored": "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "reduced": "l1tex__t_sectors_pipe_lsu_mem_global_op_red",
    "atomic": "l1tex__t_sectors_pipe_lsu_mem_global_op_atom",
    "copied": "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts",
    "shared_read": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
    "shared_written": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
    "shared": "l1tex__data_pipe_lsu_wavefronts_mem_shared",
}
"""What is counted over a launch; a counter that the version lacks is left out."""


def launch_all(_: object) -> None:
    """Launch every case once, in order, for a profiler to count."""
    import report_kernels

    for case in report_kernels.cases():
        report_kernels.launch(case)


def reports_job(run: Run) -> None:
    """Count every kernel; write its TTGIR beside the counters."""
    import report_kernels
    import triton

    every = report_kernels.cases()
    rows: list[dict[str, Any]] = []
    for case in every:
        made = report_kernels.launch(case)
        known = {"grid": case.grid, "trips": case.trips, "arguments": case.arguments}
        text = re.sub(r'loc\("[^"]*/', 'loc("', made.asm["ttgir"])  # no folders of the machine
        rows.append({"name": case.name, "ttgir": text, **known})
    said: dict[str, str] = {}
    for what, counter in COUNTERS.items():
        asked = ["--kernel-name", "regex:^la_", "--metrics", f"{counter}.sum"]
        found = run.profile(launch_all, asked, None) if run.spent < run.options.seconds else "out of time"
        if isinstance(found, str) or len(found) != len(rows) or f"{counter}.sum" not in found[0]:
            said[what] = found[-200:] if isinstance(found, str) else f"{len(found)} of {len(rows)} launches"
            continue
        values = [one[f"{counter}.sum"].replace(",", "") for one in found]
        said[what] = "ncu" if all(values) and "n/a" not in values else "n/a"
        if said[what] == "ncu":
            for row, value in zip(rows, values, strict=True):
                row[what] = int(float(value))
    run.write("reports_dev", {"kernels": len(rows), "triton": triton.__version__, **said}, rows=rows)
