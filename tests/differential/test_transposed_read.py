"""AMD's transposing LDS reads: Triton's compiled addresses and the model together must deliver a matrix operand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from instruments.triton_peer import triton_python

from layoutalg.targets.layouts.shared import READS, transposed_read

STORED = json.loads((Path(__file__).parents[1] / "data" / "triton_reads.json").read_text())["cases"]
WORKER = Path(__file__).with_name("triton_reads.py")


def wrong(case, layout):
    """Return the elements that land elsewhere than the kernel stores them: a matrix transposed on its way."""
    rows, columns = case["rows"], case["columns"]
    found, stored = [], set()
    for lane, reads in enumerate(case["lanes"]):
        for number, (_, places) in enumerate(reads):
            for register, place in enumerate(places):
                where = layout(register=register, lane=lane)
                element = case["lanes"][where["source"]][number][0] + where["slot"]
                row, column = element % rows, element // rows
                stored.add(place)
                if place != row * columns + column:
                    found.append((lane, number, register))
    assert len(stored) == rows * columns
    return found


@pytest.mark.parametrize("case", STORED, ids=lambda case: f"{case['arch']} {case['bits']}")
def test_stored_addresses(case):
    layout = transposed_read(case["bits"], case["arch"])
    assert layout.is_invertible
    assert wrong(case, layout) == []


def test_the_other_architecture_is_told_apart():
    cases = {(case["arch"], case["bits"]): case for case in STORED}
    assert wrong(cases["gfx950", 8], transposed_read(8, "gfx950")) == []
    # one wave of 32 lanes of the other chip's rule
    assert wrong(cases["gfx1250", 8], transposed_read(8, "gfx950"))


def test_every_read_is_a_bijection():
    for arch, kinds in READS.items():
        assert sorted(kinds) == [4, 8, 16]
        for bits in kinds:
            layout = transposed_read(bits, arch)
            assert layout.is_invertible
            assert layout.in_dims["lane"] == layout.out_dims["source"] == {"gfx950": 64, "gfx1250": 32}[arch]


def test_cdna4_formula():
    # numbers j, j + 16, ... of the sixteen lanes' elements, address lane after address lane
    for bits, per_lane in ((16, 4), (8, 8), (4, 16)):
        layout = transposed_read(bits)
        for lane in range(64):
            for register in range(per_lane):
                number = lane % 16 + 16 * register
                expected = {"slot": number % per_lane, "source": 16 * (lane // 16) + number // per_lane}
                assert layout(register=register, lane=lane) == expected


@pytest.mark.peer
def test_live_addresses():
    triton_python()
    done = subprocess.run([sys.executable, str(WORKER)], capture_output=True, check=True, timeout=300)
    assert json.loads(done.stdout) == STORED
