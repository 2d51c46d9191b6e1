"""Which layouts some TensorMap carries: against all small maps, random maps run forwards, and the engine's model."""

from __future__ import annotations

import itertools
import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.tensormap import ListedProblem, TensorMapProblem, meaning
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.tensormap.lattice import Pitches
from layoutalg.synth.tensormap.pitches import fits
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import RULES

OWN_RULES = {"PITCH_DISTINCT", "SMEM_DENSE", "SMEM_INJECTIVE", "INNER_CONTIGUOUS", "NO_BOX", "SWIZZLE_PITCH", "ISSUES"}


def digits_of(product: int, most: int) -> list[tuple[int, ...]]:
    """All ordered factorisations into at most ``most`` factors above 1."""
    if product == 1:
        return [()]
    if not most:
        return []
    return [
        (first, *rest)
        for first in range(2, product + 1)
        if product % first == 0
        for rest in digits_of(product // first, most - 1)
    ]


def images(size: int, chunks: int, reach: int) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every copy of so many chunks (below 128 bytes, one box): the places in shared memory, the elements read there.

    Global addresses are elements relative to the first; steps are all multiples of 16 bytes up to ``reach``.
    """
    per = 16 // size
    found = set()
    for swizzle, span in (("NONE", 8), ("32B", 2), ("64B", 4), ("128B", 8)):
        for row in range(1, chunks + 1):
            if chunks % row or row > span:
                continue
            pitch = row if swizzle == "NONE" else span
            for box in digits_of(chunks // row, 4):
                for steps in itertools.product(range(0, reach + 1, per), repeat=len(box)):
                    place, read = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
                    unit = 1
                    for count, step in zip(box, steps, strict=True):
                        place = (place + unit * np.arange(count)[:, None]).reshape(-1)
                        read = (read + step * np.arange(count)[:, None]).reshape(-1)
                        unit *= count
                    inner = np.arange(row * per)
                    shared = (place[:, None] * pitch * 16 + inner * size).reshape(-1)
                    source = (read[:, None] + inner).reshape(-1)
                    shared = tensormap.apply_swizzle(swizzle, shared) // size
                    order = np.argsort(shared)
                    found.add((tuple(shared[order].tolist()), tuple(source[order].tolist())))
    return found


def carried_tables(tile: tuple[int, ...], size: int, low: int, high: int) -> set[tuple[int, ...]]:
    """Every layout of a tile that some copy makes, for all pitches in a range, by enumeration alone."""
    points = list(itertools.product(*map(range, tile)))
    reach = sum((extent - 1) * high for extent in tile) + 16
    found = set()
    by_source: dict[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for places, source in images(size, len(points) * size // 16, reach):
        by_source.setdefault(tuple(sorted(source)), []).append((places, source))
    for pitches in itertools.product(range(low, high + 1), repeat=len(tile)):
        values = [sum(g * x for g, x in zip(pitches, point, strict=True)) for point in points]
        for start in set(values):
            wanted = tuple(sorted(value - start for value in values))
            for places, source in by_source.get(wanted, ()):
                holders: dict[int, list[int]] = {}
                for place, read in zip(places, source, strict=True):
                    holders.setdefault(read + start, []).append(place)
                groups = [[at for at, value in enumerate(values) if value == key] for key in holders]
                for orders in itertools.product(*(itertools.permutations(held) for held in holders.values())):
                    table = [0] * len(points)
                    for group, order in zip(groups, orders, strict=True):
                        for at, place in zip(group, order, strict=True):
                            table[at] = place
                    found.add(tuple(table))
    return found


@pytest.mark.nightly(one_of=5)
@pytest.mark.parametrize(
    ("tile", "size"), [((2, 4), 8), ((4, 2), 8), ((6,), 8), ((2, 3), 8), ((2, 2, 2), 8), ((2, 4), 4)]
)
def test_no_mismatch_with_all_small_maps_either_way(tile, size):
    carried = carried_tables(tile, size, -8, 8)
    count = math.prod(tile)
    step = {8: 9, 6: 1}[count]
    tables = set(itertools.islice(itertools.permutations(range(count)), 0, None, step)) | carried
    spread = {
        tuple(16 * v if count == 6 else v + 16 // size * (v >= 4) for v in table)
        for table in tables
        if not sum(table) % 5
    }
    wrong = []
    for table in tables | spread:
        outcome = next(fits(np.array(table).reshape(tile), size))
        if isinstance(outcome, Broken) == (table in carried):
            wrong.append((table, outcome))
    assert carried
    assert not wrong, (len(wrong), wrong[:3])


def forwards(rng: random.Random, join: float) -> tuple[np.ndarray, int]:
    """A layout made by a random map: a table of offsets of a tile, and the bytes of an element."""
    size = rng.choice((1, 2, 4, 8))
    per = 16 // size
    swizzle = rng.choice(("NONE", "32B", "64B", "128B"))
    span = tensormap.swizzle_span_bytes(swizzle) // 16
    row = rng.randint(1, 4 if swizzle == "NONE" else span)
    pitch = row if swizzle == "NONE" else span
    box = [rng.choice((1, 2, 3, 4, 8)) for _ in range(rng.randint(0, 3))]
    lines = math.prod(box) * pitch
    turns = [rng.choice((1, 2, 3)) for _ in range(rng.randint(0, 2))]
    gap = -(-lines // 8) * 8 + rng.choice((0, 0, 8))
    counts = [row * per, *box, *turns]
    pitches, reach = [1], pitch * per
    for count in box:
        pitches.append(reach)
        reach *= count
    reach = gap * per
    for count in turns:
        pitches.append(reach)
        reach *= count
    kept = [at for at, count in enumerate(counts) if count > 1]
    rng.shuffle(kept)
    groups: list[list[int]] = []
    for at in kept:
        if groups and rng.random() < join:
            groups[-1].append(at)
        else:
            groups.append([at])
    groups = groups or [[0]]
    table = np.zeros((), dtype=np.int64)
    for group in groups:
        axis = np.zeros(1, dtype=np.int64)
        for at in group:
            axis = (axis + np.arange(counts[at])[:, None] * pitches[at]).reshape(-1)
        table = table[..., None] + axis
    return tensormap.apply_swizzle(swizzle, table * size) // size, size


@pytest.mark.parametrize("seed", range(3))
def test_what_a_map_makes_is_never_refused(seed):
    rng = random.Random(seed)
    made = unknown = 0
    while made < 40:
        join = rng.choice((0.0, 0.4))
        table, size = forwards(rng, join)
        if table.size > 4096 or int(table.max()) * size >= tensormap.MAX_SMEM_BYTES:
            continue
        answer = la.admissible(table, "tma", dtype={1: "u8", 2: "bf16", 4: "f32", 8: "u64"}[size])
        if join == 0.0:  # each digit is a dimension of its own, so pitches exist
            assert not isinstance(answer, la.Refused), (table.shape, size, answer)
        unknown += isinstance(answer, la.Unknown)
        if isinstance(answer, la.Admitted):
            assert answer.certificate.check()
            check_meaning(answer.descriptor, table)
            made += 1
    assert unknown <= 2


def check_meaning(plan, table) -> None:
    found = meaning.table(plan)
    assert np.array_equal(np.sort(found.reshape(-1)), np.sort(table.reshape(-1)))
    if found.shape == table.shape:
        assert np.array_equal(found, table)


def test_pitches_at_which_rows_touch_are_found():
    flat = np.arange(24)
    table = (flat % 8 + 64 * (flat // 8)).reshape(4, 6)
    answer = la.admissible(table, "tma")
    assert isinstance(answer, la.Admitted)
    assert answer.descriptor.problem.tile == (24,)
    assert meaning.table(answer.descriptor).tolist() == table.reshape(-1).tolist()


@pytest.mark.parametrize("text", ["(8,8):(8,1)", "Sw<3,3,3> o 0 o (64,64):(64,1)", "(64,(64,2)):(64,(1,4096))"])
def test_the_most_copies(text):
    plain = la.admissible(text, "tma")
    copies = len(plain.descriptor.issues)
    assert la.admissible(text, "tma", issues=copies)
    if copies > 1:
        assert not isinstance(la.admissible(text, "tma", issues=copies - 1), la.Admitted)


def test_a_tile_that_needs_two_copies_is_refused_one():
    answer = la.admissible("(8,(64,2)):(64,(1,1024))", "tma", issues=1)
    assert isinstance(answer, la.Refused)
    assert answer.rules == ("ISSUES",)


def test_what_is_known_of_targets_types_and_bases():
    swizzled = "Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert la.admissible(swizzled, "tma", target="sm_80").rules == ("NO_TMA",)
    assert isinstance(la.admissible(swizzled, "tma", target="sm_100a"), la.Unknown)
    assert isinstance(la.admissible(swizzled, "tma", dtype="e2m1"), la.Unknown)
    low = la.admissible(swizzled, "tma", align_bytes=128)
    assert low.rules == ("SMEM_ALIGN",)
    assert low.repairs[0].name == "align the base"
    assert la.admissible("(64,64):(64,1)", "tma", align_bytes=128)


def test_every_repair_is_admitted_when_it_is_asked():
    for text in ("(64,64):(72,1)", "(64,64):(65,1)", "(16,16):(24,1)"):
        answer = la.admissible(text, "tma")
        assert answer.repairs
        assert set(answer.rules) <= set(RULES) | OWN_RULES
        for repair in answer.repairs:
            assert la.admissible(dict(repair.document), "tma"), repair.name


def test_a_problem_is_asked_in_place_of_a_layout():
    problem = TensorMapProblem.of(((1024, 512), None, "f16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
    answers = [la.admissible(given, "tma") for given in (problem, problem.to_json(), json.dumps(problem.to_json()))]
    assert all(isinstance(answer, la.Admitted) for answer in answers)
    assert {answer.certificate.seal for answer in answers} == {answers[0].certificate.seal}
    assert answers[0].dtype == "f16"
    with pytest.raises(MalformedError):
        la.admissible(problem, "tma.store")


def test_a_tensor_given_is_the_one_asked():
    text = "Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert la.admissible(text, "tma", tensor=la.Tensor((1024, 512)))
    assert la.admissible(text, "tma", tensor=la.Tensor((1024, 516))).rules == ("STRIDE_ALIGN",)
    flat = np.arange(24)
    table = (flat % 8 + 64 * (flat // 8)).reshape(4, 6)
    assert la.admissible(table, "tma", tensor=la.Tensor((4, 6)))
    assert not isinstance(la.admissible(table, "tma", tensor=la.Tensor((16, 64))), la.Admitted)


def test_lattices_of_pitches_against_enumeration():
    rng = random.Random(3)
    for _ in range(60):
        forms = [
            ([rng.randint(-3, 3) for _ in range(2)], rng.randint(-4, 4), rng.choice((0, 0, 2, 4))) for _ in range(2)
        ]
        system: Pitches | None = Pitches((0, 0), ((1, 0), (0, 1)))
        for form, value, modulus in forms:
            system = system.meeting(form, value, modulus) if system is not None else None

        def meets(point, forms=forms):
            sums = [sum(a * b for a, b in zip(form, point, strict=True)) - value for form, value, _ in forms]
            return all(s % m == 0 if m else s == 0 for s, (_, _, m) in zip(sums, forms, strict=True))

        box = [point for point in itertools.product(range(-20, 21), repeat=2) if meets(point)]
        if system is None:
            assert not box, forms
            continue
        turns = itertools.product(range(-45, 46), repeat=len(system.basis))
        made = {
            tuple(p + sum(z * b[i] for z, b in zip(zs, system.basis, strict=True)) for i, p in enumerate(system.point))
            for zs in turns
        }
        assert all(meets(point) for point in made)
        assert {point for point in box if max(map(abs, point)) <= 8} <= made


@pytest.mark.parametrize("operation", ["add", "min", "max", "inc", "dec", "and", "or", "xor"])
def test_reductions_are_stores_of_their_types(operation):
    text, kinds = "(8,32):(32,1)", ("u8", "u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16")
    taken = {kind for kind in kinds if la.admissible(text, f"tma.reduce.{operation}", dtype=kind)}
    common = {"u32", "s32", "u64"}
    wanted = {
        "add": common | {"f64", "f32", "f16", "bf16"},
        "inc": {"u32"},
        "dec": {"u32"},
        "and": common,
        "or": common,
        "xor": common,
    }.get(operation, common | {"s64", "f16", "bf16"})
    assert taken == wanted
    answer = la.admissible(text, f"tma.reduce.{operation}", dtype="u32")
    assert (answer.evidence, answer.descriptor.direction) == ("measured", "store")
    assert la.admissible(text, f"tma.reduce.{operation}", dtype="u8").rules == ("REDUCE_DTYPE",)
    assert la.admissible("(8,32):(40,1)", f"tma.reduce.{operation}", dtype="u32").rules == ("SMEM_DENSE",)


def test_a_pitch_of_0_is_loaded_and_not_stored():
    columns = {"dim0": [(8,)], "dim1": [(1,), (2,), (12,)]}
    layout = la.LinearLayout.from_bases(columns, {"offset": 16})
    answer = la.admissible(layout, "tma", dtype="f16", tile=(2, 8))
    assert isinstance(answer, la.Admitted)
    assert answer.descriptor.problem.global_strides == (0, 1)
    stored = la.admissible(layout, "tma.store", dtype="f16", tile=(2, 8))
    assert isinstance(stored, la.Refused)
    assert stored.rules == ("STORE_OVERLAP",)
    apart = la.admissible(layout, "tma", dtype="f16", tile=(2, 8), distinct=True)
    assert (apart.rules, apart.witness) == (("PITCH_DISTINCT",), stored.witness)
    one, other = stored.witness["coordinate"], stored.witness["other"]
    assert one != other
    assert one[1] == other[1]


@pytest.mark.parametrize(("tile", "size", "step"), [((2, 4), 8, 97), ((4, 2), 8, 101), ((6,), 8, 7), ((2, 4), 4, 211)])
def test_every_small_tile_has_the_verdict_of_trying_all_maps(tile, size, step):
    carried = carried_tables(tile, size, -8, 8)
    tables = sorted(set(itertools.islice(itertools.permutations(range(math.prod(tile))), 0, None, step)) | carried)
    dtype = {8: "u64", 4: "u32"}[size]
    for table in tables[:: max(1, len(tables) // 60)]:
        answer = la.admissible(np.array(table).reshape(tile), "tma", dtype=dtype)
        assert isinstance(answer, la.Admitted) == (table in carried), (table, answer)
        assert isinstance(answer, la.Admitted | la.Refused)
        if isinstance(answer, la.Admitted):
            assert answer.certificate.check()
            assert loaded(answer.descriptor) == list(table)


def loaded(plan) -> list[int]:
    """Where a tile's elements stand in shared memory after the model of the engine ran the copies of a plan."""
    problem, size = plan.problem, plan.problem.element_bytes
    first, end = problem.byte_span()
    assert first >= 0
    kind = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}[size]
    memory = np.arange(1, -(-end // size) + 1).astype(kind).view(np.uint8)
    image = np.zeros(plan.smem_bytes + 1024, dtype=np.uint8)
    for issue in plan.issues:
        tensormap.tile_load(plan.tensor_map, issue.coords, memory, image, smem_offset_bytes=issue.smem_offset_bytes)
    held, wanted = image.view(kind), problem.elements((0,) * problem.rank)[0].reshape(-1) + 1
    places = problem.addresses().reshape(-1) // size
    assert held[places].tolist() == wanted.astype(kind).tolist()
    assert np.count_nonzero(held) == len(set(places.tolist()))
    return places.tolist()


def test_whole_lines_may_be_exchanged():
    rng = random.Random(5)
    for dtype, size in (("u8", 1), ("f16", 2), ("f32", 4)):
        lines, row = 16, 128 // size
        order = rng.sample(range(lines), lines)
        table = (np.array(order)[:, None] * row + np.arange(row)).reshape(4, 4 * row)
        for consumer in ("tma", "tma.store"):
            answer = la.admissible(table, consumer, dtype=dtype)
            assert isinstance(answer, la.Admitted), answer
            assert np.array_equal(meaning.table(answer.descriptor), table)
        if size < 4:
            continue
        plan = la.admissible(table, "tma", dtype=dtype).descriptor
        again = type(plan).from_json(json.loads(json.dumps(plan.to_json())))
        assert again == plan
        assert loaded(plan) == table.reshape(-1).tolist()


def test_rows_that_no_box_divides_are_covered_by_copies_that_overlap():
    for rows, dtype in ((257, "bf16"), (514, "bf16"), (521, "f32"), (1021, "u8")):
        width = {"bf16": 8, "f32": 4, "u8": 16}[dtype]
        answer = la.admissible(f"({rows},{width}):({width},1)", "tma", dtype=dtype)
        assert isinstance(answer, la.Admitted), (rows, answer)
        covered = sum(math.prod(answer.descriptor.tensor_map.box) for _ in answer.descriptor.issues)
        assert covered > rows * width


def test_a_table_is_planned_for_the_tensor_given():
    table = np.array([*range(32, 64), *range(32)]).reshape(2, 32)
    tensor = la.Tensor((64, 32), dtype="f32")
    problem = ListedProblem.listed(tensor, (2, 32), table)
    plan = synthesize_tensormap(problem)
    assert plan.problem == problem
    assert loaded(plan) == table.reshape(-1).tolist()
    assert synthesize_tensormap(problem.to_json()).raw == plan.raw
    for origin in ((0, 0), (2, 0), (62, 0)):
        assert plan.coordinates(origin)[0][0] == plan.coordinates((0, 0))[0][0] + 32 * origin[0]
    with pytest.raises(InadmissibleError):
        synthesize_tensormap(ListedProblem.listed(la.Tensor((2, 32), (33, 1), "f32"), (2, 32), table))
    with pytest.raises(MalformedError):
        ListedProblem.listed(tensor, (2, 32), table[:, :31])


def test_pitches_that_keep_elements_apart_against_enumeration():
    rng = random.Random(8)
    seen = set()
    for _ in range(300):
        rank = rng.choice((1, 2, 3))
        tile = tuple(rng.choice((1, 2, 3)) for _ in range(rank))
        basis = [tuple(int(i == j) for j in range(rank)) for i in range(rank)]
        system: Pitches | None = Pitches((0,) * rank, tuple(basis))
        for _ in range(rng.choice((0, 1, 2))):
            form = [rng.randint(-2, 2) for _ in range(rank)]
            system = system.meeting(form, rng.randint(-2, 2)) if system is not None else None
        for _ in range(rng.choice((0, 1, 2))):
            form = [rng.randint(-2, 2) for _ in range(rank)]
            system = system.at_least(form) if system is not None else None
        if system is None:
            continue
        apart = rng.random() < 0.5
        found = system.solved(tile, 5, apart=apart)

        def meets(point, system=system, tile=tile, apart=apart):
            for form in system.least:
                if not 0 <= sum(a * b for a, b in zip(form, point, strict=True)) <= 5:
                    return False
            places = [sum(a * b for a, b in zip(point, at, strict=True)) for at in np.ndindex(tile)]
            return not apart or len(set(places)) == len(places)

        turns = itertools.product(range(-12, 13), repeat=len(system.basis))
        points = (
            tuple(p + sum(z * b[i] for z, b in zip(zs, system.basis, strict=True)) for i, p in enumerate(system.point))
            for zs in turns
        )
        assert (found is not None) == any(meets(point) for point in points), (system, tile, apart)
        assert found is None or meets(found)
        seen.add((apart, found is None))
    assert len(seen) == 4


def test_a_refusal_names_the_offset_bit_of_an_exclusive_or():
    rng = random.Random(12)
    named = 0
    for _ in range(150):
        size, bits = rng.choice((1, 2, 4, 8)), rng.choice((6, 7, 8))
        low = size.bit_length() - 1
        columns = [1 << bit for bit in range(bits)]
        tail = columns[4 - low :]
        rng.shuffle(tail)
        columns[4 - low :] = tail
        for _ in range(rng.randint(0, 2)):
            one, two = rng.sample(range(bits), 2)
            columns[one] ^= columns[two]
        table = np.zeros((1, 1), dtype=np.int64)
        for column in columns[:4]:
            table = np.concatenate((table, table ^ column), axis=1)
        for column in columns[4:]:
            table = np.concatenate((table, table ^ column), axis=0)
        answer = la.admissible(table, "tma", dtype={1: "u8", 2: "f16", 4: "f32", 8: "u64"}[size], distinct=True)
        if isinstance(answer, la.Refused) and "output_bit" in answer.witness:
            named += 1
            bit = answer.witness["output_bit"]
            assert f"offset bit {bit} is bit " in answer.reasons[0]
            for swizzle in ("NONE", "128B", "64B", "32B"):  # some bit below 128 bytes is flipped twice behind each
                undone = tensormap.apply_swizzle(swizzle, np.array(columns) << low)
                assert max(sum(int(c) >> at & 1 for c in undone) for at in range(7)) > 1
            assert (bit + low) < 7
    assert named > 20
    plain = la.admissible("(64,64):(72,1)", "tma")
    assert "output_bit" not in plain.witness


@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_a_tensor_given_is_the_tensor_planned_for(rng):
    """Tables, layouts off their base, interleaved maps, bases of little alignment: what is admitted states it."""
    tile = tuple(rng.choice([1, 2, 4, 8, 16, 32]) for _ in range(rng.choice([1, 2, 3])))
    dtype, size = rng.choice([("f16", 2), ("f32", 4), ("u8", 1)])
    shape = tuple(extent * rng.choice([1, 2, 3]) + rng.choice([0, 0, 5]) for extent in tile)
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(-(-strides[-1] * extent // (16 // size)) * (16 // size))
    tensor = la.Tensor(shape, tuple(reversed(strides)), dtype)
    places = np.arange(math.prod(tile))
    kind = rng.choice(["chunks", "swizzle", "off", "columns"])
    if kind == "chunks":
        order = rng.sample(range(-(-len(places) * size // 16)), -(-len(places) * size // 16))
        places = np.array([order[i * size // 16] * (16 // size) + i % (16 // size) for i in places])
    elif kind == "swizzle":
        places = (places * size ^ (places * size >> 7 & 7) << 4) // size
    table = places.reshape(tile) if kind != "columns" else places.reshape(tile[::-1]).T
    table = table + 128 // size * (kind == "off")
    options = {"interleave": rng.choice(["NONE", "any", "16B"]), "distinct": rng.random() < 0.3}
    align = rng.choice([128, 1024])
    answer = la.admissible(table, "tma", dtype=dtype, tensor=tensor, align_bytes=align, **options)
    if isinstance(answer, la.Admitted):
        problem = answer.descriptor.problem
        assert (problem.global_shape, problem.global_strides, problem.tile) == (shape, tensor.strides, tile)
        assert answer.descriptor.smem_align_bytes <= align
        assert (problem.addresses().reshape(-1) == table.reshape(-1) * size).all()


def test_refusals_of_plain_maps_do_not_refuse_interleaved_ones():
    text = "(4,16,8):(128,8,1)"
    for kind in ("NONE", "any"):
        assert isinstance(la.admissible(text, "tma", dtype="f16", interleave=kind), la.Admitted)
    never = la.admissible("(64,64):(65,1)", "tma", interleave="any")
    assert isinstance(never, la.Unknown)
    once = la.admissible("(4,16,8):(0,8,1)", "tma", dtype="f16", interleave="16B", distinct=True)
    assert not isinstance(once, la.Admitted)
