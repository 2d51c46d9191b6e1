"""Names of element types: CuTe's, Triton's, PyTorch's, NumPy's, PTX's and MLIR's, each with its TensorMap type."""

from __future__ import annotations

import re

import numpy as np
import pytest

import layoutalg as la
from layoutalg.proofs.dtypes import _KINDS, dtype_name, element_type
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS
from layoutalg.targets.nvidia import tcgen05
from layoutalg.targets.nvidia.tensormap import DTYPES, PLAIN_DTYPES

NAMES = {
    "f16": "f16 half float16 fp16 torch.float16 torch.half cutlass::half_t Float16 tl.float16 __half .f16 <f2",
    "bf16": "bf16 bfloat16 torch.bfloat16 cutlass::bfloat16_t BFloat16 tl.bfloat16 __nv_bfloat16 .bf16",
    "f32": "f32 float32 fp32 torch.float32 Float32 tl.float32 .f32 <f4 single",
    "f64": "f64 float64 double fp64 torch.double Float64 .f64 <f8",
    "tf32": "tf32 tfloat32 cutlass::tfloat32_t TFloat32 .tf32",
    "u8": "u8 uint8 uint8_t Uint8 .u8 .b8 |u1 torch.uint8 byte",
    "u16": "u16 uint16 Uint16 .b16 <u2",
    "u32": "u32 uint32 Uint32 .b32",
    "s32": "s32 int32 i32 Int32 tl.int32 int32_t .s32 <i4",
    "s64": "s64 int64 i64 Int64 torch.int64 .s64",
}
BYTES = {
    "e4m3": "e4m3 fp8e4nv torch.float8_e4m3fn Float8E4M3FN f8E4M3FN cutlass::float_e4m3_t .e4m3 __nv_fp8_e4m3",
    "e5m2": "e5m2 fp8e5 torch.float8_e5m2 Float8E5M2 f8E5M2 cutlass::float_e5m2_t .e5m2 __nv_fp8_e5m2 tl.float8e5",
    "ue8m0": "ue8m0 torch.float8_e8m0fnu f8E8M0FNU cutlass::float_ue8m0_t .ue8m0 e8m0",
    "s8": "s8 i8 int8 torch.int8 Int8 int8_t tl.int8 .s8 |i1",
    "bool": "bool torch.bool Boolean |b1",
}
REFUSED = {
    "fp4": "u4_align8",
    "torch.float4_e2m1fn": "u4_align16",
    "f4E2M1FN": "u4_align8",
    "cutlass::float_e2m1_t": "share a byte",
    "f6E3M2FN": "u6_align16",
    "cutlass::int4b_t": "share a byte",
    "i1": "single bits",
    "torch.complex64": "last dimension of 2",
    "float": "the width depends",
    "int": "the width depends",
    "f8": "write '<f4'",
    "half2": "name the element",
    "int128": "128 bits",
    "uint2": "single 2-bit elements",
}
SHORT = {
    "e2m3": "e2m3 fp6e2m3 f6E2M3FN Float6E2M3FN cutlass::float_e2m3_t .e2m3 __nv_fp6_e2m3",
    "e3m2": "e3m2 fp6e3m2 f6E3M2FN Float6E3M2FN cutlass::float_e3m2_t .e3m2 __nv_fp6_e3m2",
    "e2m1": "e2m1 fp4 f4E2M1FN Float4E2M1FN cutlass::float_e2m1_t .e2m1 __nv_fp4_e2m1 torch.float4_e2m1fn",
    "fp6": "fp6 mxfp6",
    "s4": "s4 i4 int4 cutlass::int4b_t .s4",
    "u4": "u4 uint4 cutlass::uint4b_t .u4 .b4",
    "s2": "s2 i2 cutlass::int2b_t",
    "u2": "u2 uint2 cutlass::uint2b_t",
    "e4m3fnuz": "f8E4M3FNUZ torch.float8_e4m3fnuz tl.float8e4b8",
    "e5m2fnuz": "f8E5M2FNUZ torch.float8_e5m2fnuz tl.float8e5b16",
    "ue4m3": "ue4m3 cutlass::float_ue4m3_t",
    "s128": "int128 i128",
    "u128": "uint128 .b128",
}


@pytest.mark.parametrize(("name", "other"), [(name, other) for name in NAMES for other in NAMES[name].split()])
def test_names_of_a_type_that_a_tensor_map_has(name, other):
    assert dtype_name(other) == name
    found = element_type(other)
    assert (found.tensormap, found.bits) == (name, DTYPES[name].bits)
    assert la.Tensor((8, 8), dtype=other).dtype == name


@pytest.mark.parametrize(("name", "other"), [(name, other) for name in BYTES for other in BYTES[name].split()])
def test_bytes_travel_as_u8_and_keep_their_name(name, other):
    found = element_type(other)
    assert (found.name, found.bits, found.tensormap) == (name, 8, "u8")
    assert "u8" in found.note
    assert dtype_name(other) == "u8"


@pytest.mark.parametrize(("name", "words"), REFUSED.items())
def test_what_no_tensor_map_copies_is_refused_with_the_reason(name, words):
    assert element_type(name).tensormap is None
    with pytest.raises(la.MalformedError, match=words) as caught:
        la.Tensor((8, 8), dtype=name)
    assert caught.value.diagnostic.code == "LA375"


@pytest.mark.parametrize("name", ["", "f17", "floaty", ">f4", "u4_align8", "<f16", "bf", None, 3, object()])
def test_other_names_are_refused(name):
    with pytest.raises(la.MalformedError, match="LA375"):
        element_type(name)


def test_type_objects_of_numpy_are_taken():
    for kind in (np.float16, np.float32, np.float64, np.uint8, np.uint16, np.uint32, np.int32, np.uint64, np.int64):
        exact = np.dtype(kind)
        assert DTYPES[dtype_name(kind)].bits == 8 * exact.itemsize
        assert (
            dtype_name(exact) == dtype_name(exact.name) == dtype_name(exact.str.replace(">", "<")) == dtype_name(kind)
        )
    assert (dtype_name(np.int8), dtype_name(np.int16), dtype_name(np.bool_)) == ("u8", "u16", "u8")


def test_every_type_of_a_tensor_map_keeps_its_name():
    assert [dtype_name(name) for name in PLAIN_DTYPES] == list(PLAIN_DTYPES)


@pytest.mark.parametrize(("name", "other"), [(name, other) for name in SHORT for other in SHORT[name].split()])
def test_types_of_one_width_keep_their_names(name, other):
    assert element_type(other).name == name


@pytest.mark.parametrize("spelled", _KINDS)
def test_a_name_that_states_a_format_or_a_width_gets_it(spelled):
    """The judge reads the spelling itself: exponent and mantissa bits, or a kind of integer with its width."""
    found = element_type(spelled)
    if not found.bits:
        return
    if (stated := re.search(r"e(\d)m(\d)", spelled)) and "x2" not in spelled:
        sign = 0 if "e8m0" in spelled else 1  # ue4m3 has none and leaves its bit unused
        assert found.bits == sign + int(stated[1]) + int(stated[2])
        assert stated[0] in found.name
        assert ("fnuz" in spelled) == ("fnuz" in found.name)
    elif integer := re.fullmatch(r"(u?int|[iusb]|bits)(\d+)b?", spelled):
        assert found.bits == int(integer[2])
        if found.bits > 1:  # single bits have no sign
            assert found.name == ("s" if integer[1] in ("int", "i", "s") else "u") + integer[2]
    elif plain := re.fullmatch(r"(?:b|t)?(?:float|fp|f)(4|6|8|16|32|64|128)", spelled):
        assert found.bits == int(plain[1])


def test_types_of_instructions_keep_their_names():
    for name, bits in {**ELEMENT_BITS, **tcgen05.BITS}.items():
        found = element_type(name)
        assert found.name == {"b1": "i1"}.get(name, name)
        assert found.bits == bits
    assert element_type("e3m2") != element_type("e2m3")
