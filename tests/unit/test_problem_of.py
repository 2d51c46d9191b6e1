"""What a problem can be made of: tensors of other libraries, layouts of any family, and what is refused and why."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest

import layoutalg as la
from layoutalg.proofs.tensor import tensor_of
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.layouts.padding import padded_shared
from layoutalg.targets.layouts.shared import nvmma_shared, swizzled_shared

TENSOR = la.Tensor((1024, 512))
SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"
NVMMA = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"


class Torch:
    """What a tensor of torch tells."""

    def __init__(self, shape, stride, dtype, address):
        self.shape, self._stride, self.dtype, self._address = shape, stride, dtype, address

    def stride(self):
        return self._stride

    def data_ptr(self):
        if self._address is None:
            raise RuntimeError("no storage")
        return self._address


class TorchDtype:
    def __init__(self, name):
        self._name = name

    def __str__(self):
        return f"torch.{self._name}"

    __repr__ = __str__


class Exporter:
    """An array that speaks DLPack alone."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize(
    ("value", "shape", "stride", "dtype"),
    [
        (la.Tensor((4, 6), None, "f16"), (4, 6), (6, 1), "f16"),
        (((4, 6), (1, 4), "float32"), (4, 6), (1, 4), "f32"),
        (((4, 6), "e4m3"), (4, 6), (6, 1), "u8"),
        (np.zeros((4, 6), np.float16), (4, 6), (6, 1), "f16"),
        (np.zeros((4, 6), np.int64)[::2, 1:].T, (5, 2), (1, 12), "s64"),
        (np.zeros((4, 6), np.int8)[:, ::-1], (4, 6), (6, -1), "u8"),
        (np.broadcast_to(np.float32(0), (3, 4)), (3, 4), (0, 0), "f32"),
        (Exporter(np.zeros((4, 6), np.float64)[::2]), (2, 6), (12, 1), "f64"),
        (Exporter(np.zeros((4, 6), bool)), (4, 6), (6, 1), "u8"),
        (Torch((4, 6), (6, 1), TorchDtype("bfloat16"), 4096), (4, 6), (6, 1), "bf16"),
        (Torch((4, 6), (6, 1), TorchDtype("float8_e4m3fn"), None), (4, 6), (6, 1), "u8"),
        (
            SimpleNamespace(
                __cuda_array_interface__={"shape": (4, 6), "typestr": "<f2", "strides": None, "data": (512, False)}
            ),
            (4, 6),
            (6, 1),
            "f16",
        ),
        (
            SimpleNamespace(
                dtype=SimpleNamespace(name="bfloat16"),
                __cuda_array_interface__={"shape": (4, 6), "typestr": "<V2", "strides": (2, 8), "data": (16, False)},
            ),
            (4, 6),
            (1, 4),
            "bf16",
        ),
    ],
)
def test_a_tensor_is_read_from_what_holds_one(value, shape, stride, dtype):
    tensor = tensor_of(value)
    assert (tensor.shape, tensor.stride, tensor.dtype) == (shape, stride, dtype)
    assert tensor == eval(repr(tensor), {"Tensor": la.Tensor})
    assert hash(tensor) == hash(la.Tensor(shape, stride, dtype, tensor.base_align_bytes))


def test_the_address_says_the_alignment():
    for address, aligned in ((4096, 256), (48, 16), (2, 2), (0, 256), (None, 256)):
        assert tensor_of(Torch((4,), (1,), "torch.float16", address)).base_align_bytes == aligned
    array = np.zeros(1024, np.uint8)
    address = array.__array_interface__["data"][0]
    assert tensor_of(array[1:]).base_align_bytes == min(256, (address + 1) & -(address + 1))
    assert tensor_of(Exporter(array[1:])).base_align_bytes == min(256, (address + 1) & -(address + 1))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("bfloat16", "bf16"), ("Float16", "f16"), ("BFloat16", "bf16"), ("cutlass::half_t", "f16"), ("fp16", "f16"),
        ("TFloat32", "tf32"),
        ("cutlass::float_e4m3_t", "u8"), ("uint8_t", "u8"), ("tl.bfloat16", "bf16"), ("fp8e5", "u8"),
        ("torch.int32", "s32"), (np.uint16, "u16"), (np.dtype("float64"), "f64"), ("f32_ftz", "f32_ftz"),
        (float, "f64"),
        (int, "s64"), ("Float8E4M3FN", "u8"), ("Int8", "u8"),
    ],
)  # fmt: skip
def test_names_of_element_types(name, ours):
    assert la.Tensor((4,), dtype=name).dtype == ours


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (((4, 6), None, "float"), "must be one of u8, "),
        (((4, 6), None, "complex64"), "must be one of"),
        (((4, 6), None, np.dtype(">f2")), "not dtype\\('>f2'\\)"),
        (np.zeros((4, 6), np.complex64), "must be one of"),
        (np.zeros((4, 6), [("a", "f4"), ("b", "u1")])["a"], "strides\\[0\\]"),
        (((4, 0), None, "f16"), "must be in \\[1, "),
        (((4, 6), (6,), "f16"), "must have 2 entries"),
        (((), None, "f16"), "1 to 16 dimensions"),
        ("(4,6):(6,1)", "must be a Tensor"),
        (None, "must be a Tensor"),
        ((1,), "must be a Tensor"),
        (SimpleNamespace(__dlpack__=lambda: 3), "DLPack capsule"),
    ],
)
def test_what_is_not_a_tensor(value, words):
    with pytest.raises(la.MalformedError, match=words) as caught:
        tensor_of(value)
    assert caught.value.diagnostic.code == "LA375"


@pytest.mark.parametrize(
    "smem",
    [
        SWIZZLED, la.parse(SWIZZLED), la.convert.to_linear(la.parse(SWIZZLED)),
        la.convert.to_piecewise(la.parse(SWIZZLED)),
        "Sw<3,4,3,byte> o 0 o (64,64):(64,1)", "Sw< 3, 4, 3, byte > o (64,64):(64,1)",
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", NVMMA,
        nvmma_shared((64, 64), 128, 16), nvmma_shared((64, 64), 128, 16).inverse(),
        swizzled_shared((64, 64), 8, 1, 8, (1, 0)),
    ],
)  # fmt: skip
def test_every_spelling_of_a_layout_is_one_problem(smem):
    problem = TensorMapProblem.of(TENSOR, (64, 64), smem)
    assert (problem.smem_modes, problem.swizzle) == ((((64, 64),), ((64, 1),)), "128B")
    assert problem == TensorMapProblem.of(TENSOR, (64, 64), swizzle="128B")
    assert problem == TensorMapProblem.of(TENSOR, (64, 64), "(64,64):(64,1)", swizzle=la.Swizzle(3, 3, 3))
    assert problem == TensorMapProblem.of(TENSOR, (64, 64), "(64,64):(64,1)", swizzle=la.Swizzle(3, 4, 3, "byte"))
    assert OperandProblem.of("A", "bf16", smem, tile=(64, 64)).smem_modes == problem.smem_modes


def test_a_named_axis_is_its_dimension_and_others_stand_in_order():
    square = {"row": 8, "col": 8}
    for order in (("row", "col"), ("col", "row")):
        strides = {"row": 8, "col": 1}
        layout = la.IntegerLayout.from_strides({n: square[n] for n in order}, [strides[n] for n in order])
        assert TensorMapProblem.of(TENSOR, (8, 8), layout).smem_modes == (((8, 8),), ((8, 1),))
        renamed = la.IntegerLayout.from_strides(dict.fromkeys("xy", 8), [strides[n] for n in order])
        expected = (((8, 8),), ((8, 1),)) if order[0] == "row" else (((8, 1),), ((8, 8),))
        assert TensorMapProblem.of(TENSOR, (8, 8), renamed).smem_modes == expected
        turned = TensorMapProblem.of(TENSOR, (8, 8), renamed, axes=("y", "x")).smem_modes
        assert turned == tuple(reversed(expected))


def test_one_mode_is_the_flat_coordinate_dimension_0_fastest():
    assert TensorMapProblem.of(TENSOR, (8, 4), "32:1").smem_modes == (((8, 1),), ((4, 8),))
    flat = la.convert.to_linear(la.parse("(8,4):(4,1)"))
    assert TensorMapProblem.of(TENSOR, (8, 4), flat).smem_modes == (((8, 4),), ((4, 1),))


def test_padding_is_a_pitch():
    padded = padded_shared((16, 32), [(32, 4)], (1, 0))
    assert TensorMapProblem.of(TENSOR, (16, 32), padded).smem_modes == (((16, 36),), ((32, 1),))
    text = "#ttg.padded_shared<[32:+4] {order = [1, 0], shape = [16, 32]}>"
    assert TensorMapProblem.of(TENSOR, (16, 32), text) == TensorMapProblem.of(TENSOR, (16, 32), padded)


@pytest.mark.parametrize(
    ("smem", "words"),
    [
        (
            "(64,32):(32,1)",
            "must have modes with the tile's extents \\(32, 64\\), or one mode, not \\(64, 32\\); mode k",
        ),
        ("(8,4,64):(1,8,32)", "must have modes"),
        ("Z[x:64=(1), y:32=(64) -> offset]", "pass axes=..., outermost dimension first"),
        ("F2[i=(1)(2) -> offset:4]", "must have the 2048 elements"),
        ("(32,64):(-64,1)", "must have offsets in \\[0, "),
        ("(32,64):(1073741824,34359738368)", "must have offsets in \\[0, "),
        (7, "must be a layout or the text of one"),
        (la.Swizzle(3, 3, 3), "must be a layout or the text of one"),
        (nvmma_shared((64, 64), 128, 16, cga=((1, 0),)), "must be for one block"),
        ("F2[offset=(0,1)(0,0) -> dim0:1, dim1:2]", "must have the tile's extents"),
        (
            "F2[x=(1,0)(2,0)(4,0)(8,0)(16,0), y=(0,1)(0,2)(0,4)(0,8)(0,16)(0,32) -> a:32, b:64]",
            "must have a single output",
        ),
    ],
)
def test_what_is_not_a_layout_of_the_tile(smem, words):
    with pytest.raises(la.MalformedError, match=words) as caught:
        TensorMapProblem.of(TENSOR, (32, 64), smem)
    assert caught.value.diagnostic.code == "LA376"


@pytest.mark.parametrize(
    ("smem", "words"),
    [
        (
            "F2[dim0=(1,0)(2,0)(4,0), dim1=(0,1)(8,0)(16,0) -> offset:32, block:2]",
            "must have a single output, the offset",
        ),
        ("Z[row:8=(8,0), col:8=(1,1) -> offset, bank%4]", "must have a single output, the offset"),
        ("F2[x=(1,0)(2,0)(4,0), y=(0,1)(0,2)(0,4) -> offset:8, partition:8]", "must have a single output, the offset"),
    ],
)
def test_no_part_of_a_value_is_dropped(smem, words):
    with pytest.raises(la.MalformedError, match=words):
        TensorMapProblem.of(TENSOR, (8, 8), smem)


def test_where_values_lie_in_registers_is_not_where_they_lie_in_memory():
    with pytest.raises(la.MalformedError, match="must map coordinates to offsets"):
        TensorMapProblem.of(la.Tensor((64,)), (8,), "F2[register=(1), lane=(2)(4) -> dim0:8]")


def test_axes_name_leaves_and_are_not_ignored():
    turned = TensorMapProblem.of(TENSOR, (8, 8), "(8,8):(1,8)", axes=("c1", "c0"))
    assert turned.smem_modes == (((8, 8),), ((8, 1),))
    with pytest.raises(la.MalformedError, match="must be None because the outputs"):
        TensorMapProblem.of(TENSOR, (64, 64), nvmma_shared((64, 64), 128, 16), axes=("offset", "block"))
    with pytest.raises(la.MalformedError, match="axes"):
        TensorMapProblem.of(TENSOR, (8, 8), "(8,8):(1,8)", axes=("x", "y"))


def test_copies_in_shared_memory_are_not_a_place():
    twice = la.LinearLayout.from_bases({"offset": [(0, 1), (0, 1), (1, 0)]}, {"dim0": 2, "dim1": 2})
    with pytest.raises(la.MalformedError, match="must contain every element once, not \\[0, 3\\]"):
        TensorMapProblem.of(TENSOR, (2, 2), twice)


def test_tiles_beyond_any_shared_memory_are_not_listed():
    sparse = "#ttg.shared_linear<{offset = [[0, 1111111111], [37, 1]]}, alignment = 16>"
    with pytest.raises(la.MalformedError, match="at most 1048576 elements"):
        OperandProblem.of("A", "f16", sparse)
    big = la.Tensor((4096, 4096))
    assert TensorMapProblem.of(big, (4096, 4096), "(4096,4096):(4096,1)").smem_modes == (((4096, 4096),), ((4096, 1),))


def test_a_swizzle_that_is_not_the_hardware_s_names_the_nearest():
    with pytest.raises(la.RepresentabilityError, match="closest hardware swizzle is Sw<3,3,3>, 128B") as caught:
        TensorMapProblem.of(TENSOR, (64, 64), "Sw<3,4,3> o 0 o (64,64):(64,1)")
    witness = caught.value.diagnostic.witness
    layout = la.parse("Sw<3,4,3> o 0 o (64,64):(64,1)")
    assert layout(*witness["coordinate"]) == witness["offset"] != witness["strided"]
    with pytest.raises(la.MalformedError, match="closest hardware swizzle is Sw<2,3,3>, 64B"):
        TensorMapProblem.of(TENSOR, (64, 64), "(64,64):(64,1)", swizzle=la.Swizzle(2, 4, 3))
    with pytest.raises(la.MalformedError, match="smem already has the swizzle 128B"):
        TensorMapProblem.of(TENSOR, (64, 64), SWIZZLED, swizzle="64B")
    with pytest.raises(la.AdmissibilityError, match="LA111"):
        TensorMapProblem.of(((64, 64), "f64"), (8, 8), "Sw<1,2,3,byte> o 0 o (8,8):(8,1)")


def test_backward_digits_are_refused():
    with pytest.raises(la.RepresentabilityError, match="dimension 0 has a negative stride"):
        TensorMapProblem.of(TENSOR, (8, 8), la.IntegerLayout.from_strides({"row": 8, "col": 8}, (-8, 1), 56))


def test_the_first_element_lies_at_the_base_of_a_copied_tile():
    with pytest.raises(la.MalformedError, match="add the 128 bytes to the base instead"):
        TensorMapProblem.of(TENSOR, (8, 8), la.ComposedLayout(la.Swizzle(0, 0, 0), 64, la.CuteLayout((8, 8), (8, 1))))
    with pytest.raises(la.MalformedError, match="at a multiple of 1024 bytes, the period of 128B"):
        TensorMapProblem.of(TENSOR, (64, 64), "Sw<3,3,3> o 8 o (64,64):(64,1)")
    operand = OperandProblem.of("A", "f16", "Sw<3,3,3> o 512 o (64,64):(64,1)")
    assert (operand.smem_base_bytes, operand.swizzle) == (1024, "128B")


def test_options_are_the_problem_s_fields():
    problem = TensorMapProblem.of(
        TENSOR,
        (64, 64),
        SWIZZLED,
        direction="store",
        bounds=((0, 1000), (0, 500)),
        origin_multiple=[64, 64],
        oob_fill=None,
    )
    assert (problem.direction, problem.bounds, problem.origin_multiple) == ("store", ((0, 1000), (0, 500)), (64, 64))
    with pytest.raises(la.MalformedError, match="must be among base_elem_offset"):
        TensorMapProblem.of(TENSOR, (64, 64), SWIZZLED, colour="red")
    with pytest.raises(la.MalformedError, match="in     TensorMapProblem\\.bounds"):
        TensorMapProblem.of(TENSOR, (64, 64), SWIZZLED, bounds=((0, 2000), (0, 500)))
    with pytest.raises(la.MalformedError, match="tile must have 2 entries"):
        TensorMapProblem.of(TENSOR, (64,), "64:1")
    with pytest.raises(la.MalformedError, match="TensorMapProblem\\.arch"):
        TensorMapProblem.of(TENSOR, (64, 64), SWIZZLED, arch="sm_1")


def test_a_bare_layout_is_told_where_to_go():
    with pytest.raises(la.MalformedError, match="for a layout use layoutalg\\.tensormap"):
        synthesize_tensormap(la.parse(SWIZZLED))


def test_operands_of_an_element_type_or_a_tensor():
    assert OperandProblem.of("B", np.float16, "Sw<3,3,3> o 0 o (64,64):(64,1)").dtype == "f16"
    assert OperandProblem.of("B", TENSOR, "Sw<3,3,3> o 0 o (64,64):(64,1)").dtype == "bf16"
    assert OperandProblem.of("A", "bf16", tile=(64, 64), swizzle="128B") == OperandProblem.of("A", "bf16", SWIZZLED)
    for wrong, words in (
        (("A", "f32", SWIZZLED), "dtype must be one of"),
        (("C", "f16", SWIZZLED), "operand"),
        (("A", "f16", "64:1"), "two dimensions"),
        (("A", "f16"), "must be a layout if no tile is given"),
    ):
        with pytest.raises(la.MalformedError, match=words):
            OperandProblem.of(*wrong)


WRONG = (
    None, True, 0, -1, 7, 2**63, 10**5000, 0.5, float("nan"), 1j, "", "x", "128B", "\ud800", "#", "#ttg.", "4:1",
    "F2[", "{", "Sw<3,4,3,byte> o", "Sw<99,99,99,byte> o 4:1", b"", (), [], {}, set(), (1,), (1, 2), ((1, 2),),
    [[[]]], [None], {"a": 1}, object(), int, len, np.int64(3), np.float32(2.0), np.array(3), np.array([1, 2]),
    np.array([]), np.array(["a"]), np.array([None, 1], dtype=object), np.zeros((2, 2, 2), np.int8), np.dtype("V3"),
    la.Swizzle(3, 4, 3), la.Tensor((8, 8)), la.CuteLayout((8, 8)), la.CuteLayout(()), la.CuteLayout((0, 8)),
    la.parse("4:1"), la.parse("Z[ -> offset]"), la.parse("Z[i:4=(1,1) -> a, b%3]"), la.parse("F2[ -> ]"),
    la.parse("x 4:1 -> x:4 | x<3"), la.parse("x 4:1 -> x:4"), la.parse("F2[offset=(1)(2) -> dim0:4]"),
    la.parse("F2[offset=(1)(1) -> dim1:4]"), TENSOR, iter(()), Ellipsis,
    SimpleNamespace(shape=3, dtype=4, stride=lambda: 5), SimpleNamespace(__array_interface__={}), la.parse(SWIZZLED),
    SimpleNamespace(__cuda_array_interface__={"shape": "x", "typestr": "?"}), la.CuteLayout((8, 8), (2**60, 1)),
)  # fmt: skip


def test_whatever_is_given_a_problem_comes_back_or_a_layout_error():
    rng = random.Random(7)
    right = {"tensor": la.Tensor((64, 64)), "tile": (8, 8), "smem": "(8,8):(8,1)"}
    made = 0
    for case in range(4000):
        given = dict(right)
        names = ["tensor", "tile", "smem", "swizzle", "axes", "arch", "direction", "bounds", "base_elem_offset"]
        for name in rng.sample(names, rng.choice((1, 1, 2))) if case >= len(WRONG) * 5 else [names[case % 5]]:
            given[name] = WRONG[case // 5] if case < len(WRONG) * 5 else rng.choice(WRONG)
        operand = {
            "tensor": given["tensor"],
            **{n: given[n] for n in ("tile", "smem", "swizzle", "axes") if n in given},
        }
        for make in (lambda: TensorMapProblem.of(**given), lambda: OperandProblem.of("A", **operand)):  # noqa: B023
            try:
                problem = make()
            except la.LayoutError as error:
                assert len(str(error)) < 3000
                json.dumps(error.diagnostic.to_json(), allow_nan=False)
                continue
            made += 1
            assert type(problem).from_json(problem.to_json()) == problem
    assert made > 500


def test_a_printout_over_elements_of_another_width_is_refused():
    text = "smem_ptr[16b](unset) o (64,32):(32,1)"
    assert la.tensormap(la.Tensor((512, 512), dtype="bf16"), (64, 32), text).tensor_map.box == (32, 64)
    for dtype in ("f32", "u8"):
        with pytest.raises(la.MalformedError, match=r"(?s)LA375.*16 bits"):
            la.tensormap(la.Tensor((512, 512), dtype=dtype), (64, 32), text)
