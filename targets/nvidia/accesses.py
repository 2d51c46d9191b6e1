"""What one instruction moves to or from shared memory: ldmatrix, stmatrix, ld.shared, st.shared, st.async, cp.async.

Notation: an instruction receives *row* addresses, one from each addressing lane; a slot is one element of a lane's
registers, low bits first. Digits are bits of the unit number and of the lane.

Main statements: unit u of lane l is at ``bit`` of the row supplied by lane ``row``, where both are sums of one pair
(bit, row) per set bit of u and of l; in every pair one part is 0. For 32-bit units, q = l mod 4 and
g = l div 4: ``ldmatrix`` has word i at bit 32 q of row 8 i + g; ``.trans`` half h of word i at bit 16 g of row
8 i + 2 q + h; a load or store of V bits per lane has its V bits at bit 0 of row l.

References: PTX ISA 9.1, ldmatrix, stmatrix, ld, st, st.async, cp.async. It has only figures of the forms of 8 bits and
fewer; their numbers are in CUTLASS 4.2 (``copy_traits_sm100.hpp`` with the byte permutations of
``copy_sm100.hpp``), and others measured ``m16n16`` on an sm_120a. Evidence: the m8n8 forms ran on an H200; these, all
loads and stores and ``cp.async`` ran on an H100, ``st.async`` between two blocks on an H200, where it is an illegal
instruction (715) in kernels without cluster dimensions, even if one block writes to itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.layout import Layout
from layoutalg.ground.listed import listed
from layoutalg.ground.recognize import Departure, linear, strided
from layoutalg.targets.model import fact
from layoutalg.targets.registry import lookup

IntArray = npt.NDArray[np.int64]
Pairs = tuple[tuple[int, int], ...]
LANES = 32
ROW_BITS = 128
_PTX = "PTX ISA"
_VERSION = "9.1"


@fact("LA820")
class AccessForm:
    """One instruction that moves rows of shared memory to or from registers."""

    name: str  # its name, without the parts common to all forms
    store: bool  # whether it writes shared memory
    unit_bits: int  # bits of shared memory that stay together
    row_bits: int  # required alignment of an address
    register: Pairs  # (bit of the row, row) for each bit of the unit number
    lane: Pairs  # (bit of the row, row) for each bit of the lane
    element_bits: int = 0  # the only element width it supports; 0 for any
    container_bits: int = 0  # register bits per element; 0 for the element width
    matrix_rows: int = 0  # rows of one matrix; 0 for instructions without matrices

    @property
    def addresses(self) -> int:
        """Number of lanes that supply an address; they are the first ones."""
        return 1 + sum(row for _, row in self.register + self.lane)

    @property
    def parts(self) -> int:
        """Number of row sets whose addresses can be chosen independently."""
        return 1 << sum(row > 0 for _, row in self.register)

    @property
    def moved_bits(self) -> int:
        """Bits of a row that are moved; the rest is padding."""
        return self.unit_bits + sum(bit for bit, _ in self.register + self.lane)

    def lanes(self) -> tuple[IntArray, IntArray]:
        """Return the bit and the row that each lane number adds."""
        return _sums(self.lane)

    def units(self) -> tuple[IntArray, IntArray]:
        """Return the bit and the row that each unit of a lane adds, in the order of registers."""
        return _sums(self.register)

    def slots(self, element_bits: int) -> tuple[IntArray, IntArray]:
        """Return the bit and the row of each element of lane 0, or of each part of an element above the unit."""
        step = min(element_bits, self.unit_bits)
        bits, rows = self.units()
        inside = np.arange(0, self.unit_bits, step, dtype=np.int64)
        return (bits[:, None] + inside).reshape(-1), np.repeat(rows, len(inside))


def _sums(pairs: Pairs) -> tuple[IntArray, IntArray]:
    bits, rows = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for bit, row in pairs:
        bits, rows = np.concatenate((bits, bits + bit)), np.concatenate((rows, rows + row))
    return bits, rows


_ACROSS: Pairs = ((0, 1), (0, 2), (0, 4))
_COUNTS = {1: (), 2: (8,), 4: (8, 16)}


def _words(*rows: int) -> Pairs:
    return tuple((0, row) for row in rows)


def _matrices() -> dict[str, AccessForm]:
    forms = []
    for count, more in _COUNTS.items():
        words = _words(*more)
        for store, kind in ((False, "ldmatrix"), (True, "stmatrix")):
            straight = ((32, 0), (64, 0), *_ACROSS)
            forms.append(AccessForm(f"{kind}.x{count}", store, 32, ROW_BITS, words, straight, matrix_rows=8))
            turned = ((0, 2), (0, 4), (16, 0), (32, 0), (64, 0))
            halves: Pairs = ((0, 1), *words)
            forms.append(AccessForm(f"{kind}.x{count}.trans", store, 16, ROW_BITS, halves, turned, matrix_rows=8))
        for bits, source in ((6, "b6x16_p32"), (4, "b4x16_p64")):
            name = f"ldmatrix.m8n16.x{count}.b8x16.{source}"
            straight = ((4 * bits, 0), (8 * bits, 0), *_ACROSS)
            forms.append(AccessForm(name, False, 4 * bits, ROW_BITS, words, straight, bits, 8, 8))
        columns: Pairs = ((0, 2), (0, 4), (8, 0), (16, 0), (32, 0))
        narrow: Pairs = ((0, 1), (64, 0), *words)
        forms.append(
            AccessForm(f"stmatrix.m16n8.x{count}.trans.b8", True, 8, ROW_BITS, narrow, columns, 8, matrix_rows=8)
        )
    for count in (1, 2):
        columns = ((0, 4), (0, 8), (8, 0), (16, 0), (32, 0))
        wide: Pairs = ((0, 1), (0, 2), (64, 0), *_words(*(16,) * (count - 1)))
        name = f"ldmatrix.m16n16.x{count}.trans.b8"
        forms.append(AccessForm(name, False, 8, ROW_BITS, wide, columns, 8, matrix_rows=16))
    return {form.name: form for form in forms}


_LANES: Pairs = tuple((0, 1 << bit) for bit in range(5))


def _vectors() -> dict[str, AccessForm]:
    forms = []
    widths = (8, 16, 32, 64, 128)
    for kind, store, sizes in (("ld.shared", False, widths), ("st.shared", True, widths), ("st.async", True, (32, 64))):
        for bits in sizes:
            for count in (1, 2, 4):
                if bits * count <= ROW_BITS:
                    name = f"{kind}{f'.v{count}' if count > 1 else ''}.b{bits}"
                    forms.append(AccessForm(name, store, bits * count, bits * count, (), _LANES))
    for cache, counts in (("ca", (4, 8, 16)), ("cg", (16,))):
        forms += [AccessForm(f"cp.async.{cache}.{size}", True, 8 * size, 8 * size, (), _LANES) for size in counts]
    return {form.name: form for form in forms}


FORMS: Mapping[str, AccessForm] = MappingProxyType(_matrices() | _vectors())
"""Every form by its short name."""
_MATRIX = re.compile(
    r"(ld|st)matrix(?:\.sync)?(?:\.aligned)?(\.m8n8|\.m16n16|\.m8n16|\.m16n8)?(\.x[124])(\.trans)?"
    r"(?:\.shared(?:::cta)?)?(\.b16|\.b8|\.b8x16\.b[46]x16_p(?:32|64))?"
)
_VECTOR = re.compile(r"(ld|st)\.shared(?:::cta)?(?:\.v([0-9]+))?\.([busf])([0-9]+)")
VECTOR_RULE = (
    "ld.shared and st.shared move b8, b16, b32, b64 (also u, s; f32, f64), alone or as .v2 or .v4 of at most 128 bits "
    "together, or one b128"
)
_KNOWN = (
    "known: ldmatrix, stmatrix, ld.shared, st.shared, st.async and cp.async: ldmatrix.x4.trans, "
    "ldmatrix.m16n16.x1.trans.b8, stmatrix.x2, ld.shared.v4.b32, st.async.v4.b32, cp.async.cg.16, ..."
)
_REMOTE = re.compile(
    r"st\.async(?:\.weak)?(?:\.shared::cluster)?(?:\.mbarrier::complete_tx::bytes)?(\.v[24])?\.[busf](32|64)"
)
_COPY = re.compile(r"cp\.async\.(ca|cg)(?:\.shared(?:::cta)?)?(?:\.global)?\.(4|8|16)")


_UNTYPED = re.compile(r"(?:ld|st)\.shared(?:::cta)?\.v[24]")
SHORT = ("ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans")
"""Matrix instructions without a matrix count, which then is four."""


def full_name(name: str) -> str:
    """Return the name of an instruction in full: four matrices and 32-bit words unless it says otherwise.

    Any other name is returned unchanged.

    Example:
        >>> full_name("ldmatrix"), full_name("stmatrix.trans"), full_name("ldmatrix.x2"), full_name("tma")
        ('ldmatrix.x4', 'stmatrix.x4.trans', 'ldmatrix.x2', 'tma')
        >>> full_name("ld.shared.v4"), full_name("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16")
        ('ld.shared.v4.b32', 'ldmatrix.x2.trans')
    """
    stated = name.replace("matrix", "matrix.x4") if name in SHORT else name
    stated = f"{name}.b32" if _UNTYPED.fullmatch(name) else stated
    try:
        return access_form(stated).name
    except MalformedError:
        return name


def short_name(name: str) -> str:
    """Return the name of a matrix instruction without ``.x4``; any other name unchanged.

    Example:
        >>> short_name("ldmatrix.x4.trans"), short_name("ldmatrix.x2"), short_name("rows")
        ('ldmatrix.trans', 'ldmatrix.x2', 'rows')
    """
    return next((short for short in SHORT if full_name(short) == name), name)


def access_form(instruction: object) -> AccessForm:
    """Return the form of an instruction.

    Args:
        instruction: ``"ldmatrix.x4.trans"``, ``"stmatrix.m16n8.x1.trans.b8"``, ``"ld.shared.v4.b32"``,
            ``"cp.async.cg.16"``; or the name in PTX.

    Example:
        >>> access_form("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32").name
        'st.async.v4.b32'
        >>> access_form("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16").name
        'ldmatrix.x2.trans'
        >>> access_form("ldmatrix.x4").addresses, access_form("ld.shared.v4.f32").unit_bits
        (32, 128)
    """
    text = instruction if isinstance(instruction, str) else ""
    name = text
    if found := _MATRIX.fullmatch(text):
        kind, shape, count, trans, bits = found.groups(default="")
        plain = shape in ("", ".m8n8") and bits in ("", ".b16")
        name = f"{kind}matrix{'' if plain else shape}{count}{trans}{'' if plain else bits}"
    elif vector := vector_name(text):
        name = vector
    elif found := _COPY.fullmatch(text):
        name = f"cp.async.{found[1]}.{found[2]}"
    elif found := _REMOTE.fullmatch(text):
        name = f"st.async{found[1] or ''}.b{found[2]}"
    if name not in FORMS:
        what, where = "unknown register/shared-memory instruction", (shown(instruction),)
        because = VECTOR_RULE if _VECTOR.fullmatch(text) else _KNOWN
        raise MalformedError(Diagnostic("LA820", what, where, because, source=f"{_PTX} {_VERSION}"))
    return FORMS[name]


def vector_name(text: str) -> str | None:
    """Return the short name of a shared-memory load or store; None if PTX has no such instruction.

    Example:
        >>> vector_name("ld.shared::cta.v2.f64"), vector_name("st.shared.v4.u8"), vector_name("ld.shared.b128")
        ('ld.shared.v2.b64', 'st.shared.v4.b8', 'ld.shared.b128')
        >>> [vector_name(f"ld.shared.{kind}") for kind in ("v8.b16", "v4.b64", "v2.b128", "u128", "f16")]
        [None, None, None, None, None]

    Source: PTX ISA 9.1, ld and st; the assembler for sm_90a accepts exactly these names.
    """
    found = _VECTOR.fullmatch(text)
    if found is None:
        return None
    kind, count, letter, bits = found[1], found[2], found[3], found[4]
    if bits not in {"b": ("8", "16", "32", "64", "128"), "f": ("32", "64")}.get(letter, ("8", "16", "32", "64")):
        return None
    name = f"{kind}.shared{'' if count is None else f'.v{count}'}.b{bits}"
    return name if name in FORMS and count in (None, "2", "4") else None


def available(form: AccessForm, target: str) -> bool | None:
    """Return whether a target has an instruction; None if no available document says.

    Example:
        >>> [available(access_form("stmatrix.x1"), arch) for arch in ("sm_80", "sm_90a", "gfx942")]
        [False, True, False]
        >>> available(access_form("ldmatrix.m16n16.x1.trans.b8"), "sm_90a")
        False

    Source: PTX ISA 9.1, target notes of ldmatrix (sm_75), stmatrix, st.async (sm_90), cp.async (sm_80), narrow forms.
    """
    found = lookup(target)
    capability = found.compute_capability
    if found.vendor != "nvidia" or capability is None:
        return False
    if form.element_bits:
        return True if "narrow" in found.features else None if capability >= (10, 0) else False
    since = {"ldmatrix": (7, 5), "stmatrix": (9, 0), "cp.async": (8, 0), "st.async": (9, 0)}
    return capability >= next((first for name, first in since.items() if form.name.startswith(name)), (7, 0))


def layout(instruction: str, addresses: object, element_bits: int = 16) -> Layout:
    """Return the shared byte that each register element of each lane is read from or written to.

    Mathematically: element (register, lane) of instruction i is at address(row, i) + bit / 8, where row and bit
    are those of the form. Elements below a byte are counted in bits.

    Args:
        instruction: As for ``access_form``.
        addresses: Byte addresses int64[instruction, ..., lane], or a layout with the axis ``lane`` first; lanes that
            supply no address may be left out.
        element_bits: Bits of an element.

    Returns:
        (register, lane, ...) -> byte (bit for smaller elements): a ``LinearLayout`` or ``CuteLayout`` if it is one,
        otherwise the table.

    Example:
        >>> print(layout("ldmatrix.x1", [[16 * row for row in range(8)]]))
        F2[register=(2), lane=(4)(8)(16)(32)(64), instruction= -> byte:128]
        >>> print(layout("ldmatrix.x1", [[80 * row for row in range(8)]]))
        ((2),(4,8),(1)):((2),(4,80),(0))
    """
    form = access_form(instruction)
    table, names = _table(addresses, form)
    places = moved_bits(form, table, element_bits)
    small = element_bits % 8
    values = places if small else places // 8
    return layout_of_table(values, ("register", "lane", *names), "bit" if small else "byte")


def moved_bits(form: AccessForm, addresses: IntArray, element_bits: int) -> IntArray:
    """Return the shared bit of each slot: int64[register, lane, ...] for byte addresses int64[lane, ...].

    Example:
        >>> moved_bits(access_form("ld.shared.b32"), np.arange(0, 128, 4), 32)[0, :3].tolist()
        [0, 32, 64]
    """
    slot_bits, slot_rows = form.slots(element_bits)
    lane_bits, lane_rows = form.lanes()
    rows = slot_rows[:, None] + lane_rows
    bits = slot_bits[:, None] + lane_bits
    return np.asarray(8 * addresses[rows] + bits.reshape(*bits.shape, *(1,) * (addresses.ndim - 1)), dtype=np.int64)


def _table(addresses: object, form: AccessForm) -> tuple[IntArray, tuple[str, ...]]:
    """Return byte addresses [lane, ...] and the names of the other axes."""
    if isinstance(addresses, Layout):
        extents = addresses.in_dims
        flat = np.asarray(addresses.table(), dtype=np.int64)
        if isinstance(addresses, CuteLayout):
            shape = addresses.shape if isinstance(addresses.shape, tuple) else (addresses.shape,)
            sizes = [CuteLayout(mode).size for mode in shape]
            names = tuple(("instruction", "warp")[: len(sizes) - 1])
        else:
            sizes, names = list(extents.values()), tuple(extents)[1:]
        table = flat.reshape(sizes, order="F")
    else:
        found = np.asarray(addresses)
        if found.dtype.kind not in "iu" or not 1 <= found.ndim <= 3:
            raise _malformed("addresses", "must be integers [instruction, warp, lane] or a layout", addresses)
        table = found.astype(np.int64).T
        if found.ndim == 3:  # [instruction, warp, lane] -> [lane, instruction, warp]
            table = found.astype(np.int64).transpose(2, 0, 1)
        names = ("instruction", "warp")[: found.ndim - 1]
    if len(table) < form.addresses:
        raise _malformed("addresses", f"must have the addresses of {form.addresses} lanes", len(table))
    if (table[: form.addresses] * 8 % form.row_bits).any() or int(table.min(initial=0)) < 0:
        raise _malformed("addresses", f"must be non-negative multiples of {form.row_bits // 8}", int(table.min()))
    return table, names


def layout_of_table(values: IntArray, names: tuple[str, ...], output: str) -> Layout:
    """Return a table over named axes (fastest first) as a layout: linear over F2, strided by axis, or the table.

    Example:
        >>> print(layout_of_table(np.array([[0, 4], [1, 5], [2, 6]]), ("lane", "instruction"), "byte"))
        ((3),(2)):((1),(4))
    """
    flat = values.reshape(-1, order="F")
    if not values.size & (values.size - 1) and int(flat.min()) >= 0:
        found = linear(flat)
        if not isinstance(found, Departure):
            size = 1 << max(int(flat.max()).bit_length(), 0)
            axes = tuple((name, extent.bit_length() - 1) for name, extent in zip(names, values.shape, strict=True))
            return LinearLayout(axes, ((output, size.bit_length() - 1),), *found)
    parts = [
        strided(values[tuple(slice(None) if k == axis else 0 for k in range(values.ndim))])
        for axis in range(values.ndim)
    ]
    modes = [part for part in parts if not isinstance(part, Departure)]
    if int(flat[0]) == 0 and len(modes) == len(parts):
        whole = [part or ((1, 0),) for part in modes]
        cute = CuteLayout(
            tuple(tuple(extent for extent, _ in part) for part in whole),
            tuple(tuple(stride for _, stride in part) for part in whole),
        )
        if np.array_equal(np.asarray(cute.table()), flat):
            return cute
    return listed(values)


def _malformed(argument: str, rule: str, actual: Any) -> MalformedError:
    where, because = (argument,), f"{argument} {rule}, not {shown(actual)}"
    return MalformedError(Diagnostic("LA821", "invalid addresses for this instruction", where, because))
