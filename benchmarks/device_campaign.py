"""Measure what a GPU's copy engine and tensor cores do: probes, mass validation and matrix products.

Run on a machine with an H200 (or any sm_90 device), from the repository root:

    python3 benchmarks/device_campaign.py prepare --problems plans.json      (where the full library is installed)
    python3 benchmarks/device_campaign.py all --out RESULTS --problems plans.json [--seconds 420]

Sections: ``store`` and ``load`` (bulk tensor copies), ``wgmma`` (which element is read for operand B), ``problems``
(every plan of a JSON list), ``matmul``. Each section writes ``RESULTS/<section>*.npz`` as soon as it is known and
prints one table row per group. Every batch runs in a subprocess, because a fault ends a CUDA context; a failing batch
is halved until the faulting cases stand alone.

``--backend host`` runs the same kernels through the CPU models, to rehearse a campaign where there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import device_copies  # noqa: E402
import device_operand_b  # noqa: E402
from device_backends import Cuda, Host, child_error, compile_kernel, device_text  # noqa: E402
from instruments.runner import runner_kernel  # noqa: E402


def worker(arguments: argparse.Namespace) -> int:
    """Run one job file in this process."""
    with np.load(arguments.job, allow_pickle=False) as stored:
        job = dict(stored)
    device = Cuda() if arguments.backend == "cuda" else Host()
    kind = str(job["kind"])
    if kind in ("problems", "matmul"):
        import device_problems

        section = device_problems.run_problems if kind == "problems" else device_problems.run_products
        answer = section(device, job, Path(arguments.cubins))
    else:
        answer = (device_operand_b.run_wgmma if kind == "wgmma" else device_copies.run_copies)(
            device, job, Path(arguments.cubins)
        )
    np.savez(arguments.answer, **answer)
    return 0


class Campaign:
    """Runs batches in subprocesses and isolates the faulting cases."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.out = Path(arguments.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix="campaign-"))
        self.end = time.monotonic() + arguments.seconds
        self.rows: list[tuple[str, ...]] = []
        self.serial = 0

    def compile(self, sections: list[str]) -> None:
        """Compile every kernel to a cubin: nvcc where it exists, else the library's run-time compiler."""
        kernels = [runner_kernel(r, d) for r in range(1, 6) for d in ("load", "store")]
        if "wgmma" in sections:
            kernels += [device_operand_b.probe_b_kernel(n) for n in device_operand_b.WGMMA_N]
        if "matmul" in sections:
            import device_problems

            entries = json.loads(Path(self.arguments.problems).read_text())["products"]
            kernels += [device_problems.product_kernel(entry) for entry in entries]

        with ThreadPoolExecutor(self.arguments.jobs) as pool:
            list(pool.map(lambda kernel: compile_kernel(kernel, self.scratch), kernels))

    def batch(self, job: dict[str, object]) -> tuple[dict[str, np.ndarray] | None, str]:
        """Run one job in a subprocess; return its answer, or None and the error."""
        self.serial += 1
        stem = self.scratch / f"{job['kind']}_{job.get('group', job.get('n'))}_{self.serial}"
        np.savez(f"{stem}_job.npz", **job)
        command = [sys.executable, __file__, "worker", "--backend", self.arguments.backend]
        command += ["--cubins", str(self.scratch)]
        command += ["--job", f"{stem}_job.npz", "--answer", f"{stem}_answer.npz"]
        error = child_error(command, 90)
        if error:
            return None, error[-120:]
        with np.load(f"{stem}_answer.npz") as stored:
            return dict(stored), ""

    def isolate(
        self,
        job: dict[str, object],
        cases: list[int],
        found: dict[int, dict[str, np.ndarray]],
        faults: dict[int, str],
        budget: list[int],
    ) -> None:
        """Run the cases together; on a fault, halve until the faulting case stands alone or the budget is spent."""
        if time.monotonic() > self.end or budget[0] <= 0:
            faults.update(dict.fromkeys(cases, "not run: budget"))
            return
        budget[0] -= 1
        part = {
            name: value[cases] if isinstance(value, np.ndarray) and value.ndim else value for name, value in job.items()
        }
        answer, error = self.batch(part)
        if answer is not None:
            for position, case in enumerate(cases):
                found[case] = {name: value[position] for name, value in answer.items()}
        elif len(cases) == 1:
            faults[cases[0]] = error
        else:
            middle = len(cases) // 2
            self.isolate(job, cases[:middle], found, faults, budget)
            self.isolate(job, cases[middle:], found, faults, budget)

    def group(self, section: str, job: dict[str, object], key: str) -> None:
        """Run one group, store what happened and add a table row."""
        began = time.monotonic()
        n = len(job[key])  # type: ignore[arg-type]
        found: dict[int, dict[str, np.ndarray]] = {}
        faults: dict[int, str] = {}
        self.isolate(job, list(range(n)), found, faults, [self.arguments.isolation])
        stored = {name: value for name, value in job.items() if isinstance(value, np.ndarray)}
        stored["fault"] = np.array([faults.get(i, "") for i in range(n)])
        template = next(iter(found.values()), {})
        for name, value in template.items():
            stored[name] = np.stack([found[i][name] if i in found else np.zeros_like(value) for i in range(n)])
        agree, first = self.compare(job, found)
        name = f"{section}_{job.get('group', job.get('n'))}"
        np.savez_compressed(self.scratch / f"result_{name}.npz", **stored)
        refused = sum(int(f.get("status", 0) != 0 or f["done"] == 3) for f in found.values())
        late = sum(int(f["done"] == 2) for f in found.values())
        kinds = ",".join(sorted(set(faults.values())))
        row = (
            name,
            str(n),
            str(len(found)),
            str(refused),
            str(late),
            str(len(faults)),
            f"{agree}/{len(found) - refused}",
            f"{time.monotonic() - began:.1f}",
            f"{kinds} {first}"[:150],
        )
        self.rows.append(row)
        print(" | ".join(row), flush=True)

    def compare(self, job: dict[str, object], found: dict[int, dict[str, np.ndarray]]) -> tuple[int, str]:
        """Return how many answers match the prediction, and the first that does not."""
        agree, first = 0, ""
        for i, answer in sorted(found.items()):
            if int(answer.get("status", 0)) or int(answer["done"]) == 3:
                continue
            if job["kind"] in ("load", "store"):
                p, c = job["params"][i], job["coords"][i]  # type: ignore[index]
                wanted = device_copies.predict(str(job["kind"]), p, c, int(job["offset"][i]), int(job["pattern"][i]))  # type: ignore[index]
                same = np.array_equal(wanted, answer["answer"])
                if not same and not first:
                    at = int(np.flatnonzero(wanted != answer["answer"])[0])
                    first = f"case {i}: byte {at} is {answer['answer'][at]:#x}, predicted {wanted[at]:#x}"
            elif "agree" in answer:
                same = bool(answer["agree"])
                if not same and not first:
                    first = f"case {i}: {answer.get('note', answer.get('error'))}"
            else:
                wanted = device_operand_b.predict_b(job["fields"][i], int(job["n"]))  # type: ignore[index,arg-type]
                same = np.array_equal(wanted, answer["index"])
                if not same and not first:
                    first = f"case {i}: fields {job['fields'][i].tolist()}"  # type: ignore[index]
            agree += same
        return agree, first

    def gather(self, section: str) -> None:
        """Put the groups of one section into one file, arrays padded to a common width."""
        files = sorted(self.scratch.glob(f"result_{section}_*.npz"))
        if not files:
            return
        parts = {file.stem.removeprefix(f"result_{section}_"): dict(np.load(file)) for file in files}
        flat = {f"{group}/{name}": value for group, part in parts.items() for name, value in part.items()}
        np.savez_compressed(self.out / f"{section}.npz", **flat)

    def probes(self, sections: list[str]) -> None:
        """Run the probe sections, groups in parallel."""
        for section in sections:
            jobs: list[tuple[str, dict[str, object], str]] = []
            if section == "wgmma":
                count = max(8, int(160 * self.arguments.scale))
                jobs += [
                    (section, {"kind": section, "n": n, "fields": device_operand_b.wgmma_fields(n, count, n)}, "fields")
                    for n in device_operand_b.WGMMA_N
                ]
            elif section in ("problems", "matmul"):
                jobs += self.listed(section)
            else:
                jobs += [
                    (section, group, "params") for group in device_copies.copy_groups(section, self.arguments.scale)
                ]
            with ThreadPoolExecutor(self.arguments.jobs) as pool:
                for future in [pool.submit(self.group, *job) for job in jobs]:
                    try:
                        future.result()
                    except Exception as error:
                        print(f"group failed: {error!r}", flush=True)
            self.gather(section)
            self.table(quiet=True)

    def listed(self, section: str) -> list[tuple[str, dict[str, object], str]]:
        """Return the jobs of a section that runs the entries of the JSON file."""
        path = Path(self.arguments.problems).resolve()
        number = len(json.loads(path.read_text())["plans" if section == "problems" else "products"])
        portion = self.arguments.portion
        common = {
            "kind": section,
            "path": str(path),
            "origins": self.arguments.origins,
            "max_bytes": self.arguments.max_bytes,
        }
        return [
            (
                section,
                {**common, "group": f"{first:05d}", "cases": np.arange(first, min(first + portion, number))},
                "cases",
            )
            for first in range(0, number, portion)
        ]

    def table(self, quiet: bool = False) -> None:
        """Store the table and print it."""
        head = ("group", "cases", "run", "refused or skipped", "late", "faults", "agree", "s", "notes")
        lines = [" | ".join(row) for row in [head, *sorted(self.rows)]]
        (self.out / "table.txt").write_text("\n".join(lines) + "\n")
        if not quiet:
            print("\n".join(lines), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=("all", "probes", "store", "load", "wgmma", "problems", "matmul", "prepare", "worker")
    )
    parser.add_argument("--out", default="campaign")
    parser.add_argument("--backend", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of cases")
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--isolation", type=int, default=24, help="subprocesses one group may use to isolate faults")
    parser.add_argument("--problems", default="plans.json", help="plans and products, as written by 'prepare'")
    parser.add_argument(
        "--tiles", default=str(ROOT / "layoutalg/cli/data/real_tiles.json"), help="problems 'prepare' reads"
    )
    parser.add_argument("--random", type=int, default=0, help="plans of small random problems that 'prepare' adds")
    parser.add_argument("--seed", type=int, default=0, help="of those random problems")
    parser.add_argument("--origins", type=int, default=8, help="tile origins per plan")
    parser.add_argument("--portion", type=int, default=64, help="plans per subprocess")
    parser.add_argument("--max-bytes", type=int, default=2**34, help="skip tensors larger than this")
    parser.add_argument("--job")
    parser.add_argument("--answer")
    parser.add_argument("--cubins", default="")
    arguments = parser.parse_args()
    if arguments.what == "worker":
        return worker(arguments)
    if arguments.what == "prepare":
        import device_problems

        device_problems.prepare(arguments.tiles, arguments.problems, arguments.random, arguments.seed)
        return 0
    campaign = Campaign(arguments)
    sections = {"all": ["wgmma", "store", "load", "problems", "matmul"], "probes": ["wgmma", "store", "load"]}.get(
        arguments.what, [arguments.what]
    )
    if arguments.backend == "cuda":
        campaign.compile(sections)
    campaign.probes(sections)
    campaign.table()
    (campaign.out / "about.json").write_text(
        json.dumps(
            {
                "backend": arguments.backend,
                "sections": sections,
                "device": device_text("name,driver_version,compute_cap"),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
