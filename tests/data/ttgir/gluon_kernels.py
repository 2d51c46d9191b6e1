"""Kernels in Gluon whose TTGIR is stored here, right and wrong; ``texts.py`` compiles them."""

# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


def layout(rows, columns):
    return gl.NVMMASharedLayout.get_default_for([rows, columns], gl.float16)


@gluon.jit
def load(a, b, ta, tb, full, empty, N, D: gl.constexpr, FLIP: gl.constexpr, BYTES: gl.constexpr):
    """Fill the slots of a ring: slot i % D, phase i / D."""
    for i in range(N):
        slot = i % D
        mbarrier.wait(empty.index(slot), ((i // D) & 1) ^ FLIP)
        mbarrier.expect(full.index(slot), BYTES)
        tma.async_load(a, [0, i * 64], full.index(slot), ta.index(slot))
        tma.async_load(b, [i * 64, 0], full.index(slot), tb.index(slot))


@gluon.jit
def multiply(c, ta, tb, full, empty, N, D: gl.constexpr, BEHIND: gl.constexpr, RELEASE: gl.constexpr):
    """Use the slots with counters that are carried; release the slot before when BEHIND is 1."""
    kind: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16])
    acc = gl.zeros((128, 128), dtype=gl.float32, layout=kind)
    slot = 0
    phase = 0
    for i in range(N):
        mbarrier.wait(full.index(slot), phase)
        acc = warpgroup_mma(ta.index(slot), tb.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(BEHIND, deps=(acc,))
        if RELEASE == 1:
            mbarrier.arrive(empty.index(slot))
        if RELEASE == 2:
            mbarrier.arrive(empty.index((i + D - 1) % D), pred=i > 0)
        slot += 1
        wrap = slot == D
        slot = gl.where(wrap, 0, slot)
        phase = phase ^ gl.where(wrap, 1, 0)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    tile = gl.allocate_shared_memory(gl.float16, [128, 128], c.layout)
    tile.store(acc.to(gl.float16))
    fence_async_shared()
    tma.async_store(c, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def barriers(D: gl.constexpr, COUNT: gl.constexpr):
    made = mbarrier.allocate_mbarrier(batch=D)
    for i in gl.static_range(D):
        mbarrier.init(made.index(i), count=COUNT)
    return made


@gluon.jit
def gluon_ring(
    a,
    b,
    c,
    N,
    D: gl.constexpr,
    FLIP: gl.constexpr,
    BYTES: gl.constexpr,
    BEHIND: gl.constexpr,
    RELEASE: gl.constexpr,
    COUNT: gl.constexpr,
):
    ta = gl.allocate_shared_memory(gl.float16, [D, 128, 64], a.layout)
    tb = gl.allocate_shared_memory(gl.float16, [D, 64, 128], b.layout)
    full = barriers(D, 1)
    empty = barriers(D, COUNT)
    gl.warp_specialize(
        [
            (multiply, (c, ta, tb, full, empty, N, D, BEHIND, RELEASE)),
            (load, (a, b, ta, tb, full, empty, N, D, FLIP, BYTES)),
        ],
        [1],
        [24],
    )


@gluon.jit
def gluon_two_consumers(a, b, c, N, D: gl.constexpr, COUNT: gl.constexpr):
    ta = gl.allocate_shared_memory(gl.float16, [D, 128, 64], a.layout)
    tb = gl.allocate_shared_memory(gl.float16, [D, 64, 128], b.layout)
    full = barriers(D, 1)
    empty = barriers(D, COUNT)
    gl.warp_specialize(
        [
            (multiply, (c, ta, tb, full, empty, N, D, 0, 1)),
            (multiply, (c, ta, tb, full, empty, N, D, 0, 1)),
            (load, (a, b, ta, tb, full, empty, N, D, 1, 32768)),
        ],
        [4, 1],
        [240, 24],
    )


@gluon.jit
def copy_in(a, tiles, full, empty, N, D: gl.constexpr, BYTES: gl.constexpr):
    slot = 0
    phase = 1
    for i in range(N):
        mbarrier.wait(empty.index(slot), phase)
        mbarrier.expect(full.index(slot), BYTES)
        tma.async_load(a, [i * 128, 0], full.index(slot), tiles.index(slot))
        slot += 1
        if slot == D:
            slot = 0
            phase ^= 1


@gluon.jit
def copy_out(c, tiles, full, empty, N, D: gl.constexpr, PENDING: gl.constexpr):
    for i in range(N):
        slot = i % D
        mbarrier.wait(full.index(slot), (i // D) & 1)
        tma.async_store(c, [i * 128, 0], tiles.index(slot))
        tma.store_wait(PENDING)
        mbarrier.arrive(empty.index(slot))


@gluon.jit
def gluon_copy_ring(a, c, N, D: gl.constexpr, BYTES: gl.constexpr, PENDING: gl.constexpr):
    tiles = gl.allocate_shared_memory(gl.float16, [D, 128, 64], a.layout)
    full = barriers(D, 1)
    empty = barriers(D, 1)
    gl.warp_specialize(
        [
            (copy_out, (c, tiles, full, empty, N, D, PENDING)),
            (copy_in, (a, tiles, full, empty, N, D, BYTES)),
        ],
        [1],
        [24],
    )


@gluon.jit
def sum_up(out, tiles, full, empty, N, D: gl.constexpr, FENCE: gl.constexpr):
    kind: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    total = gl.zeros((128, 64), dtype=gl.float32, layout=kind)
    for i in range(N):
        slot = i % D
        mbarrier.wait(full.index(slot), (i // D) & 1)
        total += tiles.index(slot).load(kind).to(gl.float32)
        if FENCE:
            fence_async_shared()
        mbarrier.arrive(empty.index(slot))
    rows = gl.arange(0, 128, layout=gl.SliceLayout(1, kind))[:, None]
    columns = gl.arange(0, 64, layout=gl.SliceLayout(0, kind))[None, :]
    gl.store(out + rows * 64 + columns, total)


@gluon.jit
def gluon_read_ring(a, out, N, D: gl.constexpr, FENCE: gl.constexpr):
    """The consumer reads slots with ordinary loads before it hands them back to a loader."""
    tiles = gl.allocate_shared_memory(gl.float16, [D, 128, 64], a.layout)
    full = barriers(D, 1)
    empty = barriers(D, 1)
    gl.warp_specialize(
        [
            (sum_up, (out, tiles, full, empty, N, D, FENCE)),
            (copy_in, (a, tiles, full, empty, N, D, 16384)),
        ],
        [1],
        [24],
    )


@gluon.jit
def gluon_scale(a, c, N, D: gl.constexpr, FENCE: gl.constexpr):
    """One role: copies run ahead by D - 1 iterations; results leave through a second ring."""
    kind: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    tiles = gl.allocate_shared_memory(gl.float16, [D, 128, 64], a.layout)
    done = gl.allocate_shared_memory(gl.float16, [2, 128, 64], c.layout)
    full = barriers(D, 1)
    for i in gl.static_range(D - 1):
        mbarrier.expect(full.index(i), 16384, pred=i < N)
        tma.async_load(a, [i * 128, 0], full.index(i), tiles.index(i), pred=i < N)
    for i in range(N):
        slot = i % D
        mbarrier.wait(full.index(slot), (i // D) & 1)
        value = tiles.index(slot).load(kind)
        tma.store_wait(1)
        done.index(i % 2).store(value * 2.0)
        if FENCE:
            fence_async_shared()
        tma.async_store(c, [i * 128, 0], done.index(i % 2))
        ahead = i + D - 1
        mbarrier.expect(full.index(ahead % D), 16384, pred=ahead < N)
        tma.async_load(a, [ahead * 128, 0], full.index(ahead % D), tiles.index(ahead % D), pred=ahead < N)
    tma.store_wait(0)


@gluon.jit
def issue(ta, tb, acc, full, empty, done, N, D: gl.constexpr):
    """Start the matrix instructions of tensor memory; their ends free the slots."""
    for i in range(N):
        slot = i % D
        mbarrier.wait(full.index(slot), (i // D) & 1)
        tcgen05_mma(ta.index(slot), tb.index(slot), acc, use_acc=i > 0)
        tcgen05_commit(empty.index(slot))
    tcgen05_commit(done)


@gluon.jit
def drain(c, acc, done):
    mbarrier.wait(done, 0)
    value = acc.load(acc.get_reg_layout())
    tile = gl.allocate_shared_memory(gl.float16, [128, 128], c.layout)
    tile.store(value.to(gl.float16))
    fence_async_shared()
    tma.async_store(c, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def gluon_tcgen05(a, b, c, N, D: gl.constexpr, FLIP: gl.constexpr, BYTES: gl.constexpr):
    ta = gl.allocate_shared_memory(gl.float16, [D, 128, 64], a.layout)
    tb = gl.allocate_shared_memory(gl.float16, [D, 64, 128], b.layout)
    full = barriers(D, 1)
    empty = barriers(D, 1)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)
    kind: gl.constexpr = TensorMemoryLayout([128, 128], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [128, 128], kind)
    gl.warp_specialize(
        [
            (drain, (c, acc, done)),
            (load, (a, b, ta, tb, full, empty, N, D, FLIP, BYTES)),
            (issue, (ta, tb, acc, full, empty, done, N, D)),
        ],
        [1, 1],
        [24, 24],
    )


def register(texts, tile):
    """Add the kernels to a table of texts."""
    gemm = {"a": tile(128, 64), "b": tile(64, 128), "c": tile(128, 128), "N": "i32"}
    ring = {"D": 4, "FLIP": 1, "BYTES": 32768, "BEHIND": 0, "RELEASE": 1, "COUNT": 1}
    for name, change in (
        ("gluon_ring", {}),
        ("gluon_ring_behind", {"BEHIND": 1, "RELEASE": 2}),
        ("gluon_ring_wrong_phase", {"FLIP": 0}),
        ("gluon_ring_no_arrive", {"RELEASE": 0}),
        ("gluon_ring_wrong_bytes", {"BYTES": 16384}),
        ("gluon_ring_early_release", {"BEHIND": 1}),
        ("gluon_ring_wrong_count", {"COUNT": 2}),
    ):
        texts[f"{name}_sm90"] = (gluon_ring, gemm, ring | change, 90, {})
    for name, count in (("gluon_two_consumers", 2), ("gluon_two_consumers_wrong_count", 1)):
        texts[f"{name}_sm90"] = (gluon_two_consumers, gemm, {"D": 3, "COUNT": count}, 90, {})
    for arch in (90, 100):
        copy = {"a": tile(128, 64), "c": tile(128, 64), "N": "i32"}
        for name, change in (
            ("gluon_copy_ring", {}),
            ("gluon_copy_ring_wrong_bytes", {"BYTES": 32768}),
            ("gluon_copy_ring_early_release", {"PENDING": 1}),
        ):
            constants = {"D": 3, "BYTES": 16384, "PENDING": 0} | change
            texts[f"{name}_sm{arch}"] = (gluon_copy_ring, copy, constants, arch, {})
        read = {"a": tile(128, 64), "out": "*fp32", "N": "i32"}
        texts[f"gluon_read_ring_sm{arch}"] = (gluon_read_ring, read, {"D": 3, "FENCE": True}, arch, {})
        texts[f"gluon_read_ring_no_fence_sm{arch}"] = (gluon_read_ring, read, {"D": 3, "FENCE": False}, arch, {})
        texts[f"gluon_scale_sm{arch}"] = (gluon_scale, copy, {"D": 4, "FENCE": True}, arch, {})
        texts[f"gluon_scale_no_fence_sm{arch}"] = (gluon_scale, copy, {"D": 4, "FENCE": False}, arch, {})
    for name, change in (
        ("gluon_tcgen05", {}),
        ("gluon_tcgen05_wrong_phase", {"FLIP": 0}),
        ("gluon_tcgen05_wrong_bytes", {"BYTES": 49152}),
    ):
        texts[f"{name}_sm100"] = (gluon_tcgen05, gemm, {"D": 4, "FLIP": 1, "BYTES": 32768} | change, 100, {})
