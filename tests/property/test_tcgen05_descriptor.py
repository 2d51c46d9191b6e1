"""tcgen05 descriptors: fields go in and come out, meaningless bits are refused, shapes are those of the tables."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import LayoutError, MalformedError, TargetRuleError
from layoutalg.targets.nvidia import tcgen05, wgmma
from layoutalg.targets.nvidia.tcgen05 import InstructionDescriptor, MatrixDescriptor

MATRIX_FIELDS = (("start", 0, 14), ("leading", 16, 14), ("stride", 32, 14), ("base", 49, 3), ("mode", 52, 1))
CODES = {0: "NONE", 1: "128B_ATOM_32B", 2: "128B", 4: "64B", 6: "32B"}


def matrix_word(**fields):
    """Put a word together from the positions of PTX's table, written here once more."""
    word = 1 << 46 | fields["swizzle"] << 61
    for name, low, _ in MATRIX_FIELDS:
        word |= fields[name] << low
    return word


@given(
    st.fixed_dictionaries(
        {name: st.integers(0, 2**width - 1) for name, _, width in MATRIX_FIELDS}
        | {"swizzle": st.sampled_from([*CODES])}
    )
)
def test_matrix_descriptors_go_in_and_come_out(fields):
    word = matrix_word(**fields)
    if fields["mode"] and (fields["swizzle"] != 2 or fields["base"]):
        with pytest.raises(TargetRuleError) as caught:
            tcgen05.decode(word)
        assert caught.value.rule == "TCGEN05_LBO_MODE"
        return
    found = tcgen05.decode(word)
    assert found.encode() == word
    assert found.start_address_bytes == 16 * fields["start"]
    assert found.leading_bytes == 16 * fields["leading"]
    assert found.stride_bytes == 16 * fields["stride"]
    assert (found.base_offset, found.swizzle) == (fields["base"], CODES[fields["swizzle"]])


def test_every_bit_that_has_no_field_is_refused():
    word = MatrixDescriptor(64, 128, 1024, 0, "128B").encode()
    held = {bit for _, low, width in MATRIX_FIELDS for bit in range(low, low + width)} | {61, 62, 63}
    for bit in range(64):
        if bit in held:
            continue
        with pytest.raises(TargetRuleError) as caught:
            tcgen05.decode(word ^ 1 << bit)
        assert caught.value.rule == ("TCGEN05_VERSION" if bit in (46, 47, 48) else "TCGEN05_RESERVED")
    for code in (3, 5, 7):
        with pytest.raises(TargetRuleError) as caught:
            tcgen05.decode(word & ~(7 << 61) | code << 61)
        assert caught.value.rule == "TCGEN05_SWIZZLE"
    for wrong in (-1, 1 << 64, None, 1.0, True, "0"):
        with pytest.raises(MalformedError, match="LA840"):
            tcgen05.decode(wrong)


def test_descriptors_of_the_two_generations_are_told_apart():
    for swizzle in wgmma.SWIZZLES:
        old = wgmma.MatrixDescriptor(0, 16, 1024, 0, swizzle)
        with pytest.raises(TargetRuleError) as caught:
            tcgen05.decode(old.encode())
        assert caught.value.rule == "TCGEN05_VERSION"
        with pytest.raises(LayoutError):
            wgmma.decode(MatrixDescriptor(0, 16, 1024, 0, swizzle).encode())


def test_majors_and_swizzles_follow_the_table():
    for swizzle in tcgen05.SWIZZLES:
        made = MatrixDescriptor(0, 16, 1024, 0, swizzle)
        for bits in (4, 6, 8, 16, 32):
            assert tcgen05.descriptor_violations(made, "sm_100a", "K", bits) == ()
            found = tcgen05.descriptor_violations(made, "sm_100a", "MN", bits)
            legal = swizzle != "128B_ATOM_32B" if bits in (8, 16) else bits == 32 and swizzle == "128B_ATOM_32B"
            assert (found == ()) is legal
    absolute = MatrixDescriptor(0, 4096, 1024, 0, "128B", "absolute")
    assert tcgen05.descriptor_violations(absolute, "sm_103a") == ()
    assert [one.rule for one in tcgen05.descriptor_violations(absolute, "sm_100a")] == ["TCGEN05_LBO_MODE"]
    assert [one.rule for one in tcgen05.descriptor_violations(absolute, "sm_103a", "MN")] == ["TCGEN05_LBO_MODE"]
    assert tcgen05.descriptor_violations(absolute, "sm_120a")[0].rule == "TCGEN05_ARCH"


@st.composite
def instructions(draw):
    """Descriptors with fields that their kind can hold."""
    kind = tcgen05.KINDS[draw(st.sampled_from([*tcgen05.KINDS]))]
    scaled, flags = bool(kind.scales), st.booleans()
    ids = st.integers(0, 3 * scaled)

    def some(condition):
        return draw(flags) if condition else False

    return InstructionDescriptor(
        kind.name, draw(st.integers(0, 3)) * 128 if scaled else draw(st.integers(0, 31)) * 16,
        draw(st.integers(0, 63)) * 8, draw(st.sampled_from([*kind.types])), draw(st.sampled_from([*kind.types])),
        draw(st.sampled_from(kind.results)), some(kind.transposes), some(kind.transposes), some(kind.negates),
        some(kind.negates), draw(flags), 0 if scaled else draw(st.integers(0, 3)), some(kind.name == "i8"),
        0 if scaled else draw(st.sampled_from((0, 8, 16, 32))), draw(st.sampled_from(kind.scales)) if scaled else "",
        draw(ids), draw(ids), some(kind.container_bits == 4),
    )  # fmt: skip


@given(instructions())
def test_instruction_descriptors_go_in_and_come_out(made):
    word = made.encode()
    assert tcgen05.decode_instruction(word, made.kind) == made
    json.dumps(made.to_json())
    low, high = (27, 3) if tcgen05.KINDS[made.kind].scales else (24, 31)
    assert (word >> 17 & 63, word >> low & high) == (made.n // 8, made.m // (128 if high == 3 else 16))


@pytest.mark.parametrize("kind", tcgen05.KINDS)
def test_every_word_is_a_descriptor_of_the_kind_or_is_refused(kind):
    rng = random.Random(kind)
    base = {"f16": 0x8400490, "tf32": 0x8400910, "i8": 0x8400020}.get(kind)
    word = (
        base if base is not None else (0x8400010 if kind == "f8f6f4" else 0x8C00000 | 0x480 * kind.startswith("mxf4"))
    )
    if kind == "mxf4nvf4":
        word &= ~(1 << 23)
    assert tcgen05.decode_instruction(word, kind).encode() == word
    taken = 0
    for _ in range(400):
        changed = word ^ sum(1 << bit for bit in rng.sample(range(32), rng.randint(1, 3)))
        try:
            assert tcgen05.decode_instruction(changed, kind).encode() == changed
            taken += 1
        except TargetRuleError as error:
            assert error.rule in ("TCGEN05_IDESC_RESERVED", "TCGEN05_IDESC_TYPE")
    assert 0 < taken < 400


def test_a_known_descriptor():
    """bf16 x bf16 -> f32 of 128 x 256: bit 4 for f32, 7 and 10 for bf16, N in units of 8, M in units of 16."""
    made = InstructionDescriptor("f16", 128, 256, "bf16", "bf16", "f32")
    assert made.encode() == 1 << 4 | 1 << 7 | 1 << 10 | 256 // 8 << 17 | 128 // 16 << 24
    assert made.k == 16
    assert dataclasses.replace(made, sparse=True).k == 32


def test_shapes_follow_the_tables():
    def rules(kind, m, n, group=1, ws=False, target="sm_100a", **fields):
        entry = tcgen05.KINDS[kind]
        first, scale = next(iter(entry.types)), next(iter(entry.scales), "")
        made = InstructionDescriptor(
            **({"kind": kind, "m": m, "n": n, "a": first, "b": first, "d": entry.results[-1], "scale": scale} | fields)
        )
        return {one.rule for one in tcgen05.instruction_violations(made, target, group, ws)}

    assert (
        rules("f16", 128, 8)
        == rules("f16", 64, 248)
        == rules("f16", 256, 16, 2)
        == rules("tf32", 32, 64, 1, True)
        == set()
    )
    assert rules("f16", 256, 128) == rules("f16", 32, 64) == rules("mxf8f6f4", 256, 128) == {"TCGEN05_M"}
    assert rules("f16", 128, 8, 2) == rules("i8", 128, 40) == rules("i8", 128, 48, 2) == {"TCGEN05_N"}
    assert rules("f16", 64, 256, 1, True, sparse=True) == rules("f16", 64, 96, 1, True) == {"TCGEN05_N"}
    assert rules("f16", 64, 64, 2, True) == rules("mxf4", 128, 64, 1, True) == {"TCGEN05_WS"}
    assert rules("mxf8f6f4", 128, 128, 2, sparse=True) == {"TCGEN05_M"}
    assert rules("f8f6f4", 128, 24, transpose_b=True) == {"TCGEN05_N"}
    assert rules("f8f6f4", 128, 24) == rules("f8f6f4", 128, 32, transpose_b=True) == set()
    assert rules("f8f6f4", 128, 32, a="e2m1", transpose_a=True) == {"TCGEN05_TRANSPOSE_TYPE"}
    assert rules("f16", 128, 32, a="bf16", b="bf16", d="f16") == {"TCGEN05_D_TYPE"}
    assert rules("mxf4", 256, 64, 2, target="sm_103a", k96=True) == set()
    assert rules("mxf4", 256, 64, 2, k96=True) == {"TCGEN05_K96"}
    assert (
        rules("mxf4", 128, 64, scale_a_id=1)
        == rules("mxf4nvf4", 128, 64, scale="ue4m3", scale_a_id=2)
        == {"TCGEN05_SCALE_ID"}
    )
    assert rules("f16", 128, 64, selector=1) == {"TCGEN05_SELECTOR"}
    assert rules("f16", 128, 64, max_shift=8) == {"TCGEN05_MAX_SHIFT"}
    assert rules("f16", 128, 64, target="sm_90a") == {"TCGEN05_ARCH"}
