"""mma.sync as a consumer of registers: tilings are found with their quotient, anything else is refused with a place."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.dtypes import element_type
from layoutalg.synth.admission import asked_again
from layoutalg.targets.layouts.nvidia import mma_accumulator, mma_operand
from layoutalg.targets.layouts.nvidia_instructions import MMA, mma_fragment, mma_type

NAMES = {"b1": "i1"}


def bases_of(fragment):
    """Images of the bits of register and lane."""
    zero = {name: np.zeros(1, dtype=np.int64) for name in fragment.in_dims}
    found = {}
    for axis, size in fragment.in_dims.items():
        points = [fragment.apply(zero | {axis: np.array([1 << bit])}) for bit in range(size.bit_length() - 1)]
        found[axis] = [tuple(int(part[0]) for part in point.values()) for point in points]
    return found


@pytest.mark.parametrize("name", sorted(MMA))
def test_every_fragment_repeated_in_registers_and_warps_is_taken(name):
    rng = random.Random(name)
    operand = rng.choice("ABCD")
    fragment = mma_fragment(name, operand)
    rows, columns = fragment.out_dims.values()
    bases = bases_of(fragment)
    more = [(rows, 0), (0, columns), (2 * rows, 0), (0, 2 * columns)]
    rng.shuffle(more)
    registers, warps = bases["register"] + more[:2], more[2:]
    layout = la.LinearLayout.from_bases(
        {"register": registers, "lane": bases["lane"], "warp": warps}, {"dim0": 4 * rows, "dim1": 4 * columns}
    )
    kind = mma_type(name, operand)
    dtype = NAMES.get(kind, kind) if kind not in ("s4", "u4") else rng.choice(("s4", "u4", "int4"))
    answer = la.admissible(layout, f"mma.{name}.{operand}", dtype=dtype)
    assert answer, answer
    assert answer.certificate.check()
    assert answer.evidence == "measured"
    starts = [point for points in answer.descriptor.tiling.quotient for point in points]
    assert sorted(starts) == sorted(itertools.product(range(4), range(4)))
    json.dumps(answer.to_json())
    wrong = [*bases["lane"]]
    wrong[0], wrong[-1] = wrong[-1], wrong[0]
    turned = la.LinearLayout.from_bases(
        {"register": registers, "lane": wrong, "warp": warps}, {"dim0": 4 * rows, "dim1": 4 * columns}
    )
    refused = la.admissible(turned, f"mma.{name}.{operand}", dtype=dtype)
    assert isinstance(refused, la.Refused)
    assert refused.rules == ("FRAGMENT",)
    assert "lane" in refused.witness


def test_another_operand_is_offered_where_it_fits():
    layout = mma_operand("B", (16, 8), (1, 1), 2)
    answer = la.admissible(layout, "mma.m16n8k16.f32.bf16.A")
    assert answer.rules == ("FRAGMENT",)
    consumer = answer.repairs[0].detail
    assert la.admissible(layout, consumer)


def test_types_targets_and_names():
    layout = mma_accumulator((16, 8), (1, 1))
    operand = mma_operand("A", (16, 16), (1, 1), 2)
    assert la.admissible(layout, "mma.m16n8k16.f32.bf16.D", dtype="f32")
    assert la.admissible(operand, "mma.m16n8k16.f32.bf16.A", dtype="f16").rules == ("MMA_DTYPE",)
    assert la.admissible(operand, "mma.m16n8k16.f32.bf16.A", dtype="f64").rules == ("MMA_DTYPE",)
    assert la.admissible(layout, "mma.m16n8k16.f32.e4m3.D", "sm_80", "f32").rules == ("MMA_ARCH",)
    assert not isinstance(la.admissible(layout, "mma.m16n8k16.f32.bf16.D", "gfx942", "f32"), la.Admitted)
    assert la.admissible(layout, "mma.sp.m16n8k32.f32.bf16.A").rules == ("FRAGMENT",)
    for consumer in ("mma", "mma.m16n8k16.f32.bf16", "mma.m16n8k16.f32.bf16.E", "mma.m16n8k3.f32.f16.A"):
        with pytest.raises(MalformedError):
            la.admissible(layout, consumer)


@pytest.mark.parametrize("name", ["m16n8k16.f32.bf16", "m16n8k8.f32.tf32", "m16n8k32.s32.s8"])
@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("layout", ["(64,64):(64,1)", "(64,64):(80,1)", "(64,64):(1,64)", "(64,64):(65,1)"])
def test_a_tile_in_shared_memory_is_read_into_registers_first(name, operand, layout):
    """The repair names the instruction, which moves each element to the registers of a tiling that is then taken."""
    dtype = mma_type(name, operand)
    if layout.endswith("(64,1)"):
        layout = f"Sw<3,{(128 // element_type(dtype).bits).bit_length() - 1},3> o 0 o {layout}"
    refused = la.admissible(layout, f"mma.{name}.{operand}", "sm_90a", dtype)
    assert refused.rules == ("REGISTER_AXES",)
    assert "ldmatrix" in refused.reasons[0]
    (repair,) = refused.repairs
    (answer,) = asked_again(refused, repair)
    registers = la.layout(repair.document["options"]["registers"])
    assert la.admissible(registers, f"mma.{name}.{operand}", "sm_90a", dtype)
    along_k = layout.endswith("(1,64)") == (operand == "B")
    if "65" in layout or (not along_k and element_type(dtype).bits != 16):
        assert answer.consumer.startswith("ld.shared.b")
    else:
        assert answer.consumer == "ldmatrix.x4" + ".trans" * (not along_k)
    # of every register: the byte that the instruction reads for it is that of its element in the tile
    plan = answer.descriptor
    coordinates = plan.registers.table()
    assert np.array_equal(np.sort(np.unique(coordinates)), np.arange(64 * 64))


def test_tiles_that_nothing_reads_have_no_repair():
    assert la.admissible("(48,48):(48,1)", "mma.m16n8k16.f32.bf16.A").repairs == ()
    found = la.admissible("(64,64):(64,1)", "mfma.v_mfma_f32_32x32x8_f16.D", "gfx942", "f32")
    assert [repair.detail.partition(",")[0] for repair in found.repairs] == ["ds_read_b32"]
