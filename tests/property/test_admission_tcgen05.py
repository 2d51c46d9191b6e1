"""tcgen05 as a consumer: answers agree with a search over every descriptor field, illegal use of memory is refused."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError, TargetRuleError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.tcgen05.reading import read_bits, scale_bytes
from layoutalg.proofs.tile_map import offsets
from layoutalg.synth.fragments import coordinates
from layoutalg.targets.layouts.tmem import tensor_memory, tmem_registers
from layoutalg.targets.nvidia import tcgen05
from layoutalg.targets.nvidia.tcgen05 import MatrixDescriptor, TmemAccess, TmemAllocation, TmemUse


def random_read(rng):
    """A random descriptor that documents speak of, with its operand."""
    while True:
        dtype = rng.choice(list(tcgen05.BITS))
        kind = rng.choice([entry for entry in tcgen05.KINDS.values() if dtype in entry.types])
        major, swizzle = rng.choice(("K", "K", "MN")), rng.choice(tcgen05.SWIZZLES)
        descriptor = MatrixDescriptor(
            rng.choice((0, 0, 16, 32, 64, 1024)), 16 * rng.randrange(1, 300), 16 * rng.randrange(1, 300),
            rng.choice((0, 0, 0, 1, 2, 5)), swizzle,
        )  # fmt: skip
        rows, k = rng.choice((64, 128, 32, 96, 256)), rng.choice((kind.k, kind.k, 2 * kind.k))
        try:
            bits = tcgen05.operand_bits(descriptor, dtype, rows, k, major=major, kind=kind.name)
        except TargetRuleError:
            continue
        return descriptor, dtype, kind, major, rows, k, bits


@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_the_two_tables_and_the_layout_value_are_one_function(rng):
    for _ in range(15):
        descriptor, dtype, kind, major, rows, k, bits = random_read(rng)
        again = read_bits(descriptor.encode(), rows, k, kind.container_bits, tcgen05.BITS[dtype], major)
        assert np.array_equal(again, bits)
        value = tcgen05.layout(descriptor, dtype, rows, k, major=major, kind=kind.name, unit="bit")
        assert np.array_equal(offsets(value, bits.shape), bits)


@settings(max_examples=15, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_what_a_descriptor_denotes_is_admitted(rng):
    for _ in range(4):
        descriptor, dtype, kind, major, rows, k, bits = random_read(rng)
        if k != kind.k or rows not in (64, 128) or (kind.scales and rows != 128):
            continue
        container = kind.container_bits
        inside = bits % 128 // tcgen05.BITS[dtype] if container != tcgen05.BITS[dtype] else bits % 128 // container
        elements = bits // 128 * (128 // container) + inside
        answer = la.admissible(elements, "tcgen05.A", "sm_100a", dtype, kind=kind.name)
        assert answer, f"{descriptor} {dtype} {kind.name} {major} {rows}\n{answer}"
        assert answer.evidence == "documented"
        assert answer.certificate.check()
        assert np.array_equal(answer.descriptor.table(), bits)
        json.dumps(answer.to_json())


def brute_force(bits, dtype, kind, swizzles=tcgen05.SWIZZLES):
    """Search every swizzle, major and base offset, with every field that some element's distance suggests."""
    entry, rows, k = tcgen05.KINDS[kind], *bits.shape
    distances = {abs(int(one)) // 8 for one in (bits - bits[0, 0]).reshape(-1)} | {16}
    chunks = [step for step in sorted(distances) if step % 16 == 0 and 0 < step < 1 << 18]
    start = int(bits[0, 0]) // 8
    # an XOR of the first chunk's bits moves the start by less than a period
    starts = [start ^ low for low in range(0, 128, 16)]
    code = {"NONE": 0, "128B_ATOM_32B": 1, "128B": 2, "64B": 4, "32B": 6}
    for major, swizzle, base, first in itertools.product("KM", swizzles, range(8), starts):
        if major == "M" and (entry.container_bits < 8 or tcgen05.BITS[dtype] < 8):
            continue
        if major == "M" and (swizzle == "128B_ATOM_32B") != (entry.container_bits == 32):
            continue
        if swizzle == "128B_ATOM_32B" and (major == "K" or base):
            continue
        if swizzle == "NONE" and first != start:
            continue
        if base >= {"NONE": 1, "32B": 2, "64B": 4}.get(swizzle, 8):
            continue
        name, kept = "MN" if major == "M" else "K", first >> 4 | 1 << 46 | base << 49 | code[swizzle] << 61
        corner = read_bits(kept | 1 << 16 | 1 << 32, rows, k, entry.container_bits, tcgen05.BITS[dtype], name)
        if isinstance(corner, str) or corner[0, 0] != bits[0, 0]:  # which no stride moves
            continue
        for leading, stride in itertools.product(chunks, repeat=2):
            word = kept | leading >> 4 << 16 | stride >> 4 << 32
            read = read_bits(word, rows, k, entry.container_bits, tcgen05.BITS[dtype], name)
            if not isinstance(read, str) and np.array_equal(read, bits):
                return word
    return None


SMALL = (
    "(8,16):(16,1)", "((8,1),(8,2)):((8,0),(1,64))", "(8,16):(1,8)", "Sw<1,3,3> o 0 o (8,16):(16,1)", "(8,16):(64,1)",
    "Sw<3,3,3> o 0 o (8,16):(64,1)", "Sw<2,3,3> o 0 o (8,16):(32,1)", "Sw<2,3,3> o 0 o (8,16):(64,1)",
    "Sw<3,3,3> o 64 o (8,16):(64,1)", "Sw<3,3,3> o 16 o (8,16):(64,1)", "(8,16):(17,1)",
    "((8,1),(8,2)):((1,0),(8,64))", "((8,1),(8,2)):((1,0),(8,72))", "Sw<2,4,3> o 0 o (8,16):(64,1)",
)  # fmt: skip


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("text", SMALL)
def test_a_search_over_every_field_gives_the_same_verdict(text):
    """One instruction of a B of eight columns: small enough to try every descriptor."""
    layout = la.parse(text)
    bits = offsets(layout, (8, 16)) * 16
    found = brute_force(bits, "bf16", "f16")
    answer = la.admissible(layout, "tcgen05.B", "sm_100a")
    if isinstance(answer, la.Unknown):
        assert found is None
        return
    assert bool(answer) is (found is not None), answer
    if not answer:
        assert answer.rules
        for repair in answer.repairs:
            assert la.admissible(repair.detail, "tcgen05.B", "sm_100a", tile=(8, 16))


@pytest.mark.parametrize("seed", range(8))
def test_random_small_tiles_agree_with_the_search(seed):
    rng = random.Random(seed)
    steps = [1, 2, 4, 8, 16, 32, 64]
    rows = [rng.choice(steps) for _ in range(3)]
    ks = [1, 2, 4, rng.choice(steps)] if rng.random() < 0.7 else [rng.choice(steps) for _ in range(4)]
    m, k = np.arange(8)[:, None], np.arange(16)[None, :]
    table = sum((m >> bit & 1) * step for bit, step in enumerate(rows))
    table = table + sum((k >> bit & 1) * step for bit, step in enumerate(ks))
    if rng.random() < 0.5:
        table = table ^ ((table >> 6 & 7) << 3)
    bits = table.astype(np.int64) * 16
    answer = la.admissible(table.astype(np.int64), "tcgen05.B", "sm_100a")
    found = brute_force(bits, "bf16", "f16")
    assert (found is None) if isinstance(answer, la.Unknown) else bool(answer) is (found is not None), answer


def test_canonical_layouts_of_the_document():
    """Examples that PTX gives with their numbers: layout, LBO, SBO in units of 16 bytes."""
    examples = (
        ("((8,2),(4,2)):((4,32),(1,64))", "tf32", 16, 8, 0),
        ("Sw<1,2,3> o 0 o ((8,2),8):((8,64),1)", "tf32", None, 16, 6),
        ("((8,2),(8,2)):((1,64),(8,128))", "bf16", 16, 8, 0),
        ("Sw<1,3,3> o 0 o ((16,2),(8,2)):((1,128),(16,256))", "bf16", 16, 32, 6),
        ("Sw<2,3,3> o 0 o ((32,2),(8,2)):((1,256),(32,512))", "bf16", 32, 64, 4),
    )  # fmt: skip
    for text, dtype, leading, stride, code in examples:
        answer = la.admissible(text, "tcgen05.B", "sm_100a", dtype)
        assert answer, answer
        word = answer.descriptor.tiles[0].encoded
        assert (word >> 32 & 0x3FFF, word >> 61) == (stride, code)
        assert leading is None or word >> 16 & 0x3FFF == leading


def test_rules_and_what_is_not_known():
    def ask(layout, consumer="tcgen05.A", target="sm_100a", dtype="bf16", **options):
        return la.admissible(layout, consumer, target, dtype, **options)

    tile = "Sw<3,3,3> o 0 o (128,64):(64,1)"
    assert ask(tile, target="sm_103a")
    for target in ("sm_90a", "sm_120a", "gfx942"):
        assert ask(tile, target=target).rules == ("TCGEN05_ARCH",)
    assert ask("(96,64):(64,1)").rules == ("TCGEN05_ROWS",)
    assert ask("(128,24):(24,1)").rules == ("TCGEN05_K",)
    assert ask(tile, dtype="f64").rules == ("TCGEN05_DTYPE",)
    assert ask("(128,64):(64,1)").rules == ("TCGEN05_LAYOUT",)
    repair = ask("(128,64):(64,1)").repairs[0]
    assert ask(repair.detail)
    assert ask(tile, align_bytes=8).rules == ("TCGEN05_ALIGN",)
    assert isinstance(ask(tile, align_bytes=128), la.Refused)
    assert ask("(128,16):(1,128)", dtype="tf32").rules == ("TCGEN05_TRANSPOSE_SWIZZLE",)
    assert ask("(128,64):(1,128)").rules == ("TCGEN05_LAYOUT",)
    assert ask("Sw<2,4,2> o 0 o ((64,2),(4,4)):((1,1024),(64,256))").rules == ("TCGEN05_TRANSPOSE_SWIZZLE",)
    assert ask("Sw<2,3,2> o 0 o ((32,4),16):((1,512),32)", dtype="tf32").descriptor.swizzle == "128B_ATOM_32B"
    assert isinstance(ask("Sw<2,4,2> o 0 o (128,64):(64,1)"), la.Unknown)  # K-major under 32-byte atoms
    assert ask(tile, ws=True, cta_group=2).rules == ("TCGEN05_WS",)
    four = "Sw<3,5,3> o 0 o (128,256):(256,1)"
    assert ask(four, dtype="e2m1", kind="mxf4").descriptor.k_step == 2
    assert ask("Sw<3,4,3> o 0 o (128,128):(128,1)", dtype="e2m1").descriptor.element_bits == 4
    with pytest.raises(LayoutError):
        ask(tile, "tcgen05.X")
    with pytest.raises(LayoutError):
        ask(tile, kind="none")


@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
def test_registers_of_tensor_memory(shape):
    layout = tmem_registers(tensor_memory((128, 32), (128, 32)), shape, 4)
    held = {axis: layout.bases[axis] for axis in ("register", "lane", "warp")}
    held = LinearLayout.from_bases(held, layout.out_dims)
    answer = la.admissible(held, f"tcgen05.ld.{shape}", "sm_100a", "f32")
    assert answer, answer
    assert answer.certificate.check()
    assert la.admissible(held, "tcgen05.D", "sm_100a", "f32")
    turned = LinearLayout.from_bases({**held.bases, "warp": held.bases["warp"][::-1]}, held.out_dims)
    refused = la.admissible(turned, f"tcgen05.ld.{shape}", "sm_100a", "f32")
    assert refused.rules == ("FRAGMENT",)
    assert "can access lanes" in refused.reasons[0]


def test_half_of_the_lanes_and_halves_of_columns():
    """D of 64 rows lies in 16 lanes of each quarter; of a pair of blocks in halves of its columns."""
    layout = LinearLayout.from_bases(
        {
            "register": [(8, 0), (0, 1), (0, 8)],
            "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
            "warp": [(16, 0), (32, 0)],
        },
        {"row": 64, "col": 16},
    )
    answer = la.admissible(layout, "tcgen05.D", "sm_100a", "f32")
    assert answer, answer
    assert (answer.descriptor.shape, answer.descriptor.data_path) == ("16x256b", "F")
    assert answer.descriptor.places[0] == ((0, 0), (32, 0), (64, 0), (96, 0))
    for m, n, group, ws in ((128, 64, 2, False), (64, 64, 1, True), (32, 64, 1, True), (256, 24, 2, False)):
        table = np.asarray(tcgen05.accumulator_layout(m, n, group, ws).table())
        assert len(np.unique(table)) == m * n
        lanes, blocks = table >> 16 & 0xFFFF, table >> 32
        assert lanes.max() == 127
        assert blocks.max() == group - 1


def test_illegal_use_of_tensor_memory_is_refused():
    def rule(make):
        with pytest.raises(TargetRuleError) as caught:
            make()
        return caught.value.rule

    half = TmemAllocation(256)
    use = TmemUse().alloc(half, 2)
    assert (
        rule(lambda: TmemAllocation(96))
        == rule(lambda: TmemAllocation(16))
        == rule(lambda: TmemAllocation(1024))
        == "TMEM_COLUMNS"
    )
    assert rule(lambda: TmemAllocation(64, 480)) == rule(lambda: TmemAllocation(64, 16)) == "TMEM_RANGE"
    assert rule(lambda: use.alloc(TmemAllocation(512), 2)) == "TMEM_GROWS"
    assert rule(lambda: use.alloc(TmemAllocation(128, 128), 2)) == "TMEM_OVERLAP"
    assert rule(lambda: use.alloc(TmemAllocation(128, 256), 0)) == "TMEM_ONE_WARP"
    assert rule(lambda: use.alloc(TmemAllocation(128, 256, 2), 2)) == "TMEM_CTA_GROUP"
    assert rule(lambda: use.relinquish().alloc(TmemAllocation(128, 256), 2)) == "TMEM_RELINQUISHED"
    assert rule(use.exit) == "TMEM_NOT_FREED"
    assert rule(lambda: use.free(half).free(half)) == "TMEM_NOT_ALLOCATED"
    assert use.alloc(TmemAllocation(256, 256), 2).free(half).free(TmemAllocation(256, 256)).exit() == ()
    assert rule(lambda: TmemAccess("32x32b", 3)) == rule(lambda: TmemAccess("16x256b", 64)) == "TMEM_NUM"
    assert rule(lambda: TmemAccess("32x32b", 1, 1, 0)) == rule(lambda: TmemAccess("16x64b", 1, 0, 8)) == "TMEM_LANES"
    assert (
        rule(lambda: TmemAccess("16x256b", 8, column=460))
        == rule(lambda: TmemAccess("16x32bx2", 4, column=500, split_columns=10))
        == "TMEM_RANGE"
    )
    assert rule(lambda: TmemAccess("32x32b", 1, split_columns=4)) == "TMEM_SPLIT"
    assert TmemAccess("16x64b", 64, 5, 48).registers == 64
    assert TmemAccess("32x32b", 128).within(half)
    assert not TmemAccess("32x32b", 128, column=200).within(half)


def test_scale_factors():
    for rows, groups, order in ((128, 4, "K"), (256, 8, "K"), (384, 4, "MN"), (256, 16, "MN")):
        layout = tcgen05.scale_layout(rows, groups, order=order)
        answer = la.admissible(layout, "tcgen05.scale", "sm_100a", "ue8m0")
        assert answer, answer
        assert len(answer.descriptor.tiles) == rows // 128 * groups // 4
        assert answer.certificate.check()
    wide = np.array(tcgen05.scale_layout(128, 4).table()).reshape(128, 4, order="F")
    spread = wide + wide // 128 * 128  # eight rows to 256 bytes: another stride
    assert la.admissible(spread, "tcgen05.scale", "sm_100a", "ue8m0")
    refused = la.admissible("(128,4):(4,1)", "tcgen05.scale", "sm_100a", "ue8m0")
    assert refused.rules == ("TCGEN05_SCALE_LAYOUT",)
    assert la.admissible(refused.repairs[0].detail, "tcgen05.scale", "sm_100a", "ue8m0")
    assert la.admissible("(64,4):(4,1)", "tcgen05.scale", "sm_100a", "ue8m0").rules == ("TCGEN05_SCALE_SHAPE",)
    for stride in (128, 256, 16, 2**17):
        descriptor = MatrixDescriptor(512, 16, stride)
        try:
            read = tcgen05.scale_copy_bytes(descriptor)
        except TargetRuleError:
            continue
        assert np.array_equal(read, scale_bytes(descriptor.encode()))


@pytest.mark.parametrize("bit", [0, 32, 49, 61])
def test_a_finder_with_a_wrong_encoder_admits_nothing(bit, monkeypatch):
    """The plan is read back by the checker's own table, from the bits alone."""
    tile = "Sw<3,3,3> o 0 o (128,64):(64,1)"
    assert la.admissible(tile, "tcgen05.A", "sm_100a")
    encode = MatrixDescriptor.encode
    monkeypatch.setattr(MatrixDescriptor, "encode", lambda self: encode(self) ^ 1 << bit)
    assert not isinstance(la.admissible(tile, "tcgen05.A", "sm_100a"), la.Admitted)


def test_halves_of_split_accesses_are_found_where_every_access_tried_holds_them():
    rng = random.Random(4)
    seen = set()
    for _ in range(120):
        rows = [(1, 0), (2, 0), (4, 0), (8, 0)]
        columns = [(0, 1 << bit) for bit in range(4)]
        rng.shuffle(columns)
        lanes = [*rows, columns.pop() if rng.random() < 0.8 else (16, 0)]
        if rng.random() < 0.2:
            one, two = rng.sample(range(5), 2)
            lanes[one], lanes[two] = lanes[two], lanes[one]
        registers = columns[: rng.randint(0, 3)]
        if registers and rng.random() < 0.2:
            registers[-1] = (registers[-1][0], registers[-1][1] ^ lanes[4][1])
        warps = [(32, 0), (64, 0)] if rng.random() < 0.8 else [(64, 0), (32, 0)]
        held = LinearLayout.from_bases({"register": registers, "lane": lanes, "warp": warps}, {"row": 128, "col": 16})
        answer = la.admissible(held, "tcgen05.ld.16x32bx2", "sm_100a", "f32")
        table = coordinates(held)[0]
        fits = {split: np.stack([coordinates(TmemAccess("16x32bx2", 1, 0, 0, 0, split).layout)[0][0, :, 0]])
                for split in range(16)}  # fmt: skip

        def moved(register, split, table=table, fits=fits):
            return all(
                np.array_equal(table[warp, :, register] - table[warp, 0, register], fits[split][0])
                and table[warp, 0, register, 0] in (32 * warp, 32 * warp + 16)
                for warp in range(4)
            )

        found = all(any(moved(register, split) for split in range(16)) for register in range(table.shape[2]))
        seen.add(type(answer).__name__)
        if isinstance(answer, Unknown):
            assert not found
            continue
        assert isinstance(answer, la.Admitted) == found, (lanes, registers, warps, answer)
        if found:
            plan = answer.descriptor
            assert all(moved(held[0], split) for held, split in zip(plan.registers, plan.split_columns, strict=True))
            assert answer.certificate.check()
    assert seen == {"Admitted", "Refused", "Unknown"}


def test_96_elements_of_4_bits_are_one_instruction_where_documents_say_so():
    def ask(text, target="sm_103a", operand="A", **options):
        given = {"kind": "mxf4", "cta_group": 2} | options
        return la.admissible(text, f"tcgen05.{operand}", target, "e2m1", **given)

    chunks = "((8,16),(32,3)):((32,256),(1,4096))"
    assert (ask(chunks).descriptor.k, len(ask(chunks).descriptor.tiles)) == (96, 1)
    for text in (chunks, "Sw<3,5,3> o 0 o (128,96):(256,1)", "Sw<2,5,3> o 0 o (128,96):(128,1)"):
        answer = ask(text)
        assert isinstance(answer, la.Admitted), answer
        assert answer.certificate.check()
        assert (
            ask(text, "sm_100a").rules == ask(text, cta_group=1).rules == ask(text, sparse=True).rules == ("TCGEN05_K",)
        )
    assert isinstance(ask("Sw<3,5,3> o 0 o (128,288):(512,1)"), la.Refused | Unknown)
    assert ask("(64,96):(96,1)").rules == ("TCGEN05_ROWS",)
