"""Factor a layout into a descriptor's map and a permutation inside warps, done by shuffles.

Mathematically: X is the set of places (register, lane, warp), G_r the bijections of X that keep the warp, and 𝒟 the
functions that the consumer's descriptors denote on a tile with the elements of X. A layout L factors if L = D R with D
in 𝒟 and R in G_r, that is, if D and L map every warp's places to the same set of offsets. If one D does, the others
that do are D G, G in G_r: they differ by moves inside warps.

Over F2 the answer is exact in both directions (see ``bits``). Other extents are factored over the orders of their
digits (see ``orders``). Every factorisation is admitted and certified before it is returned.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutalg.bridges.composition import compose
from layoutalg.bridges.cute import recognize
from layoutalg.bridges.inverse import left_inverse
from layoutalg.bridges.piecewise import to_piecewise
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import matrix
from layoutalg.f2.layout import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.piecewise.runs import runs_text
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.proofs.certify.algebra import composition
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.synth.admission import admissible
from layoutalg.synth.exchange import exchanges
from layoutalg.synth.factor.bits import Bits, Carrier, bits_of, carriers, run_bits
from layoutalg.synth.factor.instructions import carrier_of, template_of
from layoutalg.synth.factor.orders import Order, first_mixed, tried
from layoutalg.synth.factor.question import CHECK, ROLES, IntArray, Question, read
from layoutalg.synth.factor.refusals import certified
from layoutalg.synth.factor.shuffles import shuffles
from layoutalg.targets.consumers import Absent
from layoutalg.targets.consumers import consumer as consumer_of
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.facts import swizzle_supported
from layoutalg.targets.registry import lookup

__all__ = ["factorise"]

CONSUMERS = ("tma", "tma.store")
"""Consumers whose descriptor maps are all known."""
LISTED = 512
"""Maximum size of a residual that is listed run by run."""
TRIALS = 64
"""Limit on digit orders tried with the consumer."""


def factorise(
    layout: object,
    consumer: str = "tma",
    target: str = "sm_90a",
    dtype: object = None,
    *,
    warps: int = 1,
    roles: Sequence[str] | None = None,
    seconds: float = PLAN_SECONDS,
) -> Factorisation | Refused | Unknown:
    """Factor a layout into a descriptor's map after a permutation of registers and lanes with the fewest shuffles.

    Mathematically: ``layout = carried o residual`` on flat coordinates; ``carried`` is admitted by the consumer,
    ``residual`` keeps the warp of every place, and ``rounds`` is the least number of 32-bit shuffles of a thread over
    all such pairs (one element a word).

    Args:
        layout: Register, lane and warp to element offset (axes named ``register``, ``lane``, ``warp``); or tile
            coordinates to element offset, in which case elements are dealt to threads in row-major order. A layout of
            any family, its text, or an array of element offsets.
        consumer: ``"tma"``, ``"tma.store"``; ``"ldmatrix..."``, ``"stmatrix..."``, ``"ld.shared..."``,
            ``"st.shared..."``, ``"ds_read..."``, ``"ds_write..."`` for a layout of threads. Other consumers only factor
            layouts that they carry unchanged.
        target: Architecture.
        dtype: Element type. None: the type stated by the text, otherwise bf16.
        warps: Number of warps that share a tile.
        roles: Role of each axis, fastest first, if the names do not say it: ``"register"``, ``"lane"``, ``"warp"`` or
            ``"thread"`` (lanes, then warps).
        seconds: Wall-time budget.

    Returns:
        The factors; ``Refused``, whose witness has ``output_bit``; or ``Unknown`` with what is missing.

    Raises: MalformedError: invalid arguments.

    Example:
        >>> import layoutalg as la
        >>> wanted = la.LinearLayout.from_bases(
        ...     {"register": [(1,), (2,), (8,)], "lane": [(4,), (16,), (32,), (64,), (128,)]}, {"offset": 256}
        ... )
        >>> found = factorise(wanted)
        >>> found.rounds, bool(la.equivalent(found.carried @ found.residual, wanted))
        (4, True)
    """
    CHECK.kind(consumer, str, "consumer")
    question = read(layout, dtype, warps, roles, lookup(target).lanes)
    try:
        with clock.within(clock.checked_seconds(seconds, "seconds")):
            missing = consumer_of(consumer, lookup(target))
            if isinstance(missing, Absent):
                return Refused.by((Broken(missing.rule, missing.reason),), consumer, target, question.dtype.name)
            return _found(question, consumer, target)
    except BudgetError as spent:
        return Unknown(spent.diagnostic.because or spent.diagnostic.what, ("factorise",))


def _found(question: Question, consumer: str, target: str) -> Factorisation | Refused | Unknown:
    """Try the whole layout of a tile first, then factors."""
    tabled = isinstance(question.layout, ListedLayout)
    if not question.threaded and not tabled:
        whole = admissible(question.layout, consumer, target, question.dtype.name)
        if isinstance(whole, Admitted):
            return _whole(question, whole)
    if consumer not in CONSUMERS:
        return _instructed(question, consumer, target)
    swizzles = tuple(name for name in SWIZZLE_TABLE if swizzle_supported(name, target))
    bits = bits_of(question)
    if bits is not None:
        return _linear(question, bits, consumer, target, swizzles)
    if tabled:
        return Unknown("the table matches no layout family", ("factorise",))
    return _digital(question, consumer, target, swizzles)


def _whole(question: Question, whole: Admitted) -> Factorisation | Unknown:
    """The trivial factors of a layout that the consumer carries unchanged: itself after the identity."""
    identity = np.arange(question.size, dtype=np.int64)
    unique = "the consumer carries the layout unchanged; no shuffles"
    layout, flat = question.layout, CuteLayout(tuple(extent for _, extent in question.axes))
    registers, lanes, warps = question.counts
    if registers * lanes * warps != question.size:
        return Unknown("lanes have different numbers of registers", ("factorise",))
    with contextlib.suppress(LayoutError):
        if isinstance(layout, LinearLayout):
            return _made(question, layout, LinearLayout.identity(layout.in_dims), identity, whole, unique, least=True)
        if isinstance(layout, CuteLayout | ComposedLayout):
            return _made(question, layout, flat, identity, whole, unique, least=True)
        carried, residual = to_piecewise(layout), to_piecewise(flat)
        return _made(question, carried, residual, identity, whole, unique, least=True)
    return Unknown("the layout matches no layout family", ("factorise",))


def _linear(
    question: Question, bits: Bits, consumer: str, target: str, swizzles: tuple[str, ...]
) -> Factorisation | Refused | Unknown:
    found = list(carriers(bits, swizzles))
    obstacles = tuple(each for each in found if isinstance(each, Broken))
    dense = max(question.offsets) < question.size
    for carrier in sorted((each for each in found if isinstance(each, Carrier)), key=lambda each: each.rounds):
        carried = _bit_map(question.tile, carrier.columns(bits.low))
        admitted = admissible(carried, consumer, target, question.dtype.name)
        if isinstance(admitted, Admitted):
            source = np.argsort(carried.table())[np.searchsorted(np.sort(carried.table()), question.offsets)]
            residual = _map(question.axes, question.tile, source)
            words = question.counts[0]
            colours = _colours(bits, source, carrier.rounds < words)
            least = dense or not carrier.rounds
            return _made(question, carried, residual, source, admitted, _unique(bits, carrier), least, colours)
        if dense:
            return Unknown(f"a map that {consumer} should carry was not admitted: {admitted}", ("factorise",))
    if not dense and not any(each.rule == "FACTOR_INJECTIVE" for each in obstacles):
        return Unknown(f"the offsets must be 0 to {question.size - 1}: {obstacles[0].reason}", ("factorise",))
    evidence = certified(question, bits, swizzles)
    return Refused.by(obstacles, consumer, target, question.dtype.name, certificate=evidence)


def _instructed(question: Question, consumer: str, target: str) -> Factorisation | Refused | Unknown:
    """Factor for an instruction that moves registers."""
    template = template_of(consumer, question.dtype.bits)
    if isinstance(template, Unknown):
        return template
    if not question.threaded:
        return Unknown("input axes must be register, lane, warp", ("factorise",))
    bits = bits_of(question)
    if bits is None:
        return Unknown(
            "the layout is not linear over F2, or its registers or lanes are no power of two", ("factorise",)
        )
    found = carrier_of(bits, template)
    name = question.dtype.name
    if isinstance(found, Broken):
        return Refused.by((found,), consumer, target, name)
    columns, constant, least = found
    width = max(*columns, constant, 1).bit_length()
    carried = LinearLayout(_axes(question.tile), (("offset", width),), columns, constant)
    held = LinearLayout.from_bases(
        {role: [(1 << place,) for place in bits.of_role(number)] for number, role in enumerate(ROLES)},
        {"tile": question.size},
    )
    admitted = admissible(carried, consumer, target, name, registers=held)
    if isinstance(admitted, Refused):
        return Unknown(f"a map that {consumer} should carry was not admitted: {admitted}", ("factorise",))
    if isinstance(admitted, Unknown):
        return admitted
    back = {offset: place for place, offset in enumerate(carried.table().tolist())}
    source = np.array([back[offset] for offset in question.offsets.tolist()], dtype=np.int64)
    residual = _map(question.axes, question.tile, source)
    unique = f"only the bits inside a row of {1 << template.row} elements; every row has its own address"
    made = _made(question, carried, residual, source, admitted, unique, least=True)
    return made if made.rounds == least else replace(made, least=False)


def _digital(
    question: Question, consumer: str, target: str, swizzles: tuple[str, ...]
) -> Factorisation | Refused | Unknown:
    """Factor over the orders of the digits of a tile of any extents."""
    name, size = question.dtype.name, question.size
    registers, lanes, warps = question.counts
    if len(np.unique(question.offsets)) < size:
        return _twice(question, consumer, target)
    if registers * lanes * warps != size:
        return Unknown("lanes have different numbers of registers", ("factorise",))
    if int(question.offsets.max()) >= size:
        return Unknown(f"the offsets must be 0 to {size - 1}", ("factorise",))
    found, whole = tried(question, swizzles)
    for order in found[:TRIALS]:
        carried = _digit_map(order, question.dtype.bits // 8)
        if not isinstance(admissible(carried, consumer, target, name), Admitted):
            continue
        source = np.argsort(carried.table())[question.offsets]
        for outer, inner in _formulas(question, carried, source):
            admitted = admissible(outer, consumer, target, name)
            if isinstance(admitted, Admitted):
                count = sum(other.swizzle == order.swizzle for other in found)
                unique = f"{count} digit orders keep the warps under swizzle {order.swizzle}, one residual each"
                return _made(question, outer, inner, source, admitted, unique, whole or not order.rounds)
        return Unknown("the residual matches no layout family", ("factorise",))
    if found or not whole:
        return Unknown("not every digit order was decided", ("factorise",))
    weight = first_mixed(question)
    because = f"no digit order gives every warp its offsets: the digit of weight {weight} mixes warps"
    return Refused(consumer, target, name, ("FACTOR_WARP",), (because,), {"output_digit": weight})


def _twice(question: Question, consumer: str, target: str) -> Refused:
    """Refuse a layout that is not injective."""
    order = np.argsort(question.offsets, kind="stable")
    same = int(np.flatnonzero(np.diff(question.offsets[order]) == 0)[0])
    first, second, offset = int(order[same]), int(order[same + 1]), int(question.offsets[order[same]])
    missing = int(np.setdiff1d(np.arange(question.size), question.offsets)[0])
    because = f"places {first} and {second} share offset {offset}: the layout is not injective"
    witness = {"output_digit": missing, "offset": offset}
    evidence = certified(question, None, ())
    return Refused(consumer, target, question.dtype.name, ("FACTOR_INJECTIVE",), (because,), witness, (), evidence)


def _digit_map(order: Order, element_bytes: int) -> CuteLayout | ComposedLayout:
    """The map of an order of digits."""
    shape = tuple(tuple(extent for extent, _ in digits) for digits in order.digits)
    stride = tuple(tuple(step for _, step in digits) for digits in order.digits)
    layout = CuteLayout(shape, stride)
    flips = SWIZZLE_TABLE[order.swizzle].xor
    if not flips:
        return layout
    target, source = flips[0]
    shift = element_bytes.bit_length() - 1
    return ComposedLayout(Swizzle(len(flips), target - shift, source - target), 0, layout)


def _formulas(question: Question, carried: Any, source: IntArray) -> Iterator[tuple[Any, Any]]:
    """Yield the carried map and the residual in families whose values compose."""
    residual: Any = None
    with contextlib.suppress(LayoutError):
        residual = recognize(source)
        if np.array_equal((carried @ residual).table(), question.offsets):
            yield carried, residual
    with contextlib.suppress(LayoutError):
        if residual is None:
            residual = compose(left_inverse(carried, widen=True), question.layout, widen=True)
        yield to_piecewise(carried), to_piecewise(residual)
    if len(source) <= LISTED:
        text = runs_text({(place,): (int(value),) for place, value in enumerate(source)}, ("place",))
        yield to_piecewise(carried), PiecewiseLayout.parse(text)


def _made(
    question: Question, carried: Any, residual: Any, source: IntArray, plan: Admitted, unique: str, least: bool,
    colours: IntArray | None = None,
) -> Factorisation:  # fmt: skip
    """Assemble the answer with its shuffles and certificate."""
    registers, lanes, warps = question.counts
    register, lane, warp = question.owner
    place = (warp * lanes + lane) * registers + register
    shape = (warps, lanes, registers)
    at = np.argsort(place)
    travel = None if colours is None else colours[at].reshape(shape)
    steps = shuffles(place[source][at].reshape(shape), travel)
    wanted = question.layout
    if isinstance(wanted, ListedLayout):
        wanted = _map(question.axes, (("offset", 1 << int(question.offsets.max()).bit_length()),), question.offsets)
    certificate = composition(_flat(carried), _flat(residual), _flat(wanted))
    places = tuple(at.tolist())
    exchange = exchanges(place[source][at].reshape(shape), question.dtype.bits)
    return Factorisation(question.layout, carried, residual, plan, places, steps, least, unique, certificate, exchange)


def _flat(layout: Any) -> Any:
    """Flatten the outputs of a linear layout into one; return other layouts unchanged."""
    if not isinstance(layout, LinearLayout) or len(layout.out_axes) == 1:
        return layout
    return LinearLayout(layout.in_axes, (("flat", layout.out_bits),), layout.columns, layout.constant)


def _axes(dims: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple((name, extent.bit_length() - 1) for name, extent in dims)


def _bit_map(tile: tuple[tuple[str, int], ...], columns: tuple[int, ...]) -> LinearLayout:
    """The map of tile bits to offsets."""
    width = max(columns, default=0).bit_length()
    return LinearLayout(_axes(tile), (("offset", width),), columns)


def _map(axes: tuple[tuple[str, int], ...], tile: tuple[tuple[str, int], ...], source: IntArray) -> LinearLayout:
    """The linear map of places to tile coordinates."""
    first = int(source[0])
    columns = tuple(int(source[1 << bit]) ^ first for bit in range(len(source).bit_length() - 1))
    return LinearLayout(_axes(axes), _axes(tile), columns, first)


def _colours(bits: Bits, source: IntArray, stays: bool) -> IntArray:
    """Return a class per place, such that each class is one word sent and received per lane.

    Mathematically: the classes of a subspace H of the register and lane bits, of the dimension of the lane bits, such
    that H and its image under the residual meet the register bits in 0 only. If every lane keeps words, H is within the
    differences of the kept words, so that these fill whole classes.
    """
    inside = [bit for bit, role in enumerate(bits.roles) if role < 2]
    registers = [1 << bit for bit in bits.of_role(0)]
    lane_mask = sum(1 << bit for bit in bits.of_role(1))
    columns = [int(source[1 << bit]) ^ int(source[0]) for bit in inside]

    def back(sets: Sequence[int]) -> list[int]:
        return [sum(1 << bit for at, bit in enumerate(inside) if chosen >> at & 1) for chosen in sets]

    if stays:
        kept = back(
            matrix.kernel([(column ^ 1 << bit) & lane_mask for bit, column in zip(inside, columns, strict=True)])
        )
        basis = list(matrix.intersection(kept, registers))
        chosen = list(matrix.extension(basis, kept))
    else:
        sources = back(matrix.kernel([column & lane_mask for column in columns]))
        size = len(bits.roles)
        outside = [1 << bit for bit in range(size) if bits.roles[bit] == 2]
        common = matrix.common_complement([*registers, *outside], [*sources, *outside], size)
        chosen = list(common)
    mask = sum(1 << bit for bit in inside)
    answer = np.arange(len(source), dtype=np.int64) & mask
    for vector in matrix.image_basis(chosen):
        answer = np.where(answer >> (vector.bit_length() - 1) & 1, answer ^ vector, answer)
    return answer


def _unique(bits: Bits, carrier: Carrier) -> str:
    """Describe what all factorisations with the carrier's swizzle share."""
    run = 1 << run_bits(carrier.swizzle, bits.low)
    warp = ", ".join(str(carrier.order[place]) for place in bits.of_role(2))
    fixed = f"runs of {run} elements and the warp bits at offset bits ({warp})" if warp else f"runs of {run} elements"
    count = math.factorial(len(carrier.free))
    name = "without a swizzle" if carrier.swizzle == "NONE" else f"with swizzle {carrier.swizzle}"
    return f"{name}: {fixed}; the other {len(carrier.free)} bits in any order, {count} maps, one residual each"
