"""Decide whether im2col copies carry a tile layout of a convolution's matrix.

The layout maps (pixel, channel), a row of the matrix and a channel of one tap, to element offsets. It is admissible
exactly if it is a grid of columns (``synth.im2col.columns`` tries all) that some im2col map of the convolution covers.
If no convolution is given, one that has a map for every grid is used: an input with exactly the tile's channels and a
3x3 filter. Refusals are about columns that write no byte twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from layoutalg.cute import Swizzle
from layoutalg.ground.errors import Repair
from layoutalg.ground.refusal import Broken
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Refused
from layoutalg.proofs.im2col import ConvolutionPlan, ConvolutionProblem
from layoutalg.proofs.im2col.meaning import table
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.synth.admission.request import CHECK, Request, certified, no_engine
from layoutalg.synth.im2col import map_of, proved_plan
from layoutalg.synth.im2col.columns import Cut, columns, most_channels
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.im2col import Im2colMap, store_violations
from layoutalg.targets.nvidia.swizzles import PLAIN, SWIZZLE_TABLE, XORS
from layoutalg.targets.nvidia.tensormap import apply_swizzle, element_bytes
from layoutalg.targets.nvidia.tensormap.limits import STORE_CHUNK_BYTES

CONSUMERS = ("tma.im2col", "tma.im2col.load", "tma.im2col.store")
_CONVOLUTION = ("filter", "stride", "dilation", "padding", "padding_after")
_PERIOD = 1024
_ALIGNED = Repair("align the base", f"align the tile's base to {_PERIOD} bytes: align_bytes={_PERIOD}")


def find_im2col(request: Request) -> Admission:
    """Return the im2col plan, or why there is none.

    Options: ``tensor``: the input (N, W, C), (N, H, W, C) or (N, D, H, W, C); and with it ``filter``, ``stride``,
    ``dilation``, ``padding``, ``padding_after``: one number per spatial dimension.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> found = admissible("Sw<3,3,3> o 0 o (128,64):(64,1)", "tma.im2col", tensor=((8, 56, 56, 128), None, "bf16"),
        ...                    filter=(3, 3), padding=(1, 1))
        >>> found.descriptor.tensor_map.lower_corner, len(found.descriptor.issues)
        ((-1, -1), 1)
        >>> print(admissible("(128,64):(72,1)", "tma.im2col").rules)
        ('SWIZZLE_PITCH',)
    """
    request.only("tensor", *_CONVOLUTION)
    CHECK.choice(request.consumer, "consumer", CONSUMERS)
    if len(request.extents) != 2:
        raise CHECK.malformed("layout", "must map (pixel, channel)", request.extents)
    request.without_problem("use consumer 'tma' for boxes")
    if (answer := no_engine(request)) is not None:
        return answer
    problem = _problem(request)
    cuts = columns(request.offsets, request.element_bytes, request.align_bytes)
    if isinstance(cuts, Broken):
        aligned = (_ALIGNED,) if cuts.rule == "SMEM_ALIGN" and request.align_bytes < _PERIOD else ()
        return request.refused(cuts, repairs=lambda: (*aligned, *_dense(request, problem)))
    plan = _planned(problem, cuts, _stores(request))
    return _admitted(request, plan) if isinstance(plan, ConvolutionPlan) else _broken(request, problem, cuts, plan)


def _stores(request: Request) -> bool:
    return request.consumer.endswith(".store")


def _problem(request: Request) -> ConvolutionProblem:
    """Return the given convolution, or one that has a map for every grid of columns."""
    pixels, channels = request.extents
    options: dict[str, Any] = {name: request.options[name] for name in _CONVOLUTION if name in request.options}
    if "tensor" not in request.options:
        if options:
            raise CHECK.malformed("tensor", f"must be given with {', '.join(options)}", None)
        grain = 16 // request.element_bytes
        shape = (pixels // 64 + 1, 8, 8, -(-channels // grain) * grain)
        options = {"filter": (1, 1)} if _stores(request) else {"filter": (3, 3), "padding": (1, 1)}
        return ConvolutionProblem(
            Tensor(shape, None, str(request.dtype.tensormap), 256), pixels=pixels, channels=channels,
            target=request.target, **options,
        )  # fmt: skip
    tensor = tensor_of(request.options["tensor"])
    if tensor.dtype != request.dtype.tensormap:
        raise CHECK.malformed("tensor", f"must have elements of {request.dtype.tensormap}", tensor.dtype)
    spatial = len(tensor.shape) - 2
    for name, values in options.items():
        options[name] = CHECK.vector(values, name)
    options.setdefault("filter", (1,) * spatial)
    return ConvolutionProblem(tensor, pixels=pixels, channels=channels, target=request.target, **options)


def _planned(problem: ConvolutionProblem, cuts: list[Cut], store: bool) -> ConvolutionPlan | tuple[Violation, ...]:
    """Return the plan of the first grid that has a map, or the shortest list of violations."""
    least: tuple[Violation, ...] = ()
    for column, issues in cuts:
        tm = map_of(problem, column)
        plan = (tuple(_of_stores(problem, tm)) if store else ()) or proved_plan(problem, tm, issues)
        if isinstance(plan, ConvolutionPlan):
            return plan
        least = least if least and len(least) <= len(plan) else plan
    return least


def _of_stores(problem: ConvolutionProblem, tm: Im2colMap) -> Iterator[Violation]:
    """Yield the reasons why a store would not write exactly the tile's elements."""
    yield from store_violations(tm, ())
    if max(problem.filter) > 1:
        yield Violation("IM2COL_OFFSET", f"stores have no tap offsets; the filter is {problem.filter}", "filter")
    inner = tm.dims[0] * element_bytes(tm.dtype)
    if inner % STORE_CHUNK_BYTES:
        text = f"a pixel has {inner} bytes; a store writes whole {STORE_CHUNK_BYTES}-byte chunks, past its channels"
        yield Violation("STORE_CHUNK", text, "dims", 0)


def _admitted(request: Request, plan: ConvolutionPlan) -> Admission:
    claim = f"{len(plan.issues)} im2col copies place the tile as requested"
    return certified(request, plan, lambda: certify.same_tables(table(plan), request.offsets, claim))


def _broken(request: Request, problem: ConvolutionProblem, cuts: list[Cut], found: tuple[Violation, ...]) -> Refused:
    """Return the rules that rule out every map of these columns."""
    broken = (Broken(one.rule, one.message) for one in found)
    return request.refused(*broken, repairs=lambda: tuple(_of_convolution(problem, cuts, _stores(request))))


def _of_convolution(problem: ConvolutionProblem, cuts: list[Cut], store: bool) -> Iterator[Repair]:
    """Yield changes of the tensor that make the tile plannable."""
    size = 16 // element_bytes(problem.tensor.dtype)
    *outer, channels = problem.tensor.shape
    strides = [1]
    for extent in reversed((*outer[1:], -(-channels // size) * size)):
        strides.insert(0, strides[0] * extent)
    other = replace(problem, tensor=Tensor(problem.tensor.shape, tuple(strides), problem.tensor.dtype, 256))
    if other.tensor.strides != problem.tensor.strides and isinstance(_planned(other, cuts, store), ConvolutionPlan):
        yield Repair("store the tensor by rows", f"contiguous channels, strides {tuple(strides)}")


def _dense(request: Request, problem: ConvolutionProblem) -> Iterator[Repair]:
    """Yield the tile stored in rows of the widest swizzle span they fill, if the convolution has a map for it."""
    pixels, channels = request.extents
    size = request.element_bytes
    for swizzle in reversed(PLAIN):
        bits = XORS[swizzle][0]
        width = SWIZZLE_TABLE[swizzle].span_bytes // size if bits else min(channels, most_channels(swizzle, size))
        if channels % width:
            continue
        k, p = np.arange(channels), np.arange(pixels)[:, None]
        linear = (p * width + k % width + k // width * width * pixels) * size
        cuts = columns(apply_swizzle(swizzle, linear) // size, size, request.align_bytes)
        if isinstance(cuts, list) and isinstance(_planned(problem, cuts, _stores(request)), ConvolutionPlan):
            form = f"({pixels},({width},{channels // width})):({width},(1,{width * pixels}))"
            if channels == width:
                form = f"({pixels},{width}):({width},1)"
            behind = f"{Swizzle(bits, 4, 3, 'byte').recast_elements(size)} o 0 o " if bits else ""
            yield Repair("store the tile by rows", f"{behind}{form}")
            return
