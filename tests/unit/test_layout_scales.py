"""Scale factors, AMD's shared memory and the split tensor-memory access: manuals' formulas and refusals."""

import pickle

import numpy as np
import pytest

import layoutalg
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError, RepresentabilityError
from layoutalg.interop import triton as interop
from layoutalg.targets.layouts import (
    amd,
    amd_instructions,
    blocked,
    nvidia,
    padding,
    scales,
    shared,
    tmem,
)


def points(layout):
    """Yield ({axis: value}, {dim: value}) over the whole domain."""
    for index in range(layout.size):
        coords, rest = {}, index
        for axis, bits in layout.in_axes:
            coords[axis], rest = rest & ((1 << bits) - 1), rest >> bits
        yield coords, layout.apply(coords)


# --- scale factors ---------------------------------------------------------------------------------------------------


def test_mma_scale_lanes_of_thread_selector_zero():
    # PTX: of each quad, lanes 0 and 1 provide A's rows g and g + 8, lane 0 provides B's column g
    a, b = scales.mma_scale("A", (16, 4), (1, 1)), scales.mma_scale("B", (8, 4), (1, 1))
    for group in range(8):
        for k in range(4):
            assert a(register=k, lane=4 * group, warp=0, block=0) == {"dim0": group, "dim1": k}
            assert a(register=k, lane=4 * group + 1, warp=0, block=0) == {"dim0": group + 8, "dim1": k}
            assert b(register=k, lane=4 * group, warp=0, block=0) == {"dim0": group, "dim1": k}


@pytest.mark.parametrize(("rows", "groups"), [(32, 2), (16, 4)])
def test_mfma_scale_formula(rows, groups):
    for operand in "AB":
        for c, out in points(scales.mfma_scale(operand, (rows, groups), (rows, rows), (1, 1))):
            assert out == {"dim0": c["lane"] % rows, "dim1": c["lane"] // rows}


def test_tensor_memory_scales_formula():
    # PTX: byte columns; 32 rows, each 32-row piece of M in the next four bytes, the same in all four quarters
    for c, out in points(scales.tensor_memory_scales((128, 4))):
        assert out == {"dim0": c["row"] % 32 + 32 * (c["col"] // 4), "dim1": c["col"] % 4}


def test_wmma_scale_uses_the_upper_lanes_for_a_second_tile():
    lanes = {
        ("A", (16, 16), False): (16, 0),
        ("A", (32, 16), False): (16, 0),
        ("A", (32, 16), True): (0, 0),
        ("B", (32, 16), False): (0, 0),
        ("B", (32, 16), True): (16, 0),
    }
    for (operand, tile, transposed), image in lanes.items():
        layout = scales.wmma_scale(operand, (64, 4), [], tile=tile, transposed=transposed)
        assert layout.bases["lane"][4] == image
    wide = scales.wmma_scale("A", (16, 4), [], scale_group=16)
    assert wide.bases["register"] == ((0, 1), (0, 2), (0, 0))


# --- AMD's shared memory ---------------------------------------------------------------------------------------------


def test_rotating_shared_by_its_formula():
    vec, per_phase, max_phase, width = 2, 2, 4, 16
    layout = shared.rotating_shared((64, width), vec, per_phase, max_phase, (1, 0))
    assert layout.is_invertible
    for offset in range(64 * width):
        row, place = divmod(offset, width)
        phase = row // per_phase % max_phase ^ row // per_phase // max_phase % max_phase
        assert layout(offset=offset, block=0) == {"dim0": row, "dim1": place ^ vec * phase % width}


def test_partitions_go_round_robin():
    piece = shared.swizzled_shared((4, 8), 2, 1, 4, (1, 0))
    layout = shared.partitioned_shared(piece, 2, 4, 0)
    assert layout.is_invertible
    for c, out in points(layout):
        within = piece(offset=c["offset"] % 32, block=0)
        number = c["partition"] + 2 * (c["offset"] // 32)
        assert out == {"dim0": within["dim0"] + 4 * number, "dim1": within["dim1"]}
    whole = blocked.across_blocks(layout, [(0, 1)])
    assert whole.out_dims == {"dim0": 32, "dim1": 16}


def test_padded_shared_with_blocks_that_hold_copies():
    padded = padding.padded_shared((8,), [(2, 1)], cga=[(0,), (1,)])
    assert padded.linear.in_dims == {"offset": 4, "block": 4}
    assert padded.addresses().tolist() == [0, 1, 3, 4]
    with pytest.raises(AdmissibilityError, match="more blocks than the tensor has elements"):
        padding.padded_shared((2,), [(2, 1)], cga=[(1,), (2,)])


def test_padded_shared_over_a_dense_arrangement():
    # offset bits that mix dimensions, as a swizzle does
    padded = padding.padded_shared((4, 4), [(4, 2)], offset_bases=[(0, 1), (0, 2), (1, 1), (2, 2)])
    places = {}
    for offset in range(16):
        where = padded.linear(offset=offset, block=0)
        assert where == {"dim0": offset // 4, "dim1": offset % 4 ^ offset // 4}
        places[tuple(where.values())] = padded.address(offset)
    assert len(set(places.values())) == 16
    assert places[3, 0] == 15 + 2 * 3


# --- tensor memory ---------------------------------------------------------------------------------------------------


def test_split_access_formula():
    for split in (None, 8, 12, 40, 0):
        layout = tmem.tmem_atom("16x32bx2", 4, split)
        step = 4 if split is None else split
        for c, out in points(layout):
            assert out == {"row": c["lane"] % 16, "col": c["register"] + step * (c["lane"] // 16)}
    with pytest.raises(RepresentabilityError) as error:
        tmem.tmem_atom("16x32bx2", 4, 6)
    witness = error.value.diagnostic.witness
    assert witness["register"] & 6
    assert [repair.detail for repair in error.value.diagnostic.repairs] == ["split_columns = 8"]
    for arguments in (("32x32b", 1, 4), ("16x32bx2", 256), ("16x32bx2", 2, -2)):
        with pytest.raises(MalformedError):
            tmem.tmem_atom(*arguments)


def test_half_empty_quarters_are_read_by_the_split_access():
    # 64 rows lie in rows 0..15 of each quarter; 32x32b becomes 16x32bx2 with the upper lanes half the columns away
    memory = tmem.tensor_memory((64, 32), (64, 32))
    registers = tmem.tmem_registers(memory, "32x32b", 4)
    atom = tmem.tmem_atom("16x32bx2", 16)
    for c, out in points(registers):
        if c["warp"] == 0:
            where = atom(register=c["register"], lane=c["lane"])
            assert out == memory(row=where["row"], col=where["col"], block=0)


def test_padded_fp4_takes_two_bytes_each():
    packed, padded = tmem.tensor_memory((128, 16), (128, 16)), tmem.tensor_memory((128, 16), (128, 16), fp4_padded=True)
    for column in range(32):
        assert padded(row=5, col=column, block=0) == packed(row=5, col=column // 2, block=0)


# --- bad input -------------------------------------------------------------------------------------------------------

EIGHT = shared.swizzled_shared((8,), 1, 1, 1, (0,))


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("operand", lambda: scales.mfma_scale("C", (32, 2), (32, 32), (1, 1))),
        ("shape", lambda: scales.mfma_scale("A", (32, 2, 2), (32, 32), (1, 1))),
        ("tile", lambda: scales.mfma_scale("A", (32, 2), (64, 4), (1, 1))),
        ("scale_group", lambda: scales.wmma_scale("A", (32, 2), [], 64)),
        ("register_bases[0]", lambda: scales.wmma_scale("A", (32, 2), [], 32, [(3, 0)])),
        ("tile", lambda: scales.wmma_scale("A", (32, 2), [], tile=(16, 32))),
        ("warps_per_cta[1]", lambda: scales.mma_scale("A", (32, 2), (1, 0))),
        ("piece", lambda: shared.partitioned_shared(LinearLayout.identity({"offset": 2}), 2, 1, 0)),
        ("partitions", lambda: shared.partitioned_shared(EIGHT, 1, 1, 0)),
        ("dim", lambda: shared.partitioned_shared(EIGHT, 2, 1, 1)),
        ("element_bits", lambda: shared.transposed_read(32)),
        ("element_bits", lambda: shared.transposed_read(64, "gfx1250")),
        ("arch", lambda: shared.transposed_read(16, "gfx942")),
        ("k_width", lambda: amd.wmma_operand("A", (16, 16), 1, [], 4)),
        ("instruction[2]", lambda: amd.wmma_operand("A", (16, 16), 2, [], 8, instruction=(16, 16, 64))),
        ("column_stride", lambda: tmem.tensor_memory((128, 8), (128, 8), 8)),
        ("column_stride", lambda: tmem.tensor_memory((128, 8), (128, 8), 2, fp4_padded=True)),
        ("element_bits", lambda: tmem.tmem_registers(scales.tensor_memory_scales((32, 4)), "32x32b", 4)),
        ("cga", lambda: tmem.tensor_memory((256, 8), (128, 8), two_ctas=True)),
    ],
)
def test_the_argument_is_named(argument, call):
    with pytest.raises(MalformedError) as error:
        call()
    assert error.value.diagnostic.where == (argument,)
    assert error.value.diagnostic.because.startswith(argument)


@pytest.mark.parametrize(
    ("bases", "text"),
    [
        ([(2, 0)], "leave block positions empty"),
        ([(1, 0), (1, 0)], "reach the same block positions"),
        ([(1, 1), (1, 0)], "more than one dimension"),
    ],
)
def test_levels_that_do_not_enumerate_a_box(bases, text):
    with pytest.raises(AdmissibilityError, match=text) as error:
        blocked.blocked((1, 1), (4, 8), (1, 1), (1, 0), (16, 16), cga=bases)
    assert error.value.diagnostic.code == "LA703"
    assert error.value.diagnostic.where[0] == "cga"
    with pytest.raises(AdmissibilityError, match=text.replace("block", "tile")) as error:
        amd.wmma_accumulator((64, 64), 2, bases)
    assert error.value.diagnostic.where[0] == "register_bases and warp_bases"


def test_repairs_pass():
    with pytest.raises(MalformedError) as error:
        scales.tensor_memory_scales((48, 4))
    assert [repair.detail for repair in error.value.diagnostic.repairs] == ["shape[0] = 32 or 64"]
    with pytest.raises(AdmissibilityError) as error:
        shared.nvmma_shared((8, 16), 128, 16)
    assert [repair.detail for repair in error.value.diagnostic.repairs] == ["swizzle_bytes = 32"]
    assert shared.nvmma_shared((8, 16), 32, 16).is_invertible
    with pytest.raises(AdmissibilityError) as error:
        shared.nvmma_shared((4, 64), 128, 16)
    assert [repair.detail for repair in error.value.diagnostic.repairs] == ["swizzle_bytes = 0"]
    assert shared.nvmma_shared((4, 64), 0, 16).is_invertible
    memory = tmem.tensor_memory((128, 2), (128, 2))
    with pytest.raises(AdmissibilityError) as error:
        tmem.tmem_registers(memory, "16x256b", 4)
    names = [repair.detail.split("'")[1] for repair in error.value.diagnostic.repairs]
    assert names == ["32x32b", "16x64b"]
    for name in names:
        assert tmem.tmem_registers(memory, name, 4).is_surjective
    with pytest.raises(MalformedError) as error:
        amd.mfma_accumulator((64, 4), (64, 4), (1, 1))
    assert [repair.detail for repair in error.value.diagnostic.repairs] == ["transposed = True"]
    assert amd.mfma_accumulator((64, 4), (64, 4), (1, 1), transposed=True).is_surjective
    with pytest.raises(MalformedError) as error:
        nvidia.wgmma_accumulator((64, 64), (2, 2))
    assert [repair.detail for repair in error.value.diagnostic.repairs] == ["warps_per_cta = (4, 2)"]
    assert nvidia.wgmma_accumulator((64, 64), (4, 2)).is_surjective


def test_unswizzled_boxes_follow_the_last_dimension_first():
    turned = shared.nvmma_shared((512, 512), 0, 8, transposed=True)
    assert turned.bases["offset"][-2:] == ((0, 256), (256, 0))


def test_huge_buffers_are_addressed_but_not_listed():
    padded = padding.padded_shared((1 << 40, 1 << 40), [(1 << 20, 8)])
    assert padded.address(1 << 60) == (1 << 60) + (8 << 40)
    with pytest.raises(BudgetError) as error:
        padded.addresses()
    assert error.value.diagnostic.code == "LA708"


@pytest.mark.parametrize(
    "call",
    [
        lambda value: scales.mma_scale(value, (16, 2), (1, 1)),
        lambda value: amd.mfma_operand(value, (32, 8), (32, 32), (1, 1), 4),
        lambda value: amd_instructions.mfma_fragment("v_mfma_f32_32x32x8_f16", value),
        lambda value: tmem.tmem_atom(value),
    ],
)
def test_arrays_are_no_names(call):
    with pytest.raises(MalformedError):
        call(np.array([4, 4]))


# --- texts of Triton -------------------------------------------------------------------------------------------------

THREADS = {"register": [(0, 1)], "lane": [(0, 2), (1, 0), (2, 0), (4, 0), (8, 0)], "warp": [(16, 0)], "block": []}


def test_layouts_that_are_no_permutation_have_an_attribute_of_their_own():
    mixed = LinearLayout.from_bases({**THREADS, "warp": [(16, 1)]}, {"dim0": 32, "dim1": 4})
    text = interop.to_attribute(mixed)
    assert text.startswith("#ttg.generic_linear<{register = [[0, 1]], ")
    assert interop.from_attribute(text) == mixed
    assert interop.from_attribute("#generic_linear = " + text) == mixed
    with pytest.raises(RepresentabilityError, match="to_attribute writes it as generic_linear") as error:
        interop.to_gluon(mixed)
    assert error.value.diagnostic.code == "LA711"
    slanted = LinearLayout.from_bases({**THREADS, "register": [(1, 1)]}, {"dim0": 32, "dim1": 4})
    for write in (interop.to_attribute, interop.to_gluon):
        with pytest.raises(RepresentabilityError):
            write(slanted)


def test_shared_memory_that_repeats_an_element():
    unused = LinearLayout.from_bases({"offset": [(1,), (0,), (2,)]}, {"dim0": 4})
    twice = LinearLayout.from_bases({"offset": [(1,), (1,), (2,)]}, {"dim0": 4})
    assert interop.from_attribute(interop.to_attribute(unused)).bases["offset"] == unused.bases["offset"]
    with pytest.raises(RepresentabilityError, match="linearly dependent"):
        interop.to_attribute(twice)


def test_tensor_memory_as_gluon_prints_it():
    text = "_TensorMemoryLinearLayout(rows=[[1, 0], [2, 0]], cols=[[0, 1], [0, 0]], shape=[4, 2])"
    assert str(interop.from_gluon(text)) == "F2[row=(1,0)(2,0), col=(0,1)(0,0) -> dim0:4, dim1:2]"
    with pytest.raises(MalformedError, match="must have the arguments"):
        interop.from_gluon("_TensorMemoryLinearLayout(rows=[[1, 0]], cols=[])")


def test_values_of_the_new_families_survive_text_and_pickle():
    for layout in (
        scales.mfma_scale("B", (64, 8), (16, 16), (2, 2), (1, 2)),
        scales.tensor_memory_scales((256, 16), [(1, 0)]),
        shared.partitioned_shared(shared.swizzled_shared((4, 8), 2, 1, 4, (1, 0)), 2, 4, 0),
        shared.transposed_read(8),
        tmem.tmem_atom("16x32bx2", 8, 24),
    ):
        assert layoutalg.parse(str(layout)) == layout
        assert eval(repr(layout), {"LinearLayout": LinearLayout}) == layout
        assert pickle.loads(pickle.dumps(layout)) == layout
