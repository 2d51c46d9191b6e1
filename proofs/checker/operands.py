"""Claims about reads of shared memory: ``wgmma`` operands and bank conflicts, by rules measured on devices.

Element (m, k) of a wgmma operand is requested at byte swizzled(base + layout(m + M k), swizzle) for every base that is
a multiple of "align", addresses below 2**18. Swizzles: none, 32B, 64B, 128B. No "dtype": 16 bits; b1 counts bits.
"""

import itertools
import math
import re
import typing

import numpy as np

from .base import (
    NATURAL,
    POINTS,
    POSITIVE,
    SIZED,
    column,
    compare_seal,
    limit_points,
    require,
    stages,
    tick,
)

# --- wgmma operands --------------------------------------------------------------------------------------------------
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
INTEGERS = ("s8", "u8", "b1")
SHARED_END = 2**18  # descriptors name addresses of 18 bits
PERIODS = (16, 256, 512, 1024)  # bytes after which a swizzle repeats, by its number
OPERAND = {
    "operand": {"A", "B"},
    "shape": (POSITIVE, POSITIVE),
    "layout": SIZED,
    "swizzle": range(4),
    "align": range(16, 2**18 + 1, 16),
    "dtype?": {*BITS},
    "sparse?": bool,
}
READ = {**OPERAND, "major": {"K", "MN"}, "rows": range(8, 257, 8), "words": [range(2**64)]}
RESERVED = 0xFFF1C000C000C000  # bits of a descriptor that must be 0; includes those of the swizzle


def swizzled(byte, swizzle, offset=0):
    """Xor the index of a 16-byte chunk with that of its 128-byte row, as far as the swizzle goes; the base offset of
    a descriptor shifts the rows."""
    row = (byte >> 7) - offset
    return byte ^ row % (1 << swizzle) << 4


def element_bits(tile):
    return BITS[tile.dtype or "f16"]


def depth(tile):
    """Return how many elements along k one instruction reads; where A is sparse, B has twice as many."""
    bits = 512 if tile.sparse and tile.operand == "B" else 256
    return bits // element_bits(tile)


def requested_bytes(tile, rows):
    """Return the unswizzled byte of each element as [i, j, m, k]: part (i, j) of the operand, element (m, k) of it."""
    size = tile.layout.size
    require(size == math.prod(tile.shape) <= 2**17, "the layout has another size than the operand", got=size)
    deep = depth(tile)
    return column(size, tile.layout.stages).reshape(tile.shape[1] // deep, deep, -1, rows).transpose(2, 0, 3, 1)


class Core(typing.NamedTuple):
    """How a descriptor steps: ``edge`` rows ``near_m`` bytes apart, ``turn`` columns ``near_k`` bytes apart."""

    near_m: int
    edge: int
    near_k: int
    turn: int


def core_of(major, mode, element_bytes):
    span = 16 << mode  # bytes of a row of a swizzle
    if major == "K":
        return Core(near_m=span, edge=8, near_k=element_bytes, turn=span // element_bytes)
    return Core(near_m=2, edge=span // 2, near_k=span, turn=8)


def misread(tile, rows, major, mode, offset, corners=None):
    """Return where [i, j, m, k] descriptors, for rows x depth elements each, read wrong bytes, as measured on a device.

    ``mode`` is the swizzle of the descriptors, ``offset`` their base offset. Corners are their unswizzled bytes: of the
    start, and how far it is to the next core along m and along k. By default they are the only candidates: where these
    elements are requested."""
    parts, bits = requested_bytes(tile, rows), element_bits(tile)
    require(bits == 16 or major == "K", "no instruction reads this", dtype=tile.dtype)
    require(tile.dtype != "b1" or not tile.sparse, "no instruction reads this", dtype=tile.dtype)
    m, k = np.indices((rows, depth(tile)))
    other_bit = np.zeros(1, dtype=bool)
    if bits == 1:  # from bits to bytes; the bit of a byte must be that of k
        other_bit = parts % 8 != k % 8
        parts, k = parts // 8, k // 8
    core = core_of(major, mode, max(bits // 8, 1))

    if corners is None:
        descriptor_byte = swizzled(swizzled(parts, tile.swizzle), mode, offset)
        next_k = core.turn * max(8 // bits, 1) % depth(tile)
        start, at_m, at_k = (
            descriptor_byte[..., i, j, None, None] for i, j in ((0, 0), (core.edge % rows, 0), (0, next_k))
        )
        corners = start, at_m - start, at_k - start
    start, far_m, far_k = corners
    unread = 16  # any stride: a part of one core is read without it
    far_m = far_m if core.edge < rows else unread
    far_k = far_k if k.max() >= core.turn else unread
    linear = (
        start
        + core.near_m * (m % core.edge)
        + far_m * (m // core.edge)
        + core.near_k * (k % core.turn)
        + far_k * (k // core.turn)
    )

    period = PERIODS[max(mode, tile.swizzle)]
    bases = range(0, period, math.gcd(tile.align, period))
    fits_fields = (start | far_m | far_k) & ~0x3FFF0 == 0
    strides_measured = far_m * far_k != 0  # what a stride of 0 does was not measured
    below_end = linear + bases[-1] < SHARED_END
    wrong = ~(fits_fields & strides_measured & below_end).astype(bool) | other_bit
    for base in bases:
        tick()
        read = swizzled(swizzled(parts + base, tile.swizzle), mode, offset) - base
        wrong = wrong | (read != linear)
    return wrong


def wgmma_operand(statement, _):
    """The descriptors (for base 0; others add base / 16), next along k, read all elements."""
    tile, rows, shape, deep = statement, statement.rows, statement.shape, depth(statement)
    require_cover(tile, rows, deep)
    words = np.array(tile.words, dtype=object).reshape(-1, shape[1] // deep, 1, 1)
    swizzle_field = tile.words[0] >> 62
    mode = -swizzle_field % 4  # the fields 1, 2, 3 are 128B, 64B, 32B
    reserved = (words ^ (swizzle_field << 62)) & RESERVED
    require(not reserved.any(), "a reserved bit is set, or swizzles differ")
    start, leading, stride, offset = ((words >> place & 0x3FFF).astype(np.int64) * 16 for place in (0, 16, 32, 49))
    far_m, far_k = (leading, stride) if tile.major == "MN" and mode else (stride, leading)
    wrong = np.argwhere(misread(tile, rows, tile.major, mode, offset // 16 % 8, (start, far_m, far_k)))
    first = [[rows * i + m, deep * j + k] for i, j, m, k in wrong[:1].tolist()]
    require(not len(wrong), "wgmma reads another byte", m_k=first)
    return f"{words.size} descriptors read {shape[0]} x {shape[1]} elements"


def require_cover(tile, rows, deep):
    """Refute unless instructions of these rows exist and their parts make up the operand."""
    whole = tile.shape[0] % rows == 0 and tile.shape[1] % deep == 0
    whole &= len(tile.words) * rows * deep == math.prod(tile.shape)
    if tile.operand == "A":
        whole &= rows == 64
    elif tile.dtype in INTEGERS:
        whole &= rows <= 24 or rows % 16 == 0
    require(whole, "the instructions do not cover the operand", rows=rows, shape=tile.shape)


def no_operand(statement, _):
    """Under each major and swizzle some part of 64 rows of A or 8 of B is read by no descriptor, as far as measured."""
    tile, shape = statement, statement.shape
    rows = 64 if tile.operand == "A" else 8
    majors = ("K", "MN") if element_bits(tile) == 16 else ("K",)
    modes = range(4) if shape[0] % rows == 0 and shape[1] % depth(tile) == 0 else ()
    for major, mode in itertools.product(majors, modes):
        wrong = [misread(tile, rows, major, mode, offset).any(axis=(2, 3)) for offset in range(1 << mode)]
        unread = np.all(wrong, axis=0)  # parts that no base offset reads
        require(unread.any(), "descriptors read this operand", major=major, swizzle=mode)
    return f"no descriptors read these {shape[0]} x {shape[1]} elements"


# --- banks -----------------------------------------------------------------------------------------------------------
# Banks of 4 bytes serve groups of lanes (listed for each four of 32) in sequence, each group in as many turns as its
# busiest bank has distinct words. Measured on H200 and H100; AMD by nod-ai, HipKittens, composable kernel and Triton.
GROUPS = {
    r"sm_90a? (ld|st)\.shared\.b(8|16|32)|gfx(942|1100|1201) ds_read_b32|gfx950 ds_read_b64": "00000000",
    r"sm_90a? (ld|st)\.shared\.b64|gfx(1100|1201|942) ds_read_b64|gfx(942 ds_read2|950 ds_write)_b64": "00001111",
    r"sm_90a? (ld|st)(\.shared\.b128|matrix\.x[124])|gfx942 ds_write_b128|gfx1201 ds_read_b128": "00112233",
    r"gfx(942|1100) ds_read_b128|gfx950 ds_read_b96": "01231032",
    "gfx950 ds_read_b128": "01101001",
    r"sm_\d+a? (ld|st)\.global\.b(8|16|32|64|128|256)": "00000000",
}
# Global memory is one bank of sectors of 32 bytes: an access has one "turn" for each that it touches (documented).


class Access(typing.NamedTuple):
    """An instruction: the groups of its lanes, how many addresses it has, of how many bytes, and the banks."""

    groups: str
    lanes: int
    width: int
    banks: int
    merges: bool  # whether neighbouring groups merge where their lanes read the same
    word: int = 4


def access_of(name):
    groups = "".join(digits for pattern, digits in GROUPS.items() if re.fullmatch(pattern, name))
    require(groups, "the lane groups of this access were not measured", access=name)
    last_number = int(re.findall(r"\d+", name)[-1])
    banks = 64 if re.search("50 ds_read_b(64|128)", name) else 32
    if "matrix" in name:  # ldmatrix.x4 has four times eight rows of 16 bytes
        return Access(groups, 8 * last_number, 16, banks, merges=False)
    lanes = 64 if "gfx9" in name else 32
    if "d2_" in name:  # ds_read2 has two addresses for each lane
        lanes = 128
    width = last_number // 8
    if "global" in name:
        return Access(groups, lanes, width, 1, merges=False, word=32)
    return Access(groups, lanes, width, banks, merges=width > 4 and "ld." in name)


def turns_of(name, starts, spread=False):
    """Return the turns of accesses with lanes at these bytes (-1: inactive), None if they are not whole and aligned;
    spread: as if the words of each group were spread evenly over the banks."""
    access, turns = access_of(name), []
    alignment = access.width & -access.width
    if len(starts) % access.lanes or (starts * (starts > 0) % alignment).any():
        return None
    if len(starts) >= 2**16:
        compare_seal()
    for lane_starts in starts.reshape(-1, access.lanes):
        tick()
        words = words_of(access, lane_starts.tolist())
        banks = [group * access.banks + word % access.banks for group, word in words]
        crowds = np.bincount(banks, minlength=16 * access.banks).reshape(16, -1)  # at most 16 groups
        each = -(-crowds.sum(axis=1) // access.banks) if spread else crowds.max(axis=1)
        turns.append(int(each.sum()))
    return turns


def words_of(access, lane_starts):
    """Return the distinct (group, word) of one access."""
    merged = access.merges and any(reads_like_partner(lane_starts, step) for step in (1, 2))
    words = set()
    for lane, start in enumerate(lane_starts):
        if start >= 0:
            group = int(access.groups[lane // 4 % 8]) >> merged  # neighbouring groups merge, as measured
            ends = range(start // access.word, -(-(start + access.width) // access.word))
            words |= {(lane // 32 * 4 + group, word) for word in ends}
    return words


def reads_like_partner(lane_starts, step):
    """Whether all lanes read where the lane with one bit of its number flipped does, unless one of both is inactive."""
    pairs = [(lane_starts[lane], lane_starts[lane ^ step]) for lane in range(32)]
    return all(own == partner or -1 in (own, partner) for own, partner in pairs)


def bank_turns(statement, _):
    """Lane l of access a starts at byte address(l + lanes a); all accesses take "turns", the worst takes "most"."""
    starts = column(statement.address.size, statement.address.stages)
    in_global = "global" in statement.access
    in_memory = ((starts >= 0) & (starts < (2**61 if in_global else 2**32))).all()
    turns = turns_of(statement.access, starts if in_memory else np.ones(1))  # one lane is no whole access
    require(turns, "these are no aligned addresses of whole accesses", size=statement.address.size)
    claimed, expected = [statement.turns, statement.most], [sum(turns), max(turns)]
    require(claimed == expected, "the turns are wrong", got=claimed, expected=expected)
    does, what = ("touch", "sectors") if in_global else ("take", "turns")
    return f"{len(turns)} accesses {does} {claimed[0]} {what}, at most {claimed[1]} each"


PADDED = [["affine", [[48]], [0]]]  # cells of 48 bytes: separate and aligned for every access


def least_turns(statement, _):
    """Lane l of access a starts at byte layout(cell(l + lanes a)), unless that cell is -1: inactive. Of layouts that
    align all, "first" is the first with the fewest turns; without them no separate places of the cells do better."""
    layouts, first = statement.layouts, statement.first
    limit_points(sum(cells.size for _, cells in statement.moved) * len(layouts or [0]))
    accesses = [(name, column(cells.size, cells.stages).astype(np.int64)) for name, cells in statement.moved]
    are_cells = all(len(cells) and cells.min() >= -1 and 0 <= cells.max() < POINTS for _, cells in accesses)
    has_layouts = layouts != [] and (layouts is None) == (first is None)
    require(accesses and are_cells and has_layouts, "these are no cells, or no first of layouts")
    totals = []
    for layout in layouts or [PADDED]:
        place = column(1 + max(int(cells.max()) for _, cells in accesses), layout)
        in_shared = place.min() >= 0 and place.max() < 2**32
        require(in_shared, "a layout puts a cell outside of shared memory", layout=len(totals))
        turns = [
            turns_of(name, np.where(cells < 0, -1, place[cells]), spread=layouts is None) for name, cells in accesses
        ]
        totals.append(math.inf if None in turns else sum(map(sum, turns)))
    least = min(totals)
    are_least = [least, totals.index(least)] == [statement.turns, first or 0]
    require(are_least, "the fewest turns are others", got=least)
    others = f"none of {len(totals)} layouts takes" if layouts else "no places of cells take"
    return f"{others} fewer than {statement.turns} turns"


OPERAND_KINDS = {"wgmma-operand": (wgmma_operand, READ, {}), "no-operand": (no_operand, OPERAND, {})}
BANK_KINDS = {
    "bank-turns": (bank_turns, {"access": str, "address": SIZED, "turns": NATURAL, "most": NATURAL}, {}),
    "least-turns": (
        least_turns,
        {"moved": [(str, SIZED)], "layouts?": [stages], "turns": NATURAL, "first?": NATURAL},
        {},
    ),
}
