"""``la.banks`` against addresses enumerated lane by lane in plain Python, for pairs of layouts of every family."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.targets.layouts.nvidia import ldmatrix_fragment, mma_accumulator, mma_operand, wgmma_fragment
from layoutalg.targets.layouts.padding import PaddedShared, padded_shared
from layoutalg.targets.layouts.shared import nvmma_shared, swizzled_shared
from layoutalg.targets.nvidia.banks import wavefronts

Place = Callable[[int, int, int], int]
"""Warp, lane and register to a bit address."""


def offset_of(shared: object, point: tuple[int, ...]) -> int:
    """The element offset of a tile coordinate, one at a time."""
    if isinstance(shared, PaddedShared):
        return shared.address(shared.linear.inverse()(**{f"dim{k}": x for k, x in enumerate(point)})["offset"])
    if isinstance(shared, la.LinearLayout):
        return shared.inverse()(**{f"dim{k}": x for k, x in enumerate(point)})["offset"]
    return shared(*point)


def turns_of(place: Place, registers: int, warps: int, bits: int, kind: str) -> int:
    """Turns with the widest vector, found by trying every aligned run of addresses in every lane."""
    for width in (128, 64, 32, 16, 8):
        if width < bits or registers * bits % width:
            continue
        many = width // bits
        groups: dict[int, list[int]] = {}
        for register in range(registers):
            groups.setdefault(place(0, 0, register) // width, []).append(register)
        runs = [sorted(group, key=lambda register: place(0, 0, register)) for group in groups.values()]
        fits = all(
            len(run) == many
            and place(warp, lane, run[0]) % width == 0
            and all(place(warp, lane, run[0]) + k * bits == place(warp, lane, run[k]) for k in range(many))
            for run in runs
            for warp in range(warps)
            for lane in range(32)
        )
        if fits:
            return sum(
                wavefronts([place(warp, lane, run[0]) // 8 for lane in range(32)], width, kind)
                for run in runs
                for warp in range(warps)
            )
    raise AssertionError("no vector fits")


def shared_layouts(rows: int, columns: int, bits: int, rng: random.Random) -> Iterator[object]:
    yield la.CuteLayout((rows, columns), (columns, 1))
    yield la.CuteLayout((rows, columns), (columns + rng.choice((1, 2, 4, 8, 12)), 1))
    yield la.CuteLayout((rows, columns), (1, rows))
    yield la.parse(f"Sw<{rng.choice((1, 2, 3))},{rng.choice((2, 3))},3> o 0 o ({rows},{columns}):({columns},1)")
    yield swizzled_shared((rows, columns), rng.choice((1, 4, 8)), rng.choice((1, 2)), rng.choice((2, 4, 8)), (1, 0))
    yield padded_shared((rows, columns), [(columns, rng.choice((1, 2, 8)))])
    if rows >= 8 and columns * bits >= 512:
        yield nvmma_shared((rows, columns), 64, bits)


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("seed", range(6))
def test_fragments_of_linear_layouts(seed: int) -> None:
    rng = random.Random(seed)
    for fragment, bits in (
        (mma_operand("A", (32, 32), (2, 1), 2), 16),
        (mma_accumulator((16, 32), (1, 2)), 32),
        (mma_operand("B", (32, 16), (1, 1), 4), 8),
    ):
        rows, columns = fragment.out_dims.values()
        for shared in shared_layouts(rows, columns, bits, rng):
            kind = rng.choice(("load", "store"))

            def place(warp: int, lane: int, register: int, fragment=fragment, shared=shared, bits=bits) -> int:
                point = fragment(register=register, lane=lane, warp=warp, block=0)
                return offset_of(shared, (point["dim0"], point["dim1"])) * bits

            count, warps = fragment.in_dims["register"], fragment.in_dims["warp"]
            report = la.banks(fragment, shared, bits, kind)
            assert report.turns == turns_of(place, count, warps, bits, kind), (str(shared), kind)
            assert report.ideal <= report.turns
            worst = report.worst
            places = [place(worst.warp, lane, worst.registers[0]) // 8 for lane in range(32)]
            assert list(worst.addresses_bytes) == places
            touched = {
                lane for lane in worst.lanes if worst.bank in {at // 4 % 32 for at in _bytes(places[lane], report)}
            }
            assert touched == set(worst.lanes)


def _bytes(start: int, report: la.ask.BankReport) -> range:
    width = {"v4.b32": 16, "v2.b32": 8, "v2.b64": 16, "b64": 8, "b32": 4, "b16": 2, "b8": 1}
    return range(start, start + width[report.instruction.split("shared.")[1]])


@settings(max_examples=10, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_thread_value_layouts_of_any_extents(rng: random.Random) -> None:
    warps, values = rng.choice((1, 2, 3)), rng.choice((2, 3, 4, 6))
    threads = 32 * warps
    shape, stride = rng.choice((((threads, values), (values, 1)), ((threads, values), (1, threads))))
    registers = la.CuteLayout(shape, stride)
    rows = rng.choice((4, 6, 8))
    columns = threads * values // rows
    if rows * columns != threads * values:
        columns, rows = threads * values, 1
    bits = rng.choice((16, 32, 64))
    shared = la.CuteLayout((rows, columns), rng.choice(((columns + 3, 1), (1, rows), (1, rows + 2))))

    def place(warp: int, lane: int, register: int) -> int:
        flat = registers(32 * warp + lane, register)
        return shared(flat % rows, flat // rows) * bits

    report = la.banks(registers, shared, bits)
    assert report.turns == turns_of(place, values, warps, bits, "load")


def test_a_fragment_on_digits_and_one_of_accesses_already_composed() -> None:
    fragment = wgmma_fragment(24)
    shared = la.CuteLayout((64, 24), (26, 1))

    def place(warp: int, lane: int, register: int) -> int:
        v0, v1, v2 = register % 2, register // 2 % 2, register // 4
        q, g = lane % 4, lane // 4
        return shared(g + 8 * v1 + 16 * warp, v0 + 2 * q + 8 * v2) * 32

    report = la.banks(fragment, shared, 32, "store", lanes=("q", "g"), warps=("w",))
    assert report.turns == turns_of(place, 12, 4, 32, "store")
    operand, held = mma_operand("A", (16, 64), (1, 1), 2), nvmma_shared((16, 64), 128, 16)
    composed = la.f2.invert_and_compose(operand, held)
    assert la.banks(composed, element_bits=16) == la.banks(operand, held, 16)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("pitch", [64, 72, 80, 96])
def test_matrices_are_their_rows(transposed: bool, pitch: int) -> None:
    operand = mma_operand("A", (32, 64), (1, 1), 2)
    shared = la.CuteLayout((32, 64), (1, pitch)) if transposed else la.CuteLayout((32, 64), (pitch, 1))
    report = la.banks(operand, shared, 16, "ldmatrix.trans" if transposed else "ldmatrix")
    across, along = (64, 32) if transposed else (32, 64)
    groups = [[(r + i) * pitch * 2 + c * 2 for i in range(8)] for r in range(0, across, 8) for c in range(0, along, 8)]
    assert report.turns == sum(wavefronts(rows, 128, "ldmatrix") for rows in groups)
    assert report.ideal == len(groups) == 4 * report.accesses
    stored = la.banks(operand, shared, 16, "stmatrix.trans" if transposed else "stmatrix")
    assert (stored.turns, stored.worst.instruction[:8]) == (report.turns, "stmatrix")


def test_one_matrix_is_the_fragment_of_the_instruction() -> None:
    for count in (1, 2, 4):
        fragment = ldmatrix_fragment(count)
        shared = la.CuteLayout((8, 8, count), (8, 1, 64))
        report = la.banks(fragment, shared, 16, f"ldmatrix.x{count}")
        assert (report.accesses, report.turns, report.instruction) == (1, count, f"ldmatrix.x{count}")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("(32,4):(4,1)", "(128):(1)", 32, "ldmatrix"), "rows of 16 bytes"),
        (("(31,4):(4,1)", "(124):(1)", 32), "multiple of 32"),
        (("(32,4):(4,1)", "(128):(1)", 3), "power of two"),
        (("(32,4):(4,1)", "(128):(1)", 32, "read"), "kind"),
        (("(32,4):(4,1)", "(64):(1)", 32), "[0, 64)"),
        (("(32,4):(4,1)", "(128):(2)", 32, "ld.shared.v4.b32"), "128 bits"),
        ((7, "(128):(1)", 32), "layout"),
        ((mma_operand("A", (16, 16), (1, 1), 2), None, 16), "tile coordinates"),
    ],
)
def test_what_is_no_access_is_refused(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(la.MalformedError) as caught:
        la.banks(*arguments)
    assert says in str(caught.value)
