"""Whether what a certificate states is so: by enumeration, point by point, with no code of the checker.

Implementation notes: a statement is read here a second time, from the list of stages in docs/certificates.md. Domains
beyond ``ENUMERATED`` points are judged at points of few nonzero bits and at random ones, and the answer says so.
Hardware kinds are judged by ``layoutalg.targets``: the measured reading of ``wgmma``, the counted turns of banks.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from admission_judges import can_read

from layoutalg.ground.errors import LayoutError
from layoutalg.targets import banks
from layoutalg.targets.banks import bank_model
from layoutalg.targets.nvidia import wgmma

ENUMERATED = 2**13
SAMPLED = 2000
Values = list[int] | None
Function = Callable[..., Values]


class NoClaimError(Exception):
    """A statement that says nothing."""


class FarError(Exception):
    """Addresses that no descriptor reaches."""


# --------------------------------------------------------------------------------------------------------- functions


def function(value: Any) -> tuple[int | None, int, Function]:
    """The size (None for all points of Z^n), the number of inputs, and the function itself."""
    if not isinstance(value, dict) or set(value) not in ({"size", "stages"}, {"inputs", "stages"}):
        raise NoClaimError(str(value)[:80])
    stages, size, inputs = value["stages"], value.get("size"), value.get("inputs", 1)
    if size != 0:
        run(stages, [0] * inputs)  # or it is no function
    return size, inputs, lambda *point: run(stages, list(point))


def run(stages: list[Any], values: Values) -> Values:
    """Take values through stages; None where there is no value."""
    for name, *given in stages:
        if values is None:
            return None
        values = STAGES[name](values, *given)
    return values


def _split(values: list[int], extents: list[int]) -> Values:
    (number,) = values
    digits = []
    for extent in extents[:-1]:
        number, digit = divmod(number, extent)
        digits.append(digit)
    return [*digits, number]


def _affine(values: list[int], rows: list[list[int]], offsets: list[int]) -> Values:
    return [_dot(row, values) + offset for row, offset in zip(rows, offsets, strict=True)]


def _dot(row: list[int], values: list[int]) -> int:
    return sum(factor * value for factor, value in zip(row, values, strict=True))


def _mod(values: list[int], moduli: list[int]) -> Values:
    return [value % modulus if modulus else value for value, modulus in zip(values, moduli, strict=True)]


def _xor(values: list[int], columns: list[int], constant: int) -> Values:
    (number,) = values
    low = number % 2 ** len(columns)
    answer = constant
    for place, column in enumerate(columns):
        if low >> place & 1:
            answer ^= column
    return [answer + number - low]


def _table(values: list[int], table: list[int]) -> Values:
    (number,) = values
    if not 0 <= number < len(table):
        raise NoClaimError("outside of a table")
    return [table[number]]


def _pieces(values: list[int], pieces: list[Any]) -> Values:
    for floors, constraints, forms in pieces:
        known = list(values)
        for row, constant, divisor in floors:
            known.append((_dot(row, known) + constant) // divisor)
        sides = [(_dot(row, known) + constant, relation) for row, constant, relation in constraints]
        if all(side == 0 if relation == "=" else side >= 0 for side, relation in sides):
            return [_dot(row, known) + constant for row, constant in forms]
    return None


def _fork(values: list[int], *parts: list[Any]) -> Values:
    found = [run(part, list(values)) for part in parts]
    return None if None in found else list(itertools.chain.from_iterable(found))  # type: ignore[arg-type]


STAGES: dict[str, Callable[..., Values]] = {
    "split": _split,
    "affine": _affine,
    "mod": _mod,
    "xor": _xor,
    "table": _table,
    "pieces": _pieces,
    "fork": _fork,
}


def points(size: int | None, inputs: int) -> tuple[Iterable[tuple[int, ...]], bool]:
    """The points to look at, and whether they are all."""
    rng = random.Random(0)
    if size is None:
        near = itertools.product(range(-3, 9), repeat=inputs) if inputs <= 3 else ()
        return [*near, *(tuple(rng.randrange(-40, 80) for _ in range(inputs)) for _ in range(SAMPLED))], False
    if size <= ENUMERATED:
        return ((index,) for index in range(size)), True
    bits = size.bit_length()
    few = set(range(ENUMERATED)) | {
        sum(1 << bit for bit in chosen) for count in (0, 1, 2) for chosen in itertools.combinations(range(bits), count)
    }
    some = {index for index in few if index < size} | {size - 1} | {rng.randrange(size) for _ in range(SAMPLED)}
    return [(index,) for index in some], False


# ---------------------------------------------------------------------------------------------------- algebraic kinds


def equality(statement: dict[str, Any]) -> tuple[bool, bool]:
    (size, inputs, f), (other, others, g) = function(statement["f"]), function(statement["g"])
    if (size, inputs) != (other, others):
        return False, True
    looked, whole = points(size, inputs)
    return all(f(*point) == g(*point) for point in looked), whole


def inequality(statement: dict[str, Any]) -> tuple[bool, bool]:
    (size, inputs, _), (other, others, _) = function(statement["f"]), function(statement["g"])
    same, whole = equality(statement)
    return (size, inputs) != (other, others) or not same, whole or not same


def composition(statement: dict[str, Any]) -> tuple[bool, bool]:
    (outer, _, f), (size, _, g), (result, _, h) = (function(statement[name]) for name in "fgh")
    looked, whole = points(size, 1)
    return size == result and all(_through(f, outer, g(*point)) == h(*point) for point in looked), whole


def _through(f: Function, size: int | None, values: Values) -> Values | str:
    """f of what another function gave; a text where that is not in the domain."""
    if values is None:
        return None
    if len(values) != 1 or size is None or not 0 <= values[0] < size:
        return "outside"
    return f(values[0])


def no_composition(statement: dict[str, Any]) -> tuple[bool, bool]:
    (outer, _, f), (size, _, g) = function(statement["f"]), function(statement["g"])
    looked, whole = points(size, 1)
    found = any(_through(f, outer, g(*point)) == "outside" for point in looked)
    return found, whole or found


def inverse(statement: dict[str, Any]) -> tuple[bool, bool]:
    (size, _, f), (other, _, g), side = function(statement["f"]), function(statement["inverse"]), statement["side"]
    if side == "both" and size != other:
        return False, True
    if side == "right":
        f, g, size, other = g, f, other, size
    looked, whole = points(size, 1)
    for point in looked:
        back = _through(g, other, f(*point))
        if back != list(point):
            return False, whole
    return True, whole


def no_inverse(statement: dict[str, Any]) -> tuple[bool, bool]:
    (size, _, f), codomain, side = function(statement["f"]), statement["codomain"], statement["side"]
    looked, whole = points(size, 1)
    found = [tuple(value) for point in looked if (value := f(*point)) is not None]
    twice = len(set(found)) < len(found)
    missed = codomain > len(set(found)) or any((value,) not in set(found) for value in range(codomain))
    if not whole:
        missed = missed and codomain <= ENUMERATED
    return {"left": twice, "right": missed, "both": twice or missed}[side], whole or twice


def none_of(statement: dict[str, Any]) -> tuple[bool, bool]:
    """No candidate's equations have an integer solution: they are solved one after the other, wherever they stand."""
    size, _, f = function(statement["f"])
    sure = True
    for candidate in statement["candidates"]:
        looked, whole = points(candidate["size"], 1)
        places = itertools.chain(range(min(candidate["size"], ENUMERATED)), () if whole else (i for (i,) in looked))
        unknowns = candidate["unknowns"]
        pitches: Solutions | None = ([0] * unknowns, [[int(i == j) for i in range(unknowns)] for j in range(unknowns)])
        for i in places:
            for *row, value in _equations(candidate, f, size, i):
                pitches = None if pitches is None else _meeting(*pitches, row, value)
            if pitches is None:
                break
        if pitches is not None and whole:
            return False, True
        sure = sure and (whole or pitches is None)
    return bool(statement["candidates"]), sure


Solutions = tuple[list[int], list[list[int]]]


def _equations(candidate: dict[str, Any], f: Function, size: int | None, i: int) -> list[list[int]]:
    """The equations of one place; none where they have no values."""
    try:
        at = run(candidate["at"], [i])
        if not at or size is None or any(not 0 <= point < size for point in at):
            return []
        values = [f(point) for point in at]
        if None in values:
            return []
        rows = run(candidate["rows"], [i, *(value for each in values if each is not None for value in each)])
    except (NoClaimError, ValueError, TypeError):
        return []
    width = candidate["unknowns"] + 1
    if rows is None or len(rows) % width:
        return []
    return [rows[start : start + width] for start in range(0, len(rows), width)]


def _meeting(point: list[int], basis: list[list[int]], row: list[int], value: int) -> Solutions | None:
    """The integer points ``point + span of basis`` on which the row has a value; None where there are none."""
    basis = [list(direction) for direction in basis]
    while len(moving := [direction for direction in basis if _dot(row, direction)]) > 1:
        least = min(moving, key=lambda direction: abs(_dot(row, direction)))
        for direction in moving:
            if direction is not least:
                times = _dot(row, direction) // _dot(row, least)
                direction[:] = [a - times * b for a, b in zip(direction, least, strict=True)]
    left = value - _dot(row, point)
    if not moving:
        return None if left else (point, basis)
    step = _dot(row, moving[0])
    if left % step:
        return None
    moved = [a + left // step * b for a, b in zip(point, moving[0], strict=True)]
    return moved, [direction for direction in basis if direction is not moving[0]]


# ------------------------------------------------------------------------------------------------------ hardware kinds


def _requested(statement: dict[str, Any], base: int) -> np.ndarray[Any, Any]:
    """The byte of each element (m, k) of an operand, from a base on."""
    rows, columns = statement["shape"]
    size, _, layout = function(statement["layout"])
    if size != rows * columns:
        raise NoClaimError("the layout has another size")
    starts = [value[0] for index in range(size) if (value := layout(index)) is not None and len(value) == 1]
    if max(map(abs, starts)) >= 2**40:
        raise FarError
    bytes_ = np.array(starts, dtype=np.int64) + base
    return _xored(bytes_.reshape(columns, rows).T, statement["swizzle"])


def _xored(address: Any, mode: int, offset: int = 0) -> Any:
    return address ^ (((address // 128) - offset) % 2**mode * 16)


def _bases(statement: dict[str, Any]) -> Iterable[int]:
    return range(0, 2048, statement["align"]) if statement["align"] < 2048 else (0,)


def wgmma_operand(statement: dict[str, Any]) -> tuple[bool, bool]:
    """By the measured reading of the library's targets, for every base below 2048 bytes."""
    rows, columns = statement["shape"]
    count, words = statement["rows"], statement["words"]
    if rows % count or columns % 16 or len(words) != rows // count * (columns // 16) or not words:
        return False, True
    if statement["operand"] == "A" and count != 64:
        return False, True
    for base in _bases(statement):
        wanted = _requested(statement, base)
        for place, word in enumerate(words):
            row, column = place // (columns // 16) * count, place % (columns // 16) * 16
            try:
                descriptor = wgmma.decode(word + base // 16)
                got = wgmma.operand_offsets(descriptor, rows=count, major=statement["major"])
            except LayoutError:
                return False, True
            if (got != wanted[row : row + count, column : column + 16]).any():
                return False, True
    return True, True


def no_operand(statement: dict[str, Any]) -> tuple[bool, bool]:
    """Under no major and swizzle does every part have a descriptor: all fields are tried."""
    rows, columns = statement["shape"]
    if rows % (64 if statement["operand"] == "A" else 8) or columns % 16:
        return True, True
    try:
        wanted = _requested(statement, 0)
    except FarError:
        return True, True
    return bool((wanted % 2).any()) or not can_read(wanted // 2, f"wgmma.{statement['operand']}", "bf16"), True


def bank_turns(statement: dict[str, Any]) -> tuple[bool, bool]:
    """By the library's count for one access after the other."""
    target, _, operation = statement["access"].partition(" ")
    size, _, address = function(statement["address"])
    lanes = 64 if target.startswith("gfx9") else 32
    if not size or size % lanes:
        return False, True
    starts = [value[0] for index in range(size) if (value := address(index)) is not None and len(value) == 1]
    operation = {"ld.shared.b128": "ld.shared.v4.b32", "st.shared.b128": "st.shared.v4.b32"}.get(operation, operation)
    try:
        taken = [banks.turns(target, operation, starts[at : at + lanes]) for at in range(0, size, lanes)]
    except LayoutError:
        return False, True
    return (sum(taken), max(taken)) == (statement["turns"], statement["most"]), True


def least_turns(statement: dict[str, Any]) -> tuple[bool, bool]:
    """By the library's count behind one layout after the other; without layouts, by counting different cells."""
    moved, layouts = statement["moved"], statement.get("layouts")
    if (layouts is None) != ("first" not in statement) or layouts == [] or not moved:
        return False, True
    held = []
    for access, given in moved:
        size, _, cell = function(given)
        cells = [value[0] for index in range(size or 0) if (value := cell(index)) is not None and len(value) == 1]
        target, _, operation = access.partition(" ")
        lanes = 8 * int(operation[-1]) if "matrix" in operation else 64 if target.startswith("gfx9") else 32
        if not cells or len(cells) != size or len(cells) % lanes or min(cells) < -1:
            return False, True
        name = {"ld.shared.b128": "ld.shared.v4.b32", "st.shared.b128": "st.shared.v4.b32"}.get(operation, operation)
        held.append((target, name, [cells[at : at + lanes] for at in range(0, size, lanes)]))
    found = []
    for stages in [None] if layouts is None else layouts:
        try:
            found.append(sum(_behind(target, name, each, stages) for target, name, rows in held for each in rows))
        except LayoutError:
            found.append(HUGE_TURNS)
    best = min(found)
    return best < HUGE_TURNS and (best, found.index(best)) == (statement["turns"], statement.get("first", 0)), True


HUGE_TURNS = 10**9


def _behind(target: str, name: str, cells: list[int], stages: list[Any] | None) -> int:
    """The turns of one access behind a layout; without one, those of the different cells of each group."""
    if stages is None:
        model = bank_model(target, name)
        spread = [None if cell < 0 else 64 * cell for cell in cells]
        words = max(1, model.access_bytes // 4)
        groups = [{cells[lane] for lane in phase.lanes} for phase in model.phases(spread)]
        return sum(-(-words * len(group) // model.banks) for group in groups)
    places = [None if cell < 0 else run(stages, [cell]) for cell in cells]
    if any(place is not None and (len(place) != 1 or place[0] < 0) for place in places):
        raise NoClaimError("a cell below 0")
    return banks.turns(target, name, [None if place is None else place[0] for place in places])


# ------------------------------------------------------------------------------------------------------ runtime indices


def routing(claim: dict[str, Any]) -> tuple[bool, bool]:
    ids, experts, block = claim["ids"], claim["experts"], claim["block"]
    if not (
        experts and block and 0 <= claim["first"] <= claim["last"] < experts and all(0 <= e < experts for e in ids)
    ):
        raise NoClaimError("ids")
    order: list[int] = []
    padded: list[int] = []
    owners: list[int] = []
    starts, padded_starts = [0], [0]
    for expert in range(experts):
        own = claim["first"] <= expert <= claim["last"]
        rows = [place for place, each in enumerate(ids) if own and each == expert]
        order += rows
        padded += rows + [len(ids)] * (-len(rows) % block)
        owners += [expert] * -(-len(rows) // block)
        starts.append(len(order))
        padded_starts.append(len(padded))
    lists = {"order": order, "offsets": starts, "padded_offsets": padded_starts, "padded_order": padded,
             "block_experts": owners}  # fmt: skip
    return all(claim[name] == value for name, value in lists.items()), True


def paging(claim: dict[str, Any]) -> tuple[bool, bool]:
    size, heads, dim, element = (claim[name] for name in ("page_size", "heads", "head_dim", "element"))
    if min(size, heads, dim) < 1 or not 1 <= element <= 8 or claim["layout"] not in ("NHD", "HND"):
        raise NoClaimError("page")
    table, tokens, stride, limit = claim["table"], claim["tokens"], claim["stride"], claim["pages"] * claim["stride"]
    if len(table) != -(-tokens // size) or stride < size * heads * dim * element or stride % element:
        return False, True
    if any(page < 0 or page >= claim["pages"] for page in table):
        return False, True
    uses: dict[int, set[int]] = {}
    whole = len(table) * size * heads * dim <= ENUMERATED
    for token, head, d in itertools.product(range(len(table) * size if whole else 0), range(heads), range(dim)):
        row = token % size
        place = (row * heads + head) * dim + d if claim["layout"] == "NHD" else (head * size + row) * dim + d
        for byte in range(element):
            at = table[token // size] * stride + place * element + byte
            if not 0 <= at < limit:
                return False, True
            uses.setdefault(at, set()).add(token)
    most = max(map(len, uses.values()), default=0) if whole else max(map(table.count, table), default=0)
    return most == claim["sharing"], whole


JUDGES: dict[str, Callable[[dict[str, Any]], tuple[bool, bool]]] = {
    # whether a statement is so, and whether that is by full enumeration
    "equality": equality,
    "inequality": inequality,
    "composition": composition,
    "no-composition": no_composition,
    "inverse": inverse,
    "no-inverse": no_inverse,
    "none-of": none_of,
    "wgmma-operand": wgmma_operand,
    "no-operand": no_operand,
    "bank-turns": bank_turns,
    "least-turns": least_turns,
    "routing": routing,
    "paging": paging,
}
