"""Decide whether a TensorMap carries a tile layout.

A reduction reads shared memory as a store does: it has a store's layouts, with its own element types. If no tensor is
given, the layout is admissible exactly if the tile of *some* tensor can be copied into it: any dimension contiguous in
global memory, any pitches, including 0, negative ones and those at which dimensions fuse. With pitch 0, several tile
elements are copies of one global element, as the copy engine was measured to do; a store, which would write it twice,
is refused. A refusal holds for all tensors and any number of copies: no tiled map without interleave writes the tile,
whole and in bounds, by copies that write nothing else (proof in ``synth.tensormap.pitches``). An admission is a plan
that the checker proved: for a tensor of many tiles if the planner finds one, otherwise for a tensor of one tile, at
pitches from ``synth.tensormap.listed``, which finds some exactly if they exist. If a tensor is given, the planner
decides. Interleaved maps (option ``interleave``) are admitted by proof, refused if some 16-byte chunk rules them out,
otherwise ``Unknown``.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from layoutalg.ground.errors import BudgetError, Cost, MalformedError, Repair, RepresentabilityError
from layoutalg.ground.limits import PROBLEM_RANK, REPAIR_SECONDS
from layoutalg.ground.listed import listed
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap import ListedProblem, TensorMapPlan, TensorMapProblem, meaning
from layoutalg.proofs.tensormap.plan import OOB_CLASSES
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.repairs import ranked
from layoutalg.synth.admission.request import CHECK, Request, certified, no_chunks, no_engine
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap
from layoutalg.synth.tensormap.lattice import FAR, together
from layoutalg.synth.tensormap.least_repairs import least_repairs
from layoutalg.synth.tensormap.listed import carried as carried_by
from layoutalg.synth.tensormap.pitches import Fit, fits
from layoutalg.synth.tensormap.xors import mixed_bit
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

REDUCTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
        "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "inc": ("u32",),
        "dec": ("u32",),
        **dict.fromkeys(("and", "or", "xor"), ("u32", "s32", "u64")),
    }
)
"""Element types of each reduction (PTX ISA 9.1, section 9.7.9.27.1) as measured: a bitwise one of s64 is an illegal
instruction although documents allow any 64-bit type, and sums of f64 are accepted
(``tests/data/measured/forms_dev.json.gz``)."""
DIRECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "tma": "load",
        "tma.load": "load",
        "tma.multicast": "load",
        "tma.store": "store",
        **{f"tma.reduce.{name}": "store" for name in REDUCTIONS},
    }
)
SLICES = ("16B", "32B")
"""Kinds of interleaved maps."""
MOST_FITS = 256
"""Limit on pitch proposals listed."""
TRIED = 6
"""Limit on pitches that the planner tries."""
TRIED_SECONDS = 3.0
"""Planner budget for each of them."""
_PERIOD = 1024


def find_tma(request: Request) -> Admission:
    """Return the TensorMap plan, or why there is none.

    Options: ``tensor``: the tensor that contains the tile; ``issues``: maximum number of copies; ``oob``: weakest
    accepted out-of-bounds class; ``distinct``: whether tile elements must be distinct in global memory;
    ``interleave``: ``"NONE"``, ``"16B"``, ``"32B"`` or ``"any"``, the kinds of map to try.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> admissible("(64,64):(64,1)", "tma").descriptor.tensor_map.box
        (64, 64)
        >>> print(admissible("(64,64):(72,1)", "tma").rules)
        ('SMEM_DENSE',)
    """
    request.only("tensor", "issues", "oob", "interleave", "distinct")
    for name in ("tensor", "oob"):
        if request.problem is not None and request.options.get(name) is not None:
            raise CHECK.malformed(name, "must be None, because the problem states it", request.options[name])
    oob = request.options.get("oob")
    if oob is not None and (oob not in OOB_CLASSES if isinstance(oob, str) else True):
        raise CHECK.malformed("oob", f"must be one of {', '.join(OOB_CLASSES)}", oob)
    if oob is not None and request.options.get("tensor") is None:
        raise CHECK.malformed("oob", "must be given together with tensor, whose bounds it refers to", oob)
    CHECK.choice(request.consumer, "consumer", DIRECTIONS)
    words = request.consumer.split(".")
    if words[1:2] != ["reduce"]:  # multicast: the same boxes to the same offset in every block
        return carried(request, DIRECTIONS[request.consumer])
    kinds = REDUCTIONS[words[2]]
    if request.dtype.name not in kinds:
        text = f"{request.consumer} does not support {request.dtype.name}; only {', '.join(kinds)}"
        return request.refused(Broken("REDUCE_DTYPE", text, {}, conditions.named(request.dtype.name, *kinds)))
    return carried(request, "store")  # the same boxes as a store


def carried(request: Request, direction: str) -> Admission:
    """Return the plan that copies a tile in a direction, or why there is none."""
    if (answer := no_engine(request)) is not None:
        return answer
    most = request.options.get("issues")
    most = None if most is None else CHECK.integer(most, "issues", 1, limits.MAX_SMEM_BYTES)
    if isinstance(request.problem, TensorMapProblem):
        if request.problem.direction != direction:
            raise CHECK.malformed("layout", f"must be a {direction} problem", request.problem.direction)
        return _planned(request, request.problem, most)
    if request.options.get("tensor") is not None:
        return _of_tensor(request, direction, most)
    if _interleave(request) in SLICES:
        return _of_slices(request, direction, most)
    short = request
    if len(request.extents) > PROBLEM_RANK:  # an extent of 1 takes no pitch: what is planned need not name it
        moving = request.offsets.reshape([extent for extent in request.extents if extent > 1] or [1])
        short = replace(request, layout=listed(moving), extents=moving.shape)
    answer = _of_any(short, direction, most)
    if isinstance(answer, Refused) and short is not request:
        answer = _of_any(request, direction, most)  # its witness has the coordinates of the tile that was asked about
    if not isinstance(answer, Refused):
        return answer
    if _interleave(request) == "any":
        return _of_slices(request, direction, most)
    refused = answer.deferred(repairs=lambda: _repairs(request, direction))
    return refused.certified(lambda: no_chunks(request) or _never(request, direction))


def _interleave(request: Request) -> str:
    """Return the option of that name."""
    given = request.options.get("interleave", "NONE")
    known = (*hardware.INTERLEAVES, "any")
    CHECK.choice(given, "interleave", known)
    return str(given)


def _of_slices(request: Request, direction: str, most: int | None) -> Admission:
    """Decide for some tensor and an interleaved map: try pitches far apart, then those that fit plain maps."""
    rank = len(request.extents)
    along = [int(request.offsets[tuple(int(at == dim) for at in range(rank))]) if extent > 1 else 0
             for dim, extent in enumerate(request.extents)]  # fmt: skip
    far = tuple(1 if step == 1 else FAR << 2 * (rank - dim) for dim, step in enumerate(along))
    fitting = [one.strides for one in itertools.islice(_fits(request, None), MOST_FITS) if isinstance(one, Fit)]
    said = ""
    for strides in list(dict.fromkeys([far, *fitting]))[:TRIED]:
        for problem in _problems(request, direction, strides):
            if request.options.get("distinct") and together(problem.global_strides, problem.tile) is not None:
                continue
            try:
                made = synthesize_tensormap(problem, repair=False, interleave=_interleave(request))
            except InadmissibleError as error:
                said = said or str(error.violations[0])
                continue
            if most is None or len(made.issues) <= most:
                answer = _admitted(request, made)
                if isinstance(answer, Admitted):
                    return answer
    return Unknown(f"found no tensor whose tile an interleaved map carries: {said}", ("pitches", "planner"))


def _of_any(request: Request, direction: str, most: int | None) -> Admission:
    """Decide for some tensor."""
    every = _fits(request, most)
    proposed = itertools.islice(every, MOST_FITS)
    outcomes = []
    for outcome in proposed:
        outcomes.append(outcome)
        if isinstance(outcome, Fit) and _apart(outcome):  # the best kind of proposal: try it at once
            answer = _tried(request, direction, outcome.strides, most)
            if answer is not None:
                return answer
            break
    outcomes += proposed
    found = [outcome for outcome in outcomes if isinstance(outcome, Fit)]
    if not found:
        misfit = next(outcome for outcome in outcomes if isinstance(outcome, Broken))
        if most is not None and any(isinstance(one, Fit) for one in _fits(request, None)):
            misfit = Broken("ISSUES", f"no box carries the tile in {most} copies, for any pitches of the tensor")
        elif request.align_bytes < _PERIOD:
            aligned = next((one for one in _fits(request, most, _PERIOD) if isinstance(one, Fit)), None)
            if aligned is not None:
                period = max(hardware.swizzle_period_bytes(aligned.swizzle), limits.SMEM_DESTINATION_ALIGN_BYTES)
                text = f"swizzle {aligned.swizzle} needs a base aligned to {period} bytes; only {request.align_bytes}"
                return request.refused(Broken("SMEM_ALIGN", f"{text} is known"))
        return request.refused(_told(request, misfit))
    ranked = sorted(found, key=lambda fit: (-_far(fit), min(fit.strides, default=0) < 0))
    for strides in [one for one in dict.fromkeys(fit.strides for fit in ranked) if one][:TRIED]:
        answer = _tried(request, direction, strides, most)
        if answer is not None:
            return answer
    rest = (outcome for outcome in every if isinstance(outcome, Fit))
    return _of_one_tile(request, direction, itertools.chain(sorted(found, key=lambda fit: fit.copies), rest))


def _far(fit: Fit) -> int:
    """Number of unconstrained pitches."""
    return sum(stride >= FAR for stride in fit.strides)


def _apart(fit: Fit) -> bool:
    """Whether all pitches but the contiguous dimension's are unconstrained, and none is negative."""
    return bool(fit.strides) and _far(fit) == len(fit.strides) - 1 and min(fit.strides) == 1


def _tried(request: Request, direction: str, strides: tuple[int, ...], most: int | None) -> Admitted | None:
    """Return the admission by a plan for these pitches with at most ``most`` copies, if any."""
    for problem in _problems(request, direction, strides):
        if request.options.get("distinct") and together(problem.global_strides, problem.tile) is not None:
            continue
        try:
            made = synthesize_tensormap(problem, repair=False, seconds=TRIED_SECONDS)
        except (InadmissibleError, BudgetError):  # decided later, by a tensor of one tile
            continue
        if most is None or len(made.issues) <= most:
            answer = _admitted(request, made)
            if isinstance(answer, Admitted):
                return answer
    return None


def _told(request: Request, misfit: Broken) -> Broken:
    """Return why no box fits, naming an XORed offset bit that no swizzle undoes, if there is one."""
    mixed = mixed_bit(request.offsets, request.element_bytes)
    if mixed is None or misfit.rule in ("SMEM_INJECTIVE", "SMEM_CAP", "SMEM_ALIGN", "ISSUES"):
        return misfit
    return Broken(misfit.rule, f"{misfit.reason}; {mixed}", {**misfit.witness, "output_bit": mixed.bit})


def _of_one_tile(request: Request, direction: str, found: Iterable[Fit]) -> Admission:
    """Decide for a tensor of one tile at any pitches that fit a box; ``found`` is not empty."""
    apart = direction == "store" or bool(request.options.get("distinct"))
    open_ = 0
    most = (limits.STRIDE_LIMIT_BYTES - 1) // request.element_bytes
    merged = None
    for fit in found:
        strides = fit.system.solved(request.extents, most, apart=apart)
        if strides is None:
            merged = merged or (fit.system.merged(request.extents) if apart else None)
            continue
        if len(request.extents) > PROBLEM_RANK:
            because = (
                f"tensors of at most {PROBLEM_RANK} dimensions are planned, and the tile has {len(request.extents)}"
            )
            return Unknown(because, ("pitches",))
        made = carried_by(_one_tile(request, direction, strides), fit)
        answer = None if made is None else _admitted(request, made)
        if isinstance(answer, Admitted):
            return answer
        open_ += 1
    if open_:
        because = f"{open_} boxes fit, but none was proved to have a map within the coordinate limits"
        return Unknown(because, ("pitches", "planner"))
    if apart:
        text = "every tensor pitch that TMA could use maps two tile elements to one global address"
        if merged is not None:
            one, other = merged
            text = f"every tensor pitch that TMA could use maps tile elements {one} and {other} to one address"
        shown = {} if merged is None else {"coordinate": merged[0], "other": merged[1]}
        if direction == "store":
            return request.refused(Broken("STORE_OVERLAP", f"{text}; a store would write it twice", shown))
        return request.refused(Broken("PITCH_DISTINCT", f"{text}; distinct elements are required", shown))
    text = "every usable pitch is negative or >= 2^40 bytes"
    return request.refused(Broken("STRIDE_RANGE", text))


def _one_tile(request: Request, direction: str, strides: tuple[int, ...]) -> TensorMapProblem:
    """The problem of a tensor of one tile: as digits if the layout has them, otherwise as a table."""
    tile, dtype = request.extents, str(request.dtype.tensormap)
    base = -sum(min(0, stride) * (extent - 1) for stride, extent in zip(strides, tile, strict=True))
    given: dict[str, Any] = {"arch": request.target, "direction": direction, "base_elem_offset": base}
    tensor = Tensor(tile, strides, dtype, 256)
    try:
        return TensorMapProblem.of(tensor, tile, request.layout, **given)
    except (RepresentabilityError, MalformedError):  # no digits, or none from the tile's base
        return ListedProblem.listed(tensor, tile, request.offsets, **given)


def _fits(request: Request, most: int | None, align_bytes: int | None = None) -> Iterator[Fit | Broken]:
    wide = request.dtype.tensormap in hardware.BIT_PRESERVING_DTYPES
    return fits(
        request.offsets,
        request.element_bytes,
        align_bytes=align_bytes or request.align_bytes,
        most=most,
        row_bytes=limits.MAX_BOX * (8 if wide else request.element_bytes),
    )


def _problems(request: Request, direction: str, strides: tuple[int, ...]) -> Iterator[TensorMapProblem]:
    """Yield problems with these pitches: a tensor of many tiles, of one tile, and with fused dimensions."""
    tile, layout, table = request.extents, request.layout, request.offsets
    for _ in tile:
        touching = [
            (slow, fast)
            for slow, fast in itertools.permutations(range(len(tile)), 2)
            if strides[slow] == strides[fast] * tile[fast] and tile[slow] > 1
        ]
        whole = {fast for _, fast in touching}
        shape = tuple(extent if dim in whole else 8 * extent for dim, extent in enumerate(tile))
        for shown in dict.fromkeys((shape, tile)):
            try:
                base = -sum(min(0, stride) * (extent - 1) for stride, extent in zip(strides, shown, strict=True))
                tensor = Tensor(shown, strides, str(request.dtype.tensormap), 256)
                yield TensorMapProblem.of(
                    tensor, tile, layout, arch=request.target, direction=direction, base_elem_offset=base
                )
            except (RepresentabilityError, MalformedError):  # no digits, or none from the tile's base
                continue
        if not touching:
            return
        slow, fast = touching[0]
        order = [dim for dim in range(len(tile)) if dim not in (slow, fast)]
        table = table.transpose([*order, slow, fast]).reshape(*(tile[dim] for dim in order), -1)
        tile, strides = table.shape, (*(strides[dim] for dim in order), strides[fast])
        layout = listed(table)


def _of_tensor(request: Request, direction: str, most: int | None) -> Admission:
    """Decide for the given tensor."""
    tensor = tensor_of(request.options["tensor"])
    oob = request.options.get("oob")
    given = {} if oob is None else {"oob_required": oob}
    try:
        problem = TensorMapProblem.of(
            tensor, request.extents, request.layout, arch=request.target, direction=direction, **given
        )
    except (RepresentabilityError, MalformedError) as error:  # no digits, or none from the tile's base
        outcomes = list(itertools.islice(_fits(request, most), MOST_FITS))
        if not any(isinstance(outcome, Fit) for outcome in outcomes):
            misfit = next(one for one in outcomes if isinstance(one, Broken))
            if _interleave(request) != "NONE":
                because = f"no plain map carries it, and interleaved maps need a layout made of digits: {misfit}"
                return Unknown(because, ("planner",))
            return request.refused(
                misfit if misfit.witness else replace(misfit, witness=error.diagnostic.witness or {})
            )
        problem = ListedProblem.listed(
            tensor, request.extents, request.offsets, arch=request.target, direction=direction, **given
        )
    return _planned(request, problem, most)


def _planned(request: Request, problem: TensorMapProblem, most: int | None) -> Admission:
    """Ask the planner."""
    interleave = _interleave(request)
    try:
        made = synthesize_tensormap(problem, repair=False, interleave=interleave)
    except InadmissibleError as error:
        if interleave != "NONE" and _evidence(problem) is None:
            return Unknown(f"found no interleaved map: {error.violations[0]}", ("planner",))
        refused = request.refused(
            *(Broken(one.rule, one.message) for one in error.violations), repairs=lambda: _of_problem(request, problem)
        )
        return refused.certified(lambda: _evidence(problem)) if interleave == "NONE" else refused
    if made.smem_align_bytes > request.align_bytes and not any(isinstance(one, Fit) for one in _fits(request, most)):
        text = f"the tile needs a base aligned to {made.smem_align_bytes} bytes, got {request.align_bytes}"
        return request.refused(Broken("SMEM_ALIGN", text))
    if most is not None and len(made.issues) > most:
        return Unknown(f"the best plan found has {len(made.issues)} copies, more than {most}", ("planner",))
    return _admitted(request, made)


def _sliced(problem: TensorMapProblem) -> Iterator[Repair]:
    """Yield the first kind of interleaved map with a proved plan, where no plain map has one."""
    for kind in SLICES:
        try:
            made = synthesize_tensormap(problem, repair=False, interleave=kind)
        except (InadmissibleError, BudgetError):
            continue
        detail, many = f"interleave={kind!r} carries it in {len(made.issues)} issues", len(made.issues)
        yield Repair("take an interleaved map", detail, None, Cost(0, many, 1))
        return


def _admitted(request: Request, made: TensorMapPlan) -> Admission:
    """Admit by a plan, unless it needs a stricter alignment of the shared base than the request has."""
    if made.smem_align_bytes > request.align_bytes:
        because = f"the plan found needs a base aligned to {made.smem_align_bytes} bytes, got {request.align_bytes}"
        return Unknown(because, ("planner",))
    if made.tensor_map.interleave != "NONE":
        return _admitted_slices(request, made)
    return certified(request, made, lambda: certify.plan(made))


def _admitted_slices(request: Request, made: TensorMapPlan) -> Admission:
    """Admit by an equality certificate: the checker has no certificate kind for interleaved maps."""
    size = made.problem.element_bytes
    claim = f"{len(made.issues)} copies of slices place the tile as requested"
    seal = certify.same_tables(meaning.table(made), made.problem.addresses() // size, claim)
    return request.admitted(made, seal, "measured")


def _repairs(request: Request, direction: str) -> tuple[Repair, ...]:
    """Return planned and proved repairs, cheapest first, each with its problem."""

    def stated(answer: Admitted) -> Mapping[str, object] | None:
        problem = answer.descriptor.problem
        return None if isinstance(problem, ListedProblem) else problem.to_json()

    return ranked(request, lambda part: carried(part, direction), stated=stated, own=[_more_copies])


def _more_copies(request: Request) -> Iterator[Idea]:
    if "issues" in request.options:
        options = {name: value for name, value in request.options.items() if name != "issues"}
        yield Idea("allow more copies", "no limit on issues", 0, 1, (replace(request, options=options),))


def _never(request: Request, direction: str) -> Certificate | None:
    """Return a certificate that no map carries the tile of a row-major tensor, if one was found."""
    rank = len(request.extents)
    strides = tuple(1 if dim == rank - 1 else FAR << 2 * (rank - dim) for dim in range(rank))
    tensor = Tensor(tuple(8 * extent for extent in request.extents), strides, str(request.dtype.tensormap))
    try:
        problem = TensorMapProblem.of(tensor, request.extents, request.layout, arch=request.target, direction=direction)
    except (RepresentabilityError, MalformedError):
        return None
    return _evidence(problem)


def _of_problem(request: Request, problem: TensorMapProblem) -> tuple[Repair, ...]:
    """Return the repairs of a problem, cheapest first: of its tensor, tile or requirements."""
    found = []
    with contextlib.suppress(BudgetError):
        if not isinstance(problem, ListedProblem):
            for repair in least_repairs(problem, seconds=REPAIR_SECONDS):
                _, added, issues, _, changes = repair.cost
                detail = "; ".join(f"{name}: {before} -> {after}" for name, before, after in repair.changes)
                found.append(Repair(repair.name, detail, repair.plan.problem.to_json(), Cost(added, issues, changes)))
        found += _sliced(problem) if _interleave(request) == "NONE" else ()
    return tuple(sorted(found, key=lambda repair: (repair.cost, repair.name)))


def _evidence(problem: TensorMapProblem) -> Certificate | None:
    try:
        return certify.no_plan(problem)
    except BudgetError:
        return None
