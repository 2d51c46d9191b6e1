"""Restricted forms of swizzles against every member counted word by word."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.proofs.swizzling import TileAccess
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.nvidia import tensormap
from tests.judges.swizzle_forms import least_xor, turns_behind


def tile_access(rng: np.random.Generator, rows: int, columns: int, lanes: int = 5, *, dense: bool) -> LinearLayout:
    """Return a bijection from (register, lane) to a tile of 2^rows x 2^columns, or one that repeats some elements."""
    bits = rows + columns
    images = [1 << int(place) for place in rng.permutation(bits)]
    while dense:
        images = [int(image) for image in rng.integers(0, 1 << bits, bits)]
        if matrix.rank(images) == bits:
            break
    if rng.random() < 0.2:
        images[int(rng.integers(bits))] = 0
    constant = int(rng.integers(1 << bits)) if rng.random() < 0.3 else 0
    axes = (("register", bits - lanes), ("lane", lanes))
    return LinearLayout(axes, (("row", rows), ("col", columns)), tuple(images), constant)


def loads(layouts: list[LinearLayout]) -> list[TileAccess]:
    return [TileAccess(layout, "load") for layout in layouts]


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), bits=st.sampled_from([16, 32, 64]), dense=st.booleans())
def test_one_xor_is_the_best_of_all_maps(seed, bits, dense):
    rng = np.random.default_rng(seed)
    rows, chunks = [(3, 3), (4, 2), (5, 2), (4, 3)][int(rng.integers(4))]
    columns = chunks + (128 // bits).bit_length() - 1
    accesses = loads([tile_access(rng, rows, columns, dense=dense) for _ in range(int(rng.integers(1, 4)))])
    plan = swizzle(accesses, "sm_90a", bits, "xor", seconds=20).check()
    assert plan.turns == plan.bound == least_xor(accesses, (1 << rows, 1 << columns), bits, ["sm_90a"], 16)
    assert la.convert.to_linear(la.parse(plan.cute)).table().tolist() == by_rows(plan.smem)


def by_rows(smem: LinearLayout) -> list[int]:
    """Return offsets in the order of CuTe's flat coordinates: the first tile axis fastest."""
    return smem.table().reshape(-1).tolist()


@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_one_xor_for_waves_of_two_targets(seed):
    """Lanes move 16 bytes each: what gfx950 makes of narrower reads is not known."""
    rng = np.random.default_rng(seed)
    accesses = []
    for _ in range(2):
        rest = [1 << int(place) for place in rng.permutation([0, 1, 2, 3, 6, 7, 8])]
        axes = (("register", 3), ("lane", 6))
        accesses += loads([LinearLayout(axes, (("row", 4), ("col", 5)), (16, 32, rest[6], *rest[:6]))])
    targets = ["gfx942", "gfx950"]
    plan = swizzle(accesses, targets, 32, "xor", seconds=20)
    plan.check()
    assert plan.turns == plan.bound == least_xor(accesses, (16, 32), 32, targets, 16)


@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1))
def test_small_chunks_change_the_instructions(seed):
    rng = np.random.default_rng(seed)
    accesses = loads([tile_access(rng, 3, 4, dense=False) for _ in range(2)])
    plan = swizzle(accesses, "sm_90a", 32, "xor", chunk_bytes=8, seconds=20).check()
    least = None
    for images in itertools.product(range(8), repeat=3):
        columns = (*(1 << 4 + at ^ image << 1 for at, image in enumerate(images)), 1, 2, 4, 8)
        smem = LinearLayout(plan.smem.in_axes, plan.smem.out_axes, columns)
        turns = turns_behind(accesses, smem, 32, ["sm_90a"])
        least = turns if least is None else min(least, turns)
    assert plan.turns == plan.bound == least


@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1), dense=st.booleans())
def test_cute_is_the_best_of_all_its_swizzles(seed, dense):
    rng = np.random.default_rng(seed)
    accesses = loads([tile_access(rng, 3, 5, dense=dense) for _ in range(2)])
    plan = swizzle(accesses, "sm_90a", 16, "cute", seconds=20).check()
    least = None
    for stride in ("(32,1)", "(1,8)"):
        for bits, base, shift in itertools.product(range(5), range(8), range(-7, 8)):
            if abs(shift) < bits or bits + base + abs(shift) > 8:
                continue
            layout = la.convert.to_linear(la.parse(f"Sw<{bits},{base},{shift}> o 0 o (8,32):{stride}"))
            smem = LinearLayout(plan.smem.in_axes, plan.smem.out_axes, layout.columns)
            turns = turns_behind(accesses, smem, 16, ["sm_90a"])
            least = turns if least is None else min(least, turns)
    assert plan.turns == plan.bound == least


def test_hardware_swizzles_are_what_the_copy_engine_writes():
    """Each member is the layout of a tensor map's box, or of boxes one behind the other; all of them are tried."""
    tile = (32, 64)
    rows = LinearLayout.from_bases(
        {"register": [(0, 1), (0, 2), (0, 4), (8, 0), (16, 0)],
         "lane": [(0, 8), (0, 16), (1, 0), (2, 0), (4, 0)], "warp": [(0, 32)]}, {"row": 32, "col": 64},
    )  # fmt: skip
    accesses = [TileAccess(rows, "store"), *loads([LinearLayout(rows.in_axes, rows.out_axes, rows.columns[::-1])])]
    plan = swizzle(accesses, "sm_90a", 16, "tma").check()
    least = None
    for inner, (mode, span) in itertools.product((1, 0), (("32B", 32), ("64B", 64), ("128B", 128))):
        wide = span // 2
        if wide > tile[inner]:
            continue
        box = (wide, tile[1 - inner])
        found = tensormap.layout(tensormap.TensorMap("bf16", (512, 512), (1024,), box, swizzle=mode))
        table = found.table().reshape(tile[1 - inner], wide, order="F")
        blocks = [table + block * table.size for block in range(tile[inner] // wide)]
        whole = np.concatenate(blocks, axis=1)
        offsets = (whole if inner else whole.T).reshape(-1, order="F")
        smem = LinearLayout(rows.out_axes, (("offset", 11),), tuple(int(offsets[1 << bit]) for bit in range(11)))
        turns = turns_behind(accesses, smem, 16, ["sm_90a"])
        least = turns if least is None else min(least, turns)
    assert plan.turns <= least
    assert swizzle(["rows", "ldmatrix"], "sm_90a", 16, "tma", tile=(64, 64)).cute == "Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert "ATOM" not in plan.proof
    with pytest.raises(RepresentabilityError, match="has no copy engine"):
        swizzle(["rows"], "gfx942", 16, "tma", tile=(64, 64))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"form": "xyz"}, "must be one of any, tma, cute, xor"),
        ({"form": "xor", "chunk_bytes": 12}, "power of two from 4 to 128"),
        ({"target": "gfx942"}, "64 lanes of a wave of gfx942, lane bits 6"),
        ({"tile": (48, 64)}, "power-of-two extents"),
        ({"tile": (2, 2)}, "elements for each of 32 lanes"),
    ],
)
def test_bad_questions_are_named(arguments, words):
    given = {"tile": (64, 64), **arguments}
    accesses = [TileAccess(swizzle(["rows"], tile=(64, 64)).accesses[0].layout)] if "target" in given else ["rows"]
    with pytest.raises(MalformedError, match=words):
        swizzle(accesses, **given)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ("rows:foo", "'rows:foo' says more than rows; only :load, :store"),
        ("M:1", "nothing is called 'M:1'. Names are memory instructions"),
        ("rowz", "nothing is called 'rowz'; near: rows"),
        ("rowz:store", "nothing is called 'rowz:store'; near: rows"),
        ("rowz:foo", "nothing is called 'rowz:foo'; near: rows"),
    ],
)
def test_a_name_or_kind_that_does_not_exist_is_named(access, words):
    with pytest.raises(MalformedError, match=f"(?s)LA990.*{words}"):
        swizzle([access], tile=(64, 64))


def test_lanes_beyond_the_warp_are_refused():
    wave = LinearLayout.from_bases({"register": [(1,)], "lane": [(2 << b,) for b in range(6)]}, {"tile": 128})
    with pytest.raises(MalformedError, match="access 0 must have the 32 lanes of a warp of sm_90a"):
        swizzle([wave], "sm_90a")
    for kind, bits in (("ldmatrix", 64), ("ldmatrix.trans", 32)):
        with pytest.raises(MalformedError, match="element_bits"):
            swizzle([(LinearLayout((wave.in_axes[0], ("lane", 5)), (("tile", 7),), wave.columns[:6]), kind)],
                    "sm_90a", bits)  # fmt: skip


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), bits=st.sampled_from([8, 16, 32, 64, 128]), form=st.sampled_from(["any", "xor"]))
def test_repeated_elements_and_constants_are_counted(seed, bits, form):
    """Zero columns, dependent columns, constants, tiles smaller than a row of the banks: counted by addresses."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(0, 4)), int(rng.integers(0, 5))
    registers, total = int(rng.integers(0, 4)), rows + columns
    layouts = []
    for _ in range(2):
        images = tuple(int(image) if rng.random() < 0.8 else 0 for image in rng.integers(0, 1 << total, registers + 6))
        axes = (("register", registers), ("lane", 5), ("warp", 1))
        layouts.append(LinearLayout(axes, (("row", rows), ("col", columns)), images, int(rng.integers(1 << total))))
    plan = swizzle(loads(layouts), "sm_90a", bits, form).check()
    assert plan.bound <= plan.turns


def test_accesses_in_every_notation():
    blocked = "#ttg.blocked<{sizePerThread=[1,8], threadsPerWarp=[4,8], warpsPerCTA=[1,1], order=[1,0]}>"
    plan = swizzle([f"{blocked}:store", "ldmatrix", "((8,4),(2,8)):((64,2),(1,8))"], tile=(64, 64)).check()

    assert [access.kind for access in plan.accesses] == ["store", "ldmatrix", "load"]
    with pytest.raises(MalformedError, match="must be linear over F2"):
        swizzle(["(32,4):(3,1)"], tile=(64, 64))


def test_a_plan_says_why_and_has_a_picture():
    plan = la.swizzle(["rows", "columns"], "sm_90a", 16, "xor", tile=(64, 64))
    why = plan.why.splitlines()[1]
    told = "in the row-major tile 1024 with ld.shared.b16: lanes 0, 1, 2, 3, 4, 5, 6, 7, ... need 8 words of bank 0"
    assert told in why
    assert plan.by_rows == la.swizzle(["rows"], "sm_90a", 16, "xor", tile=(64, 64)).smem
    picture = la.draw.svg(plan)
    assert "row-major: ld.shared.b16, 8 turns" in picture
    assert "swizzled: ld.shared.b16, 1 turn<" in picture
    assert "1,8" in picture
