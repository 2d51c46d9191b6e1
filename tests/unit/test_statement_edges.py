"""Plans of registers, shared memory and families that are wrong at one place, and the check that names it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.conversion import ConversionPlan, Held, counted
from layoutalg.proofs.conversion_steps import SharedAccess, Through
from layoutalg.proofs.exchange import Exchange, ExchangePlan, Repack, parity
from layoutalg.proofs.im2col import ColumnIssue, ConvolutionPlan, ConvolutionProblem
from layoutalg.proofs.im2col import check as check_columns
from layoutalg.proofs.ragged import prove_coverage
from layoutalg.proofs.shuffle import Round, ShufflePlan
from layoutalg.proofs.swizzling import TileAccess, instructions
from layoutalg.proofs.tcgen05.reading import read_bits
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.wgmma import check as check_operand
from layoutalg.proofs.wgmma import reading
from layoutalg.synth import synthesize_ragged
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.synth.swizzles import swizzle
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.nvidia import im2col

# --- exchanges and shuffles -------------------------------------------------------------------------------------------


def plain(count: int, packed: int = 1) -> Repack:
    return Repack(tuple(1 << bit for bit in range(count.bit_length() - 1)), 0, packed)


def test_a_parity_is_that_of_all_bits():
    values = np.random.default_rng(0).integers(0, 1 << 20, 200)
    for mask in (1, 1 << 16, 1 << 19, 0x90001, 0xFFFFF):
        assert parity(mask, values).tolist() == [(int(value) & mask).bit_count() & 1 for value in values]


@pytest.mark.parametrize("asked", [(1, 1), (2, 2), (2, 1), (3, 5)])
def test_an_exchange_asks_both_of_the_bits_that_it_moves(asked: tuple[int, int]):
    assert Exchange(1, 2, 1, 2).lanes == 2
    with pytest.raises(MalformedError, match="LA884"):
        Exchange(1, 2, *asked)


def test_an_exchange_stays_in_its_warp():
    right = ExchangePlan(2, 2, 2, plain(2), (Exchange(1, 1, 1, 1),), plain(2))
    assert right.source().shape == (2, 2, 2)
    for wrong in (Exchange(1, 2, 1, 2), Exchange(1, 3, 1, 1), Exchange(1, 1, 1, 3)):
        with pytest.raises(MalformedError, match="must fit the registers"):
            ExchangePlan(2, 2, 2, plain(2), (wrong,), plain(2))


def test_words_are_packed_alike_before_and_after():
    with pytest.raises(MalformedError, match="must have the packing of after"):
        ExchangePlan(4, 2, 1, plain(4, 2), (), plain(4, 4))
    with pytest.raises(MalformedError, match="must have the packing of after"):
        ExchangePlan(4, 2, 1, plain(4, 8), (), plain(4, 8))


def test_a_plan_of_exchanges_has_no_more_places_than_are_listed():
    most = 1 << 20
    assert ExchangePlan(most >> 10, 32, 32, plain(most >> 10), (), plain(most >> 10)).words == most >> 10
    with pytest.raises(MalformedError, match=f"must give at most {most} places"):
        ExchangePlan(most >> 9, 32, 32, plain(most >> 9), (), plain(most >> 9))


def test_every_register_is_written_once():
    """A round and a copy, or two rounds, that write one register."""
    swap = Round(((0, 0),), ((1, 0),), ((0, 0),))
    assert ShufflePlan(1, 2, 1, (((-1,), (-1,)),), (swap,)).rounds
    for kept, rounds in (((((0,), (-1,)),), (swap,)), ((((-1,), (-1,)),), (swap, swap)), ((((-1,), (-1,)),), ())):
        with pytest.raises(MalformedError, match="must write every register once"):
            ShufflePlan(1, 2, 1, kept, rounds)


# --- conversions ------------------------------------------------------------------------------------------------------

LANES, BACKWARDS = (1, 2, 4, 8, 16), (16, 8, 4, 2, 1)
THROUGH = Through(
    128, "warp", 1,
    SharedAccess("st.shared.b32", 1, tuple(4 * lane for lane in LANES), (0,), 0, 1),
    SharedAccess("ld.shared.b32", 1, tuple(4 * lane for lane in BACKWARDS), (0,), 0, 1),
)  # fmt: skip


def held(columns: tuple[int, ...]) -> Held:
    return Held(
        la.LinearLayout((("register", 0), ("lane", 5), ("warp", 0)), (("element", 5),), columns), None, 1, 32, 1
    )


def converted(step: Through = THROUGH) -> ConversionPlan:
    ends = held(LANES), held(BACKWARDS)
    cost = counted((step,), ends[0], 32, instruction_costs("sm_90a"))
    return ConversionPlan(*ends, 32, "sm_90a", "shared", (step,), cost, "made by hand", ())


def test_the_last_element_ends_within_the_bytes():
    assert converted().check()
    with pytest.raises(MalformedError, match=r"LA931[^$]*must stay within 124 bytes"):
        converted(replace(THROUGH, smem_bytes=124)).check()


@pytest.mark.parametrize("columns", [(4, 8, 16, 32, 32), (4, 4, 16, 32, 64), (4, 8, 16, 32, 0)])
def test_two_threads_never_store_at_one_address(columns: tuple[int, ...]):
    with pytest.raises(MalformedError, match=r"LA931[^$]*must not store two elements to one address"):
        converted(replace(THROUGH, store=replace(THROUGH.store, threads=columns))).check()


@pytest.mark.parametrize(
    "change", [{"cycles": 1000.0}, {"cycles": 0.0}, {"shuffles": 1}, {"barriers": 0}, {"turns": 3}]
)
def test_a_cost_is_the_one_that_is_counted(change: dict[str, float]):
    right = converted()
    with pytest.raises(MalformedError, match=r"LA931[^$]*cost[^$]*must be"):
        replace(right, cost=replace(right.cost, **change)).check()


# --- swizzles and what they serve -------------------------------------------------------------------------------------


def test_turns_and_bounds_are_counted_again():
    plan = swizzle(["rows", "columns"], "sm_90a", 16, tile=(64, 64))
    assert plan.check() is plan
    first, *others = plan.served
    for change in (1, -1):
        wrong = replace(first, turns=first.turns + change)
        with pytest.raises(MalformedError, match=r"LA911[^$]*served[^$]*must be"):
            replace(plan, served=(wrong, *others)).check()
    with pytest.raises(MalformedError, match=r"LA911[^$]*must not exceed the turns"):
        replace(plan, bound=plan.turns + 1).check()
    image, *rest = plan.smem.columns
    doubled = la.LinearLayout(plan.smem.in_axes, plan.smem.out_axes, (rest[0], *rest))
    assert image != rest[0]
    with pytest.raises(MalformedError, match=r"LA911[^$]*must be a bijection"):
        replace(plan, smem=doubled).check()


# --- operands ---------------------------------------------------------------------------------------------------------


def test_instructions_cover_whole_tiles():
    plan = synthesize_wgmma(canonical_operand("A", (64, 16), major="K"))
    assert isinstance(check_operand(plan), Proved)
    for shape in ((32, 16), (64, 8), (96, 16)):
        modes = tuple(((extent, stride),) for extent, stride in zip(shape, (64, 1), strict=True))
        verdict = check_operand(plan.with_changes(problem=replace(plan.problem, shape=shape, smem_modes=modes)))
        assert isinstance(verdict, Refuted)
        assert "instructions do not cover the tile" in verdict.witness.values()


# --- convolutions and ragged tiles ------------------------------------------------------------------------------------

CONVOLUTION = ConvolutionProblem(Tensor((2, 9, 9, 64)), (3, 3), 32, 64, (2, 2), (1, 1), (1, 1))


def issue(offset: int, row: int) -> ColumnIssue:
    return ColumnIssue(row=row, channel=0, smem_offset_bytes=offset)


def columns(issues: tuple[ColumnIssue, ...]) -> dict[str, object]:
    """What is wrong with these issues of a map of 16 pixels."""
    plan = synthesize_im2col(CONVOLUTION)
    tm = replace(plan.tensor_map, pixels_per_column=16)
    verdict = check_columns(ConvolutionPlan(CONVOLUTION, tm, issues))
    return dict(verdict.witness) if isinstance(verdict, Refuted) else {}


def test_every_place_of_a_convolution_is_loaded_once():
    half = 16 * 128
    assert columns((issue(0, 0), issue(half, 16))) == {}
    twice = columns((issue(0, 0), issue(half, 16), issue(2 * half, 16)))
    assert (twice["what"], twice["times"]) == ("times", 2)
    overlap = columns((issue(0, 0), issue(half - 1024, 16)))
    assert overlap["what"] == "two issues overlap in shared memory"
    assert columns((issue(0, 0), issue(half + 64, 16)))["what"] == "alignment"


@pytest.mark.parametrize(("dilation", "proved"), [(127, True), (128, False)])
def test_offsets_of_taps_are_as_long_as_an_instruction_holds(dilation: int, proved: bool):
    def problem(gap: int) -> ConvolutionProblem:
        return ConvolutionProblem(Tensor((1, 300, 8, 64)), (3, 1), 32, 64, dilation=(gap, 1), padding=(128, 0))

    plan, stated = synthesize_im2col(problem(127)), problem(dilation)
    low, high = plan.tensor_map.upper_corner
    tm = replace(plan.tensor_map, upper_corner=(low, high - 2 * (dilation - 127)))
    assert im2col.violations(tm) == ()
    verdict = check_columns(ConvolutionPlan(stated, tm, plan.issues))
    assert isinstance(verdict, Proved if proved else Refuted), verdict
    assert proved or verdict.witness["what"] == "offset"


@pytest.mark.parametrize("strategy", ["exact_pool", "descriptors"])
def test_rows_of_groups_are_copied_once(strategy: str):
    family = synthesize_ragged(la.Tensor(("R", 64)), (64, 64), strategy=strategy)
    assert isinstance(prove_coverage(family), Proved)
    less = replace(family, rules=family.rules[1:], plans=family.plans[: len(family.rules) - 1])
    verdict = prove_coverage(less)
    assert isinstance(verdict, Refuted)
    assert verdict.witness["what"] == "a row is not copied"
    more = prove_coverage(replace(family, rules=(*family.rules, family.rules[0])))
    assert isinstance(more, Refuted)
    assert more.witness["what"] == "a row is copied twice"
    claim = prove_coverage(replace(family, stated="some rows are copied twice"))
    assert isinstance(claim, Refuted)
    assert (claim.witness["what"], claim.witness["field"]) == ("wrong claim", "stated")


def test_what_lies_beyond_18_bits_is_not_known():
    fields = reading.fields_of(64 << 16 | 8 << 32)
    assert fields is not None
    last = 2**18 - 2048
    for base, known in ((0, True), (last, True), (last + 16, False), (2**18, False)):
        assert isinstance(reading.read_addresses(fields, 64, "K", base), str) != known, base


@pytest.mark.parametrize(
    ("lanes", "fits"), [((2, 4, 8, 16, 32), True), ((4, 2, 8, 16, 32), False), ((2, 4, 16, 8, 32), True)]
)
def test_a_matrix_instruction_moves_rows_of_words_in_order(lanes: tuple[int, ...], fits: bool):
    """Lane 4 g + q holds the word q of row g."""
    access = la.LinearLayout((("register", 1), ("lane", 5)), (("tile", 6),), (1, *lanes))
    smem = la.LinearLayout((("tile", 6),), (("offset", 6),), (1, 2, 4, 8, 16, 32))
    given = TileAccess(access, "ldmatrix")
    if fits:
        assert instructions(given, smem, 16, "sm_90a")[0] == "ldmatrix.x1"
    else:
        with pytest.raises(MalformedError, match="must be ldmatrix fragments"):
            instructions(given, smem, 16, "sm_90a")


def test_documents_say_what_is_read_within_a_span():
    word = 0x4000404000010000
    for sixteenths, known in ((0, True), (6, True), (7, False), (8, True)):
        assert isinstance(read_bits(word + sixteenths, 64, 16, 16, 16, "K"), str) != known, sixteenths
