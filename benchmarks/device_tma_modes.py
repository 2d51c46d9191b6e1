"""Ask a device about the less travelled modes of tensor maps: im2col, im2col-wide and interleave.

    python3 benchmarks/device_tma_modes.py --out DIR [--count 10000] [--seconds 200]

Needs a GPU with compute capability 9.0 and its driver. Writes

- ``driver.npz``: verdict and 128 bytes of ``cuTensorMapEncodeIm2col`` on random parameters around the legal boundaries;
- ``wide.npz``: verdicts of ``cuTensorMapEncodeIm2colWide``;
- ``im2col.npz``, ``interleave.npz``: loads executed into poisoned shared memory: the image, what the barrier counted.

Notation: ``params`` of im2col holds 29 numbers: data type, rank, base, dim0..4, stride1..4 (bytes), lower corner 0..2,
upper corner 0..2, channels, pixels, element stride 0..4, interleave, swizzle, L2 promotion, fill; of tiled maps the 26
of ``device_copies``. Unused entries are -1 (corners: 0). Everything is innermost first.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from device_backends import Cuda, device_text  # noqa: E402
from device_tma_modes_driver import ask_driver  # noqa: E402
from device_tma_modes_im2col import im2col_groups  # noqa: E402
from device_tma_modes_interleave import interleave_cases, interleaved_groups, interleaved_im2col  # noqa: E402
from device_tma_modes_runs import IMAGE_BYTES, Campaign, compile_kernels, run_cases, worker  # noqa: E402


def main() -> None:
    """Probe, or run one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("--out", default="tma_modes")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=4000)
    for name in ("cubins", "job", "answer"):
        parser.add_argument(f"--{name}")
    arguments = parser.parse_args()
    if arguments.what == "worker":
        worker(arguments, run_cases, IMAGE_BYTES)
        return
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    cubins = Path(tempfile.mkdtemp(prefix="cubins-"))
    began = time.monotonic()
    compile_kernels(cubins)
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    if arguments.what == "compile":
        return
    ask_driver(Cuda(), out, arguments.count, arguments.seed)
    campaign = Campaign(out, cubins, arguments.seconds)
    campaign.section("interleave_random", interleaved_groups(arguments.scale), 40)
    campaign.section("interleave", {"one at a time": interleave_cases(), "im2col": interleaved_im2col()}, 24)
    campaign.section("im2col", im2col_groups(arguments.scale, arguments.seed), 80)
    facts = device_text()
    (out / "facts.json").write_text(json.dumps({"device": facts, "date": time.strftime("%Y-%m-%d")}))
    print(facts, f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
