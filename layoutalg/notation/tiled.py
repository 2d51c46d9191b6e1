"""Read the printed ``TiledCopy`` and ``TiledMMA`` of CuTe C++ and the CuTe DSL, and their atoms.

Notation: a headline, then fields ``NAME: VALUE``, one a line; names in front, ``tiled_mma: Tiled MMA``, comment marks
before and comments after lines are skipped. Blanks and underscores in names are free.

    TiledCopy                     Tiled Copy              TiledMMA                  Tiled MMA
      Tiler_MN:                     Tiler MN:               ThrLayoutVMNK:            Thr Layout VMNK:
      TiledLayout_TV:               TV Layout tiled:        PermutationMNK:           Permutation MNK:
    Copy_Atom                     Copy Atom               MMA_Atom                  MMA Atom
      ThrID:                        ThrID:                  ThrID:                    ThrID:
      ValLayoutSrc: Dst: Ref:       TV Layout Src: Dst:     Shape_MNK:                Shape MNK:
      ValueType:                    Value type:             LayoutA_TV: B: C:         TV Layout A: B: C:

Main statements: (thread, value) layouts of a tile map to its flat coordinate, first dimension fastest. Those of a copy
count in the reference order of its instruction, which the DSL does not print. It is known if source and destination are
equal; if all threads of one side have the whole of it, in order (tensor memory, ``tcgen05.cp``), it is that side; for
``ldmatrix`` and ``stmatrix`` the side of the registers. This holds for every atom of CUTLASS but its two shuffles and
the transposed 8-bit loads whose bytes it permutes; of these the order is not guessed.

References: CuTe ``print`` of ``copy_atom.hpp`` and ``mma_atom.hpp``, ``RefLayout`` of ``copy_traits_*.hpp``; CuTe DSL
``str`` of tiled copies and MMAs in ``cutlass/cute/atom.py`` (all of CUTLASS 4.5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from layoutalg.cute.inttuple import product
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.notation import parse_cute
from layoutalg.cute.operands import Tiler
from layoutalg.cute.partition import CopyAtom, TiledCopy
from layoutalg.cute.tiled_mma import MmaAtom, TiledMMA
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS
from layoutalg.ground.picture import Shown
from layoutalg.ground.text import caret
from layoutalg.notation.printout import TILED_AHEAD
from layoutalg.targets.nvidia.accesses import FORMS, LANES, ROW_BITS

_CHECK = Checker("LA190", "the notation is malformed")
_COMMENTS = re.compile(r"^[ \t]*(?://|\#)?[ \t]*|[ \t]*//.*$")
_FIELDS: Mapping[str, tuple[str, str]] = {
    "thrid": ("", "ThrID"),
    "tilermn": ("copy", "Tiler_MN"),
    "tiledlayouttv": ("copy", "TiledLayout_TV"),
    "tvlayouttiled": ("copy", "TiledLayout_TV"),
    "vallayoutsrc": ("copy", "ValLayoutSrc"),
    "tvlayoutsrc": ("copy", "ValLayoutSrc"),
    "vallayoutdst": ("copy", "ValLayoutDst"),
    "tvlayoutdst": ("copy", "ValLayoutDst"),
    "vallayoutref": ("copy", "ValLayoutRef"),
    "tvlayoutref": ("copy", "ValLayoutRef"),
    "valuetype": ("copy", "ValueType"),
    "thrlayoutvmnk": ("mma", "ThrLayoutVMNK"),
    "permutationmnk": ("mma", "PermutationMNK"),
    "shapemnk": ("mma", "Shape_MNK"),
    "layoutatv": ("mma", "LayoutA_TV"),
    "tvlayouta": ("mma", "LayoutA_TV"),
    "layoutbtv": ("mma", "LayoutB_TV"),
    "tvlayoutb": ("mma", "LayoutB_TV"),
    "layoutctv": ("mma", "LayoutC_TV"),
    "tvlayoutc": ("mma", "LayoutC_TV"),
}
"""Names without blanks and underscores -> what has the field, and CuTe C++'s name."""
_SKIPPED = ("thridx", "thrvmnk")
_NEEDED = {"copy": ("ValLayoutSrc", "ValLayoutDst"), "mma": ("Shape_MNK", "LayoutA_TV", "LayoutB_TV", "LayoutC_TV")}
_TILERS = ("Tiler_MN", "PermutationMNK", "Shape_MNK")
_HEADS = {"copy": ("TiledCopy", "Copy_Atom"), "mma": ("TiledMMA", "MMA_Atom")}
_OF_TILE = ("Tiler_MN", "TiledLayout_TV", "ThrLayoutVMNK", "PermutationMNK")


@dataclass(frozen=True, slots=True)
class PrintedTiling(Shown):
    """A printed tiled copy or matrix instruction, or its atom alone.

    Args:
        kind: ``"copy"`` or ``"mma"``.
        fields: The printed fields by the names of CuTe C++: layouts, tilers, and ``ValueType`` as text.

    Example:
        >>> found = read_tiled('''Tiled Copy
        ...   Tiler MN:        (32:1,32:1)
        ...   TV Layout tiled: ((4,32),8):((256,1),32)
        ... Copy Atom
        ...   ThrID:           1:0
        ...   TV Layout Src:   (1,8):(0,1)
        ...   TV Layout Dst:   (1,8):(0,1)
        ...   Value type:      f16''')
        >>> found.tile, found.atom, found.dtype
        ((32, 32), 'copy of 8 values by each of 1 thread', 'f16')
        >>> print(found.layouts["source"])
        ((1,(4,32)),(8,1)):((0,(256,1)),(32,0))
    """

    kind: str
    fields: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        found, heads = dict(self.fields), _HEADS[self.kind]
        lines = [heads[0]] if any(name in found for name in _OF_TILE) else []
        lines += [f"  {name + ':':<15} {_text(found[name])}" for name in _OF_TILE if name in found]
        rest = [f"  {name + ':':<15} {_text(value)}" for name, value in self.fields if name not in _OF_TILE]
        return "\n".join([*lines, heads[1], *rest])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self) if not cycle else "...")

    @property
    def value(self) -> TiledCopy | TiledMMA:
        """The same as ``cute.TiledCopy`` or ``cute.TiledMMA``.

        Raises: MalformedError: LA141, LA179; LA190, an atom without a tile, or an order that is not known.
        """
        found = dict(self.fields)
        if self.kind == "mma":
            a, b, c = (found[f"Layout{name}_TV"] for name in "ABC")
            atom = MmaAtom(found["Shape_MNK"], a, b, c)
            alone = CuteLayout((atom.threads, 1, 1, 1), (1, 0, 0, 0))
            return TiledMMA(found.get("ThrLayoutVMNK", alone), found.get("PermutationMNK", (None, None, None)), atom)
        if "TiledLayout_TV" not in found or "Tiler_MN" not in found:
            raise _CHECK.malformed("text", "must have the fields Tiler_MN and TiledLayout_TV of a tile", "a copy atom")
        source, destination = found["ValLayoutSrc"], found["ValLayoutDst"]
        return TiledCopy(
            found["TiledLayout_TV"], found["Tiler_MN"], CopyAtom(source, destination, self._reference(found))
        )

    def _reference(self, found: Mapping[str, Any]) -> CuteLayout:
        """The order in which the tile's layout counts; ``ldmatrix`` and ``stmatrix`` count registers."""
        source, destination = found["ValLayoutSrc"], found["ValLayoutDst"]
        if "ValLayoutRef" in found:
            return found["ValLayoutRef"]  # type: ignore[no-any-return]
        kind = _matrices(found).partition(".")[0]
        if source == destination or _is_whole(destination) or kind == "ldmatrix":
            return destination  # type: ignore[no-any-return]
        if _is_whole(source) or kind == "stmatrix":
            return source  # type: ignore[no-any-return]
        rule = "must have ValLayoutRef, as the atom's source and destination differ: C++ prints it"
        raise _CHECK.malformed("text", rule, f"{source} and {destination}")

    @property
    def tile(self) -> tuple[int, ...] | None:
        """Extents of the tile, of matrix instructions M, N and K; None for a copy atom alone."""
        if self.kind == "mma":
            return self.value.tile  # type: ignore[union-attr]
        tiler = dict(self.fields).get("Tiler_MN")
        return None if tiler is None else tuple([_extent(entry) for entry in tiler])

    @property
    def layouts(self) -> dict[str, CuteLayout]:
        """(thread, value) layouts to the flat coordinate of the tile: ``source`` and ``destination``, or A, B and C.

        Of a copy also ``tiled``, as printed. Where the order of an instruction is not known, only ``tiled``; of an atom
        alone, the elements of the instruction.
        """
        found = dict(self.fields)
        if self.kind == "mma":
            value = self.value
            return {name: value.operand(name) for name in "ABC"}  # type: ignore[union-attr]
        if "TiledLayout_TV" not in found:
            return {"source": found["ValLayoutSrc"], "destination": found["ValLayoutDst"]}
        answer = {"tiled": found["TiledLayout_TV"]}
        try:
            copy = self.value
        except LayoutError:
            return answer
        return answer | {"source": copy.source, "destination": copy.destination}  # type: ignore[union-attr]

    @property
    def dtype(self) -> str | None:
        """The element type as printed: ``16b`` in C++, ``f16`` in the DSL."""
        return dict(self.fields).get("ValueType")

    @property
    def atom(self) -> str:
        """The instruction in words."""
        found = dict(self.fields)
        if self.kind == "mma":
            m, n, k = found["Shape_MNK"]
            return f"matrix instruction m{m}n{n}k{k} of {_threads(found['LayoutC_TV'][0].size)}"
        source, destination = found["ValLayoutSrc"], found["ValLayoutDst"]
        if matrices := _matrices(found):
            return matrices
        if source == destination and source.size == source.cosize:
            return f"copy of {source[1].size} values by each of {_threads(source[0].size)}"
        return f"unknown copy of {_threads(destination[0].size)}: {source} to {destination}"


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count != 1)}"


def _matrices(found: Mapping[str, Any]) -> str:
    """The ``ldmatrix`` or ``stmatrix`` with these sides, or ""; elements without a type have 16 bits."""
    width = re.search(r"[0-9]+", found.get("ValueType", "16b"))
    bits = int(width[0]) if width else 16
    for store, memory, registers in ((False, "Src", "Dst"), (True, "Dst", "Src")):
        rows, held = found[f"ValLayout{memory}"], found[f"ValLayout{registers}"]
        if rows[0].size != LANES or rows[1].size * bits != ROW_BITS or held[0].size != LANES:
            continue
        if not np.array_equal(rows[1].table(), np.arange(rows[1].size)):
            continue
        starts, table = rows[0].table(), held.table().reshape((LANES, -1), order="F")
        for name, form in FORMS.items():
            if form.store == store and form.matrix_rows and not form.container_bits:
                (lane_bits, lane_rows), (slot_bits, slot_rows) = form.lanes(), form.slots(bits)
                there = starts[lane_rows[:, None] + slot_rows] + (lane_bits[:, None] + slot_bits) // bits
                if np.array_equal(table, there):
                    return name
    return ""


def _is_whole(side: CuteLayout) -> bool:
    """Whether every thread of a side has all of its elements, in order."""
    return not side[0].table().any() and np.array_equal(side[1].table(), np.arange(side[1].size))


def _extent(tiler: Tiler) -> int:
    """The elements of one dimension of a tile."""
    return tiler.size if isinstance(tiler, CuteLayout) else product(tiler) if tiler is not None else 1  # type: ignore[arg-type]


def _text(value: Any) -> str:
    if value is None:
        return "_"
    return f"({','.join(map(_text, value))})" if isinstance(value, tuple) else str(value)


def read_tiled(text: str) -> PrintedTiling:
    """Return what a printed tiled copy or matrix instruction says.

    Args:
        text: What ``print`` of CuTe C++ or of the CuTe DSL shows; at most 100,000 characters.

    Raises: MalformedError: LA190, with the line.

    Example:
        >>> found = read_tiled('''TiledMMA
        ...   ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_0)
        ...   PermutationMNK: (_32,_32,_16)
        ... MMA_Atom
        ...   ThrID:      _32:_1
        ...   Shape_MNK:  (_16,_8,_16)
        ...   LayoutA_TV: ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))
        ...   LayoutB_TV: ((_4,_8),(_2,_2)):((_16,_1),(_8,_64))
        ...   LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))''')
        >>> found.tile, found.atom
        ((32, 32, 16), 'matrix instruction m16n8k16 of 32 threads')
        >>> print(found.layouts["B"])
        ((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,0)))
    """
    if len(text) > NOTATION_CHARACTERS:
        raise _CHECK.malformed("text", f"must have at most {NOTATION_CHARACTERS} characters", f"{len(text)} characters")
    values: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = _COMMENTS.sub("", line).strip()
        if not bare or TILED_AHEAD.fullmatch(bare):
            continue
        name, colon, value = bare.partition(":")
        key = re.sub(r"[\s_]", "", name).lower()
        if key in _SKIPPED:
            continue
        if not colon or key not in _FIELDS:
            _fail(line, number, f"{name.strip()[:40]!r} is no field of a tiled copy or matrix instruction")
        kind, field = _FIELDS[key]
        if field in values:
            _fail(line, number, f"{field} was given before: name one tiling")
        values[field] = _value(field, value.strip(), line, number)
        kinds[kind or "thrid"] = field
    kinds.pop("thrid", None)
    if len(kinds) != 1:
        raise _CHECK.malformed("text", "must have the fields of either a copy or a matrix instruction", sorted(kinds))
    kind = next(iter(kinds))
    for field in _NEEDED[kind]:
        if field not in values:
            raise _CHECK.malformed("text", f"must have the field {field}", f"the fields {', '.join(values)}")
    order = dict.fromkeys(name for _, name in _FIELDS.values())
    found = PrintedTiling(kind, tuple((name, values[name]) for name in order if name in values))
    if kind == "mma":
        _ = found.value  # its layouts fit each other, or this raises
    return found


def _fail(line: str, number: int, because: str, at: int | None = None) -> NoReturn:
    place = len(line) - len(line.lstrip()) if at is None else at
    shown = (f"line {number}", caret(line, place))
    raise MalformedError(Diagnostic(_CHECK.code, _CHECK.what, shown, because))


def _value(field: str, text: str, line: str, number: int) -> Any:
    """Return the value of a field."""
    if field == "ValueType":
        if not re.fullmatch(r"[A-Za-z0-9_:<>]{1,80}", text):
            _fail(line, number, f"{text[:40]!r} is no element type", line.find(":"))
        return text
    if field in _TILERS:
        tiler = _tiler(text, line, number, 0)
        if not isinstance(tiler, tuple) or (field == "Shape_MNK" and not all(type(entry) is int for entry in tiler)):
            _fail(line, number, f"{field} must be {'extents' if field == 'Shape_MNK' else 'tilers'} in parentheses")
        return tiler
    layout = _layout(text, line, number)
    if field != "ThrID" and layout.rank != (4 if field == "ThrLayoutVMNK" else 2):
        _fail(line, number, f"{field} must have {4 if field == 'ThrLayoutVMNK' else 2} modes", line.find(":"))
    return layout


def _layout(text: str, line: str, number: int) -> CuteLayout:
    try:
        found = parse_cute(text)
    except LayoutError as error:
        at = line.find(text)
        _fail(line, number, error.diagnostic.because or error.diagnostic.what, at if at >= 0 else None)
    if not isinstance(found, CuteLayout):
        _fail(line, number, f"must be a layout of numbers, not {str(found)[:80]}", line.find(":"))
    return found


def _tiler(text: str, line: str, number: int, level: int) -> Tiler:
    """Return ``_``, an extent, a layout, or a tuple of these."""
    if text == "_":
        return None
    parts = _parts(text)
    if level > 8 or parts is None:
        _fail(line, number, "the parentheses do not match, or nest too deep", line.find(":"))
    if ":" in parts[1]:
        return _layout(text, line, number)
    if text.startswith("("):
        return tuple([_tiler(part, line, number, level + 1) for part in parts[0]])
    if not re.fullmatch(r"_?[0-9]{1,18}", text):
        _fail(line, number, f"{text[:40]!r} is no tiler", line.find(":"))
    return int(text.lstrip("_"))


def _parts(text: str) -> tuple[list[str], str] | None:
    """Return the entries of a tuple and what is outside of all parentheses; None if these do not match."""
    depth, outside, entries = 0, "", [""]
    for char in text:
        depth -= char == ")"
        if depth < 0:
            return None
        if depth == 0 and char not in "()":
            outside += char
        if depth == 1 and char == ",":
            entries.append("")
        elif depth > 0:
            entries[-1] += char
        depth += char == "("
    return None if depth else ([entry.strip() for entry in entries if entry.strip()], outside)
