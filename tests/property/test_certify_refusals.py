"""Certificates of refusals, on random layouts: carried ones meet one of their candidates, and refused ones none."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg.proofs import checker
from layoutalg.proofs.certify import forced
from layoutalg.proofs.certify.convolutions import convolution
from layoutalg.proofs.certify.systems import excluded, none_of
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.synth.admission.request import request_of
from layoutalg.synth.factor import factorise
from layoutalg.synth.fragments import coordinates
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.targets.layouts.nvidia_instructions import mma_fragment

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from campaign_admission import ACCESSES, FRAGMENTS, Draw, asked  # noqa: E402
from certificate_judges import JUDGES, _meeting, function, run  # noqa: E402

ROWS = (*ACCESSES, "cp.async.cg.16", "cp.async.ca.4", "ds_read_b128", "ds_write_b64")


def answers(consumer: str, count: int, seed: int = 3) -> list[tuple[Any, Any]]:
    rng = Draw(seed)
    target = "gfx942" if consumer.startswith(("mfma", "ds_")) else "sm_90a"
    found = []
    for _ in range(count):
        case = asked(consumer if consumer in (*ACCESSES, *FRAGMENTS) or consumer == "tma" else "ld.shared.b32", rng)
        tile = None if consumer in FRAGMENTS else case.table.shape
        found.append((case, la.admissible(case.layout, consumer, target, case.dtype, tile=tile)))
    return found


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("consumer", [*ROWS, *FRAGMENTS, "tma"])
def test_each_refusal_has_a_certificate_that_holds(consumer: str) -> None:
    for case, answer in answers(consumer, 24):
        if isinstance(answer, la.Refused) and answer.rules != ("NO_BOX",):
            assert answer.certificate is not None, (case.layout, answer)
            document = json.loads(json.dumps(answer.to_json()["certificate"]))
            assert checker.check(document)[0] == 0
            if len(case.table.reshape(-1)) <= 1024:
                assert JUDGES[document["kind"]](document["statement"])[0], document


def met(candidate: dict[str, Any], f: Any) -> bool:
    """Whether numbers meet the equations of a candidate without unknowns, at all its places."""
    for i in range(candidate["size"]):
        at = run(candidate["at"], [i])
        rows = run(candidate["rows"], [i, *(value for point in at or () for value in f(point))])
        if any(rows or ()):
            return False
    return True


@pytest.mark.nightly(one_of=4)
@pytest.mark.parametrize("consumer", ROWS)
def test_carried_layouts_meet_a_candidate_and_refused_ones_none(consumer: str) -> None:
    """The candidates of a refusal hold of every layout of the extents that is carried."""
    rng = random.Random(5)
    seen = 0
    for case, answer in answers(consumer, 60, seed=9):
        if case.table.size > 512 or not isinstance(answer, la.Refused) or answer.certificate.kind != "none-of":
            continue
        statement = answer.certificate.statement
        if any(candidate["size"] == 1 for candidate in statement["candidates"]):
            continue  # of widths alone
        assert not any(met(candidate, function(statement["f"])[2]) for candidate in statement["candidates"])
        extents = case.table.shape
        order = rng.sample(range(len(extents)), len(extents)) if len(extents) > 1 else [0]
        dense = np.arange(case.table.size).reshape([extents[dim] for dim in order]).transpose(np.argsort(order))
        target = "gfx942" if consumer.startswith("ds_") else "sm_90a"
        other = la.admissible(np.ascontiguousarray(dense), consumer, target, case.dtype, tile=extents)
        flat = dense.reshape(-1, order="F").tolist()
        carried = any(met(one, lambda point, flat=flat: [flat[point]]) for one in statement["candidates"])
        assert carried == isinstance(other, la.Admitted), (consumer, extents, order)
        seen += 1
    assert seen


def test_a_register_of_a_carried_fragment_is_one_of_the_candidates() -> None:
    """Each fragment of the instruction takes the place of f: some candidate has a solution."""
    fragment = mma_fragment("m16n8k16.f32.bf16", "A")
    table = coordinates(fragment)[0]
    sizes = tuple(fragment.out_dims.values())
    assert forced.fragments(table, table[0], sizes, 2) is None
    broken = table.copy()
    broken[:, 5] = broken[:, 6]
    f, candidates = forced.fragments(broken, table[0], sizes, 2)
    assert none_of(f, candidates) is not None
    assert none_of(table.reshape(-1, 2), candidates) is None


@pytest.mark.parametrize("seed", range(12))
def test_combinations_of_equations_against_another_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        unknowns = int(rng.integers(1, 4))
        rows = rng.integers(-3, 4, (int(rng.integers(1, 5)), unknowns + 1)) * rng.choice([1, 1, 2, 4], unknowns + 1)
        state: Any = ([0] * unknowns, np.eye(unknowns, dtype=int).tolist())
        for *row, value in rows.tolist():
            state = None if state is None else _meeting(*state, row, value)
        found = excluded(rows[:, None].astype(np.int64))
        assert (found is not None) == (state is None)
        if found is not None:
            modulus, terms = found
            total = sum(factor * rows[i] for factor, i, _ in terms)
            total = total % modulus if modulus else total
            assert not total[:-1].any()
            assert total[-1]


@pytest.mark.parametrize("seed", range(6))
def test_layouts_without_factors_have_certificates(seed: int) -> None:
    """Random bijections of bits over two warps: carried, or a warp bit is no offset bit."""
    rng = random.Random(seed)
    seen = 0
    for _ in range(8):
        order = [1 << bit for bit in rng.sample(range(9), 9)]
        for _ in range(rng.randint(1, 3)):
            one, other = rng.sample(range(9), 2)
            order[one] ^= order[other]
        bases = {"register": order[:3], "lane": order[3:8], "warp": order[8:]}
        layout = la.LinearLayout.from_bases(
            {name: [(b,) for b in held] for name, held in bases.items()}, {"offset": 512}
        )
        answer = factorise(layout)
        if isinstance(answer, la.Refused):
            assert answer.certificate is not None, answer
            document = answer.certificate.to_json()
            assert checker.check(document)[0] == 0
            assert JUDGES[document["kind"]](document["statement"])[0]
            seen += 1
        elif answer:
            assert checker.check(answer.certificate.to_json())[0] == 0
    assert seen


@pytest.mark.parametrize("seed", range(4))
def test_im2col_plans_visit_what_the_convolution_reads(seed: int) -> None:
    """The equality holds, and a map of another corner or step has none."""
    rng = random.Random(seed)
    spatial = rng.choice((1, 2))
    taps = tuple(rng.choice((1, 2, 3)) for _ in range(spatial))
    tensor = la.Tensor((rng.choice((1, 2)), *(rng.choice((8, 9)) for _ in range(spatial)), 64))
    stride = tuple(rng.choice((1, 2)) for _ in range(spatial))
    padding = tuple(rng.choice((0, 1)) for _ in range(spatial))
    problem = ConvolutionProblem(tensor, taps, 32, 64, stride=stride, padding=padding)
    plan = synthesize_im2col(problem)
    made = convolution(plan)
    assert checker.check(made.to_json())[0] == 0
    f = function(made.statement["f"])[2]
    shape, size = problem.tensor.shape, 2
    for _ in range(60):  # the walk of a convolution, written out once more
        channel, image = rng.randrange(64), rng.randrange(shape[0])
        tap = [rng.randrange(count) for count in taps]
        place = [rng.randrange(count) for count in problem.outputs]
        at = [
            o * step - before + t * gap
            for o, step, before, t, gap in zip(
                place, problem.stride, problem.padding, tap, problem.dilation, strict=True
            )
        ]
        byte = channel
        for x, stride in zip((image, *at), problem.tensor.stride, strict=False):
            byte += x * stride
        i = 0
        digits = [
            (channel, 64),
            *zip(tap[::-1], taps[::-1], strict=True),
            *zip(place[::-1], problem.outputs[::-1], strict=True),
        ]
        for digit, extent in reversed([*digits, (image, shape[0])]):
            i = i * extent + digit
        assert f(i) == [*at[::-1], size * byte]
    moved = replace(plan.tensor_map, lower_corner=tuple(low - 1 for low in plan.tensor_map.lower_corner))
    with pytest.raises(la.LayoutError):
        convolution(replace(plan, tensor_map=moved))


@pytest.mark.nightly(one_of=5)
@pytest.mark.parametrize("swizzle", ["", "Sw<1,3,3> o 0 o ", "Sw<2,3,3> o 0 o ", "Sw<3,3,3> o 0 o "])
@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("consumer", ["wgmma.A", "tcgen05.A"])
def test_operands_that_are_read_have_a_candidate_with_a_solution(swizzle: str, major: str, consumer: str) -> None:
    """The candidates of descriptors do not exclude what descriptors read, and exclude it moved by one element."""
    span = 8 << ("", "1", "2", "3").index(swizzle[3:4])
    rows, deep = 128, 64
    if major == "K":
        text = f"{swizzle}({rows},({span},{deep // span})):({span},(1,{rows * span}))"
    else:
        text = f"{swizzle}(({span},{rows // span}),{deep}):((1,{deep * span}),{span})"
    target, counts = ("sm_90a", (64,)) if consumer.startswith("wgmma") else ("sm_100a", (64, 128))
    assert isinstance(la.admissible(text, consumer, target), la.Admitted)
    modes = forced.modes(2, ("K", "MN"), atoms=target == "sm_100a")
    table = request_of(text, consumer, target, "bf16", (rows, deep), 1024, {}).offsets.copy()
    flat = table.reshape(-1, order="F")
    assert forced.no_descriptors(flat, (rows, deep), 2, 1024, counts, 16, modes) is None
    table[5, 3], table[5, 4] = table[5, 4], table[5, 3]
    made = la.admissible(table, consumer, target).certificate
    assert made is not None
    assert checker.check(made.to_json())[0] == 0
