"""Layout families: manuals' formulas, refusals, and texts of other systems."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from layoutalg import f2
from layoutalg.f2 import LinearLayout, kernel_of
from layoutalg.ground.errors import AdmissibilityError, MalformedError, RepresentabilityError
from layoutalg.interop import triton as interop
from layoutalg.targets.layouts import amd, amd_instructions, blocked, nvidia, padding, shared, tile, tmem
from layoutalg.targets.nvidia import wgmma


def points(layout):
    """Yield ({axis: value}, {dim: value}) over the whole domain."""
    for index in range(layout.size):
        coords, rest = {}, index
        for axis, bits in layout.in_axes:
            coords[axis], rest = rest & ((1 << bits) - 1), rest >> bits
        yield coords, layout.apply(coords)


def code(error):
    return error.value.diagnostic.code


# --- NVIDIA fragments, from the formulas of PTX ISA 9.1 -------------------------------------------------------------


def test_mma_accumulator_formula():
    for c, out in points(nvidia.mma_accumulator((16, 8), (1, 1))):
        q, g, v = c["lane"] % 4, c["lane"] // 4, c["register"]
        assert out == {"dim0": g + 8 * (v // 2), "dim1": 2 * q + v % 2}


@pytest.mark.parametrize(("width", "depth"), [(1, 8), (2, 16), (4, 32)])
def test_mma_operand_formulas(width, depth):
    for c, out in points(nvidia.mma_operand("A", (16, depth), (1, 1), width)):
        q, g, v = c["lane"] % 4, c["lane"] // 4, c["register"]
        assert out["dim0"] == g + 8 * (v // width % 2)
        assert out["dim1"] == width * q + v % width + 4 * width * (v // (2 * width))
    for c, out in points(nvidia.mma_operand("B", (depth, 8), (1, 1), width)):
        q, g, v = c["lane"] % 4, c["lane"] // 4, c["register"]
        assert out == {"dim0": width * q + v % width + 4 * width * (v // width), "dim1": g}


def test_f64_fragments_of_m8n8k4():
    for c, out in points(nvidia.mma_accumulator((8, 8), (1, 1), (8, 8))):
        assert out == {"dim0": c["lane"] // 4, "dim1": 2 * (c["lane"] % 4) + c["register"]}
    for c, out in points(nvidia.mma_operand("A", (8, 4), (1, 1), 1, (8, 8))):
        assert out == {"dim0": c["lane"] // 4, "dim1": c["lane"] % 4}


@pytest.mark.parametrize("n", [n for n in wgmma.N_VALUES if n & (n - 1) == 0])
def test_wgmma_accumulator_is_the_measured_one(n):
    layout = nvidia.wgmma_accumulator((64, n), n=n)
    table = layout.table().reshape(128, n // 2)
    assert np.array_equal(np.stack([table % 64, table // 64], axis=-1), wgmma.accumulator_coordinates(n))


def test_wgmma_fragment_of_every_width():
    for n in wgmma.N_VALUES:
        fragment = nvidia.wgmma_fragment(n)
        table = fragment.table().reshape(4, 8, 4, n // 8, 2, 2, 2)
        expected = wgmma.accumulator_coordinates(n).reshape(4, 8, 4, n // 8, 2, 2, 2)
        assert np.array_equal(table, expected), n


def test_wgmma_refuses_what_is_not_linear_and_what_has_no_registers():
    with pytest.raises(RepresentabilityError) as error:
        nvidia.wgmma_accumulator((64, 32), n=24)
    assert code(error) == "LA702"
    assert "24 columns are not a power of two; wgmma_fragment(24)" in str(error.value)
    with pytest.raises(RepresentabilityError) as error:
        nvidia.wgmma_operand("B", (16, 64))
    assert code(error) == "LA704"
    for bad in (12, 264, 0):
        with pytest.raises(MalformedError) as error:
            nvidia.wgmma_fragment(bad)
        assert code(error) == "LA701"
    with pytest.raises(MalformedError, match="multiple of 4"):
        nvidia.wgmma_accumulator((64, 64), (2, 2))


def test_ldmatrix_delivers_the_a_fragment():
    # matrices 0..3 are the quadrants (row half, column half) = (0,0) (1,0) (0,1) (1,1) of a 16 x 16 tile
    fragment = nvidia.ldmatrix_fragment(4)
    place = LinearLayout.from_bases(
        {"row": [(1, 0), (2, 0), (4, 0)], "col": [(0, 1), (0, 2), (0, 4)], "matrix": [(8, 0), (0, 8)]},
        {"dim0": 16, "dim1": 16},
    )
    operand = nvidia.mma_operand("A", (16, 16), (1, 1), 2)
    assert (place @ fragment).columns == operand.columns
    for c, out in points(fragment):
        assert out == {
            "row": c["lane"] // 4,
            "col": 2 * (c["lane"] % 4) + c["register"] % 2,
            "matrix": c["register"] // 2,
        }


def test_ldmatrix_transposed_exchanges_rows_and_columns():
    plain, turned = nvidia.ldmatrix_fragment(2), nvidia.ldmatrix_fragment(2, True)
    for c, out in points(plain):
        other = turned.apply(c)
        assert (out["row"], out["col"], out["matrix"]) == (other["col"], other["row"], other["matrix"])
    assert nvidia.ldmatrix_fragment(1, element_bits=8).in_dims == {"register": 4, "lane": 32}
    for c, out in points(nvidia.ldmatrix_rows(4)):
        assert out == {"row": c["lane"] % 8, "matrix": c["lane"] // 8}
    for arguments in ((3,), (4, True, 8), (1, False, 64)):
        with pytest.raises(MalformedError) as error:
            nvidia.ldmatrix_fragment(*arguments)
        assert code(error) == "LA701"


def test_tcgen05_access_formulas():
    formulas = {
        "32x32b": lambda t, r: (t, r),
        "16x64b": lambda t, r: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
        "16x128b": lambda t, r: (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)),
        "16x256b": lambda t, r: (t // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4)),
    }
    for name, formula in formulas.items():
        layout = tmem.tmem_atom(name, 4)
        assert layout.is_invertible
        for c, out in points(layout):
            assert (out["row"], out["col"]) == formula(c["lane"], c["register"]), name
    with pytest.raises(MalformedError, match="at most 128 registers"):
        tmem.tmem_atom("16x256b", 64)


def test_tensor_memory_half_tiles():
    # 64 rows live in rows 0..15 of each quarter; the other half holds the next block, or nothing
    alone = tmem.tensor_memory((64, 32), (64, 32))
    assert alone(row=16, col=3, block=0) == alone(row=0, col=3, block=0)
    assert tmem.tensor_memory((128, 32), (64, 32))(row=16, col=0, block=0) == {"dim0": 64, "dim1": 0}
    assert tmem.tensor_memory((64, 64), (64, 32))(row=16, col=0, block=0) == {"dim0": 0, "dim1": 32}
    for refused in (((32, 32), (64, 32)), ((128, 4), (64, 128), 1, False, [(0, 1), (0, 2), (0, 4)])):
        with pytest.raises(AdmissibilityError) as error:
            tmem.tensor_memory(*refused)
        assert code(error) == "LA706"
    with pytest.raises(AdmissibilityError) as error:
        tmem.tmem_registers(tmem.tensor_memory((128, 2), (128, 2)), "16x256b", 4)
    assert code(error) == "LA707"


# --- shared memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("swizzle", "stride"), [(32, 256), (64, 512), (128, 1024)])
def test_nvmma_shared_is_what_wgmma_reads(swizzle, stride):
    k = swizzle // 2
    place = shared.nvmma_shared((64, k), swizzle, 16).inverse()
    descriptor = wgmma.MatrixDescriptor(
        start_address_bytes=0, leading_bytes=16, stride_bytes=stride, base_offset=0, swizzle=f"{swizzle}B"
    )
    offsets = wgmma.operand_offsets(descriptor, rows=64, k=16, element_bits=16, major="K")
    for row in range(64):
        for inner in range(16):
            assert 2 * place(dim0=row, dim1=inner)["offset"] == offsets[row, inner]


def test_nvmma_shared_transposed_and_fp4():
    plain = shared.nvmma_shared((64, 32), 64, 16)
    turned = shared.nvmma_shared((32, 64), 64, 16, transposed=True)
    for c, out in points(plain):
        assert turned.apply(c) == {"dim0": out["dim1"], "dim1": out["dim0"]}
    padded = shared.nvmma_shared((8, 64), 128, 8, fp4_padded=True)
    assert kernel_of(padded).points == ({"offset": 8, "block": 0},)


def test_nvmma_shared_refusals():
    with pytest.raises(AdmissibilityError) as error:
        shared.nvmma_shared((4, 64), 128, 16)
    assert code(error) == "LA706"
    assert "a core is 8 rows of 64 elements; a block's part has 4 rows of 64" in str(error.value)
    for arguments in (((8, 64), 16, 16), ((8, 64), 128, 4), ((8, 64), 64, 16, False, True), ((2, 8, 64), 64, 16, True)):
        with pytest.raises(MalformedError) as error:
            shared.nvmma_shared(*arguments)
        assert code(error) == "LA701"


def test_padded_shared_as_documented():
    one = padding.padded_shared((8,), [(2, 1), (4, 2)], order=(0,))
    assert one.addresses().tolist() == [0, 1, 3, 4, 8, 9, 11, 12]
    assert [one.address(offset) for offset in range(8)] == one.addresses().tolist()
    assert (one.cosize, one.weights) == (13, (1, 3, 8))
    rows = padding.padded_shared((8, 4), [(8, 1)], offset_bases=[(0, 1), (0, 2), (2, 0), (4, 0), (1, 0)])
    order = [rows.linear(offset=offset, block=0)["dim0"] for offset in range(0, 32, 4)]
    assert order == [0, 2, 4, 6, 1, 3, 5, 7]
    assert pickle.loads(pickle.dumps(rows)) == rows
    assert eval(repr(rows), {"PaddedShared": padding.PaddedShared, "LinearLayout": LinearLayout}) == rows
    assert str(one).startswith("#ttg.padded_shared<[2:+1, 4:+2] {offset = [[")


def test_padding_beyond_the_buffer_is_none():
    far = padding.padded_shared((4, 4), [(2**63, 1), (2**70, 2**80), (4, 1)], order=(1, 0))
    assert far.addresses().tolist() == [far.address(offset) for offset in range(16)]


def test_padded_shared_refuses_the_linear_family_with_two_offsets():
    padded = padding.padded_shared((16,), [(4, 2)], order=(0,))
    with pytest.raises(RepresentabilityError) as error:
        padded.to_linear()
    witness = error.value.diagnostic.witness
    x, y = witness["x"], witness["y"]
    assert padded.address(x ^ y) != padded.address(x) ^ padded.address(y)
    assert code(error) == "LA705"
    assert "to_piecewise() is exact" in str(error.value)


def test_padded_shared_bad_input():
    for arguments in (
        {"pairs": [(3, 1)]},
        {"pairs": [(4, 0)]},
        {"pairs": [(4, 1), (4, 2)]},
        {"pairs": [(4,)]},
        {"pairs": 4},
        {"pairs": [(4, True)]},
        {"pairs": [(4, 1)], "order": (0, 1), "offset_bases": []},
        {"pairs": [(4, 1)], "offset_bases": [(0, 8)] * 4},
    ):
        with pytest.raises(MalformedError) as error:
            padding.padded_shared((4, 4), **arguments)
        assert code(error) == "LA700"
    with pytest.raises(AdmissibilityError) as error:
        padding.padded_shared((4, 4), [(4, 1)], offset_bases=[(0, 1), (0, 1), (1, 0), (2, 0)])
    assert error.value.diagnostic.witness["kernel"] == ({"offset": 3},)
    with pytest.raises(MalformedError):
        padding.padded_shared((4, 4), [(4, 1)]).address(16)


# --- clusters, slices, the growing rules ----------------------------------------------------------------------------


def test_cluster_bases_and_across_blocks():
    assert blocked.cluster_bases((2, 2)) == ((0, 1), (1, 0))
    assert blocked.cluster_bases((2, 4), split=(1, 2), order=(0, 1)) == ((0, 0), (0, 1), (0, 0))
    one = blocked.blocked((1, 1), (4, 8), (1, 1), (1, 0), (4, 8))
    two = blocked.blocked((1, 1), (4, 8), (1, 1), (1, 0), (8, 8), cga=[(1, 0), (0, 0)])
    assert blocked.across_blocks(one, [(1, 0), (0, 0)]) == two
    with pytest.raises(AdmissibilityError) as error:
        blocked.across_blocks(two, [(1, 0)])
    assert code(error) == "LA703"
    with pytest.raises(MalformedError):
        blocked.cluster_bases((2, 2), split=(4, 1))


def test_cluster_bases_with_holes_are_refused():
    with pytest.raises(AdmissibilityError) as error:
        blocked.blocked((1, 1), (4, 8), (1, 1), (1, 0), (8, 8), cga=[(2, 0)])
    assert error.value.diagnostic.witness == {"box": (4, 1), "reached": 2}


def test_slice_keeps_copies_outside_registers():
    parent = LinearLayout.from_bases(
        {"register": [(0, 1), (1, 0)], "lane": [(2, 0), (0, 2)], "warp": [], "block": []},
        {"dim0": 4, "dim1": 4},
        (1, 2),
    )
    sliced = blocked.slice_of(parent, 1)
    assert str(sliced) == "F2[register=(1), lane=(2)(0), warp=, block= -> dim0:4] ^ (1)"
    with pytest.raises(MalformedError, match="below the rank 2"):
        blocked.slice_of(parent, 2)
    with pytest.raises(MalformedError, match="must have the outputs"):
        blocked.slice_of(LinearLayout.identity({"x": 2}), 0)


def test_tile_product_counts_whole_tiles():
    grown = tile.Tile.start((1, 0)).grow("register", 1, 4).times({"warp": ((0, 1), (1, 0))})
    assert grown.sizes == (2, 8)
    assert dict(grown.bases)["warp"] == ((0, 4), (1, 0))


@pytest.mark.parametrize(
    "call",
    [
        lambda: blocked.blocked((1,), (32,), (1,), (0,), (48,)),
        lambda: blocked.blocked((1,), (32,), (1,), (0,), (4.0,)),
        lambda: blocked.blocked((1,), (32,), (1,), (0,), (True,)),
        lambda: blocked.blocked((1,), (32,), (1,), (0,), ()),
        lambda: blocked.blocked((1, 2), (32,), (1,), (0,), (4,)),
        lambda: blocked.blocked((1, 1), (8, 4), (1, 1), (0, 0), (8, 8)),
        lambda: blocked.blocked((1, 1), (8, 4), (1, 1), (1, 0), (8, 8), cga=[(3, 0)]),
        lambda: blocked.blocked((1, 1), (8, 4), (1, 1), (1, 0), (8, 8), cga=[(1,)]),
        lambda: nvidia.mma_accumulator((16,), (1,)),
        lambda: amd.wmma_accumulator((16, 16), 2.0, []),
        lambda: blocked.cluster_bases(()),
        lambda: blocked.blocked_operand("C", (1, 1), (8, 4), (1, 1), (1, 0), (8, 8)),
        lambda: nvidia.mma_operand("A", (16, 16), (1, 1), 3),
        lambda: amd.mfma_accumulator((16, 16), (16, 16), (1, 1), transposed=None),
        lambda: shared.swizzled_shared((8, 8), 3, 1, 1, (1, 0)),
        lambda: blocked.blocked_operand("A", (1,), (32,), (1,), (0,), (8,)),
        lambda: nvidia.ldmatrix_fragment(1, 1),
        lambda: tmem.tmem_registers(LinearLayout.identity({"row": 128}), "32x32b", 4),
        lambda: tmem.tmem_registers(tmem.tensor_memory((128, 4), (128, 4)), "32x32b", 2),
        lambda: amd_instructions.mfma_fragment("v_mfma_f32_32x32x8_f16", "E"),
    ],
)
def test_malformed_arguments_are_named(call):
    with pytest.raises(MalformedError) as error:
        call()
    assert code(error) == "LA700"
    assert error.value.diagnostic.because.startswith(error.value.diagnostic.where[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: nvidia.mma_accumulator((16, 16), (1, 1), (16, 16)),
        lambda: amd.mfma_accumulator((16, 16), (16, 32), (1, 1)),
        lambda: amd.mfma_accumulator((64, 4), (64, 4), (1, 1)),
        lambda: amd.mfma_accumulator((16, 16), (16, 16), (1, 1), result_bits=16),
        lambda: amd.wmma_accumulator((16, 16), 4, []),
        lambda: amd.wmma_accumulator((32, 16), 2, [], tile=(32, 16)),
        lambda: amd.wmma_operand("A", (16, 16), 2, [], 16),
        lambda: tmem.tmem_atom("16x32b"),
        lambda: tmem.tmem_registers(tmem.tensor_memory((128, 4), (128, 4)), "16x32bx2", 4),
        lambda: tmem.tensor_memory((32, 8), (32, 8)),
        lambda: amd_instructions.mfma_fragment("v_mfma_f32_32x32x8_f16", "A", "gfx90a"),
        lambda: amd_instructions.mfma_fragment("v_mfma_f32_16x16x8_xf32", "A", "gfx950"),
        lambda: amd_instructions.wmma_fragment("v_wmma_i32_16x16x32_iu4", "A", "gfx1100"),
    ],
)
def test_shapes_no_hardware_has(call):
    with pytest.raises(MalformedError) as error:
        call()
    assert code(error) == "LA701"
    assert error.value.diagnostic.source


def test_amd_tensor_layouts_are_the_instructions_fragments():
    for k, name in ((8, "v_mfma_f32_32x32x8_f16"), (16, "v_mfma_f32_32x32x16_f16")):
        for operand, shape in (("A", (32, k)), ("B", (k, 32))):
            tensor = amd.mfma_operand(operand, shape, (32, 32), (1, 1), k // 2)
            assert tensor.columns == amd_instructions.mfma_fragment(name, operand, "gfx950").columns
    result = amd_instructions.mfma_fragment("v_mfma_f32_32x32x8_f16", "D")
    assert amd.mfma_accumulator((32, 32), (32, 32), (1, 1)).columns == result.columns
    double = amd_instructions.mfma_fragment("v_mfma_f64_16x16x4_f64", "D")
    assert amd.mfma_accumulator((16, 16), (16, 16), (1, 1), result_bits=64).columns == double.columns
    for version, arch, width in ((1, "gfx1100", 16), (2, "gfx1201", 4)):
        name = "v_wmma_f32_16x16x16_f16"
        tensor = amd.wmma_operand("A", (16, 16), version, [], width)
        assert tensor.columns == amd_instructions.wmma_fragment(name, "A", arch).columns
        assert (
            amd.wmma_accumulator((16, 16), version, []).columns
            == amd_instructions.wmma_fragment(name, "D", arch).columns
        )


# --- other systems' texts -------------------------------------------------------------------------------------------

MMA = nvidia.mma_accumulator((16, 16), (1, 2))
MMA_TEXT = (
    "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
    "warp = [[0, 8]], block = []}>"
)


def test_attribute_text():
    assert interop.to_attribute(MMA) == MMA_TEXT
    assert interop.from_attribute(MMA_TEXT) == MMA
    assert (
        interop.from_attribute(
            " ttg.linear <{ warp=[[0,8]],register = [[0, 1], [8, 0]],\n lane = "
            "[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], block = [] }> "
        )
        == MMA
    )
    smem = shared.swizzled_shared((4, 4), 1, 1, 4, (1, 0))
    text = interop.to_attribute(smem, alignment=128)
    assert text == "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 1], [2, 2]], block = []}, alignment = 128>"
    assert interop.from_attribute(text) == smem


def test_gluon_text():
    text = interop.to_gluon(MMA)
    assert text == (
        "gl.DistributedLinearLayout(reg_bases=[[0, 1], [8, 0]], lane_bases=[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
        "warp_bases=[[0, 8]], block_bases=[], shape=[16, 16])"
    )
    assert interop.from_gluon(text) == MMA
    assert interop.to_gluon(MMA, module="").startswith("DistributedLinearLayout(")


def test_bases_as_dictionaries_and_objects():
    bases, dims = interop.to_bases(MMA)
    assert interop.from_bases(dict(bases), dict(dims)) == MMA
    assert interop.from_bases(bases, ["dim0", "dim1"]) == MMA
    assert interop.from_object(SimpleNamespace(bases=bases, out_dims=dims)) == MMA
    assert interop.from_object(MMA) == MMA
    with pytest.raises(MalformedError, match="must have bases and out_dims"):
        interop.from_object(object())
    with pytest.raises(MalformedError, match="must have from_bases"):
        interop.to_object(MMA, object())


def test_what_triton_cannot_hold():
    plain = {"register": [(1,)], "lane": [], "warp": [], "block": []}
    for layout in (
        LinearLayout.from_bases(plain, {"dim0": 2}, (1,)),
        LinearLayout.from_bases(plain, {"dim0": 4}),
        LinearLayout.from_bases(plain, {"row": 2}),
        LinearLayout.from_bases({"lane": [(1,)]}, {"dim0": 2}),
        LinearLayout.from_bases({axis: [] for axis in plain}, {}),
    ):
        for write in (interop.to_attribute, interop.to_gluon):
            with pytest.raises(RepresentabilityError) as error:
                write(layout)
            assert code(error) == "LA711"
    with pytest.raises(RepresentabilityError, match="Triton allows 64"):
        interop.to_bases(LinearLayout.identity({"x": 2**30, "y": 2**30, "z": 2**5}))
    # sizes are 32-bit signed integers there
    long = LinearLayout.from_bases({"long": [(0,)] * 31}, {"dim0": 2})
    for layout, named in (
        (LinearLayout.identity({"dim0": 2**31}), "input axis 'dim0'"),
        (long, "input axis 'long'"),
        (LinearLayout.from_bases({"lane": [(1,)]}, {"wide": 2**31}), "output axis 'wide'"),
    ):
        for write in (interop.to_bases, lambda one: interop.to_object(one, SimpleNamespace(from_bases=print))):
            with pytest.raises(RepresentabilityError, match=named) as error:
                write(layout)
            assert code(error) == "LA711"
    assert interop.to_bases(LinearLayout.identity({"dim0": 2**30}))[1] == [("dim0", 2**30)]


def test_gluon_text_names_its_shape():
    text = interop.to_gluon(MMA)
    assert interop.from_gluon(text, (16, 16)) == interop.from_gluon(text, [16, 16]) == MMA
    for shape in ((8, 8), (16,), [16, 16, 1], 16):
        with pytest.raises(MalformedError, match="LA710") as error:
            interop.from_gluon(text, shape)
        assert error.value.diagnostic.where == ("shape",)
    memory = "SharedLinearLayout(offset_bases=[[1], [2]], block_bases=[], alignment=16)"
    assert interop.from_gluon(memory, (4,)).out_dims == {"dim0": 4}


@pytest.mark.parametrize("literal", ["{[1]: 2}", "{[1]}", "[{[]: [1]}]", "-[1]", "'a' + 1", "[[1], *x]"])
def test_gluon_arguments_that_are_no_literals(literal):
    with pytest.raises(MalformedError, match="LA710"):
        interop.from_gluon(f"SharedLinearLayout(offset_bases={literal})")


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        "#ttg.linear<{}>",
        "#ttg.linear<{register = [[0, 1]], lane}>",
        "#ttg.linear<{register = [0, 1]}>",
        "#ttg.linear<{register = [[0, 1]]}, alignment = 16>",
        "#ttg.linear<{offset = [[0, 1]]}>",
        "#ttg.linear<{register = [[0, 1]}>",
        "#ttg.linear<{register = [[0, 1]], register = [[1, 0]]}>",
        "#ttg.linear<{register = [[0, 1]]}> tail",
        "#ttg.shared_linear<{offset = [[0, 1]]}, alignment 16>",
        "#ttg.blocked<{order = [1, 0]}>",
    ],
)
def test_bad_attribute_text(text):
    with pytest.raises(MalformedError) as error:
        interop.from_attribute(text)
    assert code(error) == "LA710"


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        "gl.BlockedLayout([1], [32], [4], [0])",
        "SharedLinearLayout([[0, 1]])",
        "SharedLinearLayout(offset_bases=x)",
        "SharedLinearLayout(offset_bases=5)",
        "SharedLinearLayout(**{})",
        "DistributedLinearLayout(reg_bases=[[1]])",
        "SharedLinearLayout(offset_bases=[])",
        "SharedLinearLayout(offset_bases=[5])",
        "SharedLinearLayout(offset_bases=[[1]], other=1)",
        "SharedLinearLayout(offset_bases=[[1]], offset_bases=[[1]])",
        "(" * 300,
    ],
)
def test_bad_gluon_text(text):
    with pytest.raises(MalformedError) as error:
        interop.from_gluon(text)
    assert code(error) == "LA710"


def test_reading_checks_vectors_as_layouts_do():
    with pytest.raises(MalformedError) as error:
        interop.from_attribute("#ttg.linear<{register = [[0, 1], [1]]}>")
    assert code(error) == "LA200"
    with pytest.raises(MalformedError) as error:
        interop.from_attribute("#ttg.linear<{register = [[0, 4]]}>", shape=(2, 2))
    assert code(error) == "LA200"


def test_hardware_that_does_not_exist_is_refused() -> None:
    with pytest.raises(MalformedError, match="must be \\(16, 16\\) for 64-bit results"):
        amd.mfma_accumulator((32, 32), (32, 32), (1, 1), result_bits=64)
    with pytest.raises(AdmissibilityError, match="needs 4096 columns"):
        tmem.tensor_memory((128, 4096), (128, 256))
    full = tmem.tensor_memory((128, 1024), (128, 256))
    with pytest.raises(AdmissibilityError, match="needs 1024 columns of 32 bits"):
        tmem.tmem_registers(full, "32x32b", 4, 32)
    assert tmem.tmem_registers(full, "32x32b", 4, 16).is_surjective


def test_operands_that_warps_hold_twice_are_converted_within_the_warp():
    # two of the four warps hold the same values of A, so a solution may read those of the other warp
    held = nvidia.mma_operand("A", (64, 64), (2, 2), 2)
    found = f2.solve(held, held)
    for solution, stays in ((found.choose("local"), True), (found.choose(("lane",)), False)):
        warps = [coords["warp"] == solution.apply(coords)["warp"] for coords, _ in points(held)]
        assert all(warps) is stays
    assert f2.minimal_conversion(held, held) == f2.empty()
