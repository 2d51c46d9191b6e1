"""Strategies for tensors, shared tiles, problems, plans and descriptors."""

from __future__ import annotations

import random
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.ground.errors import InfeasibleError
from layoutalg.proofs.smem import SharedTile, shared_tile
from layoutalg.proofs.tensor import Tensor, row_major
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.swizzle import XORS
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.synth.tensormap.planner import synthesize_tensormap
from layoutalg.synth.wgmma.operand import canonical_operand
from layoutalg.synth.wgmma.plan import synthesize_wgmma
from layoutalg.targets.nvidia import tensormap as copy
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.testing.problems import DTYPES, random_problem
from layoutalg.testing.strategies.arguments import checked, several

OPERANDS = ("A", "B")


@checked(max_rank=(1, 5))
@st.composite
def tensors(draw: st.DrawFn, *, max_rank: int = 3, max_extent: int = 64) -> Tensor:
    """Tensors in global memory, row-major, some with padded rows.

    Args:
        max_rank: Most dimensions.
        max_extent: Largest extent.
    """
    dims = draw(st.lists(st.tuples(st.integers(1, max_extent), st.integers(0, 8)), min_size=1, max_size=max_rank))
    shape = tuple([extent for extent, _ in dims])
    stride = list(row_major(tuple([extent + pad for extent, pad in dims])))
    return Tensor(shape, tuple(stride), draw(st.sampled_from(DTYPES)))


@checked(max_rank=(1, 5))
def shared_tiles(*, max_rank: int = 2, swizzles: Sequence[str] = tuple(XORS)) -> st.SearchStrategy[SharedTile]:
    """Tiles in shared memory: dense or padded rows with a swizzle, at a small offset.

    Args:
        max_rank: Most dimensions.
        swizzles: Names of the swizzles to draw from.
    """
    return _shared_tiles(max_rank, several(swizzles, "swizzles", tuple(XORS)))


@st.composite
def _shared_tiles(draw: st.DrawFn, max_rank: int, swizzles: tuple[str, ...]) -> SharedTile:
    dim = st.tuples(st.sampled_from((1, 2, 3, 4, 8, 16)), st.sampled_from((0, 8, 1)))
    dims = draw(st.lists(dim, min_size=1, max_size=max_rank))
    stride = row_major(tuple([extent + pad for extent, pad in dims]))
    layout = CuteLayout(tuple([extent for extent, _ in dims]), stride)
    plain = shared_tile(layout, tuple([extent for extent, _ in dims]), 2)
    return SharedTile(plain.modes, draw(st.sampled_from(swizzles)), 8 * draw(st.integers(0, 4)))


class _Drawn(random.Random):
    """A random source driven by Hypothesis; shrinks to first choices and to no rare features."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__(0)
        self._draw = draw

    def choice(self, seq: Any) -> Any:
        return self._draw(st.sampled_from(list(seq)))

    def random(self) -> float:
        return 0.995 - self._draw(st.integers(0, 99)) / 100

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self._draw(st.sampled_from(range(start) if stop is None else range(start, stop, step)))

    def shuffle(self, x: MutableSequence[Any]) -> None:
        x[:] = self._draw(st.permutations(list(x)))


@checked(max_rank=(1, 6), direction=("load", "store"))
@st.composite
def tensormap_problems(draw: st.DrawFn, *, max_rank: int = 6, direction: str | None = None) -> dict[str, object]:
    """TensorMap problem documents near the legal boundaries; about half are admissible.

    Args:
        max_rank: Most dimensions of the tensor.
        direction: ``"load"`` or ``"store"``; None for either.
    """
    found = random_problem(_Drawn(draw), max_rank)
    return found if direction is None else found | {"direction": direction}


def tensormap_plans() -> st.SearchStrategy[TensorMapPlan]:
    """Plans of TensorMap problems, with their certificates."""
    return _planned(tensormap_problems(), lambda document: synthesize_tensormap(document, repair=False))


def operand_plans() -> st.SearchStrategy[OperandPlan]:
    """Plans of operand problems, with their certificates."""
    return _planned(operand_problems(), lambda problem: synthesize_wgmma(problem, repair=False))


@st.composite
def _planned(draw: st.DrawFn, problems: st.SearchStrategy[Any], plan: Callable[[Any], Any]) -> Any:
    try:
        return plan(draw(problems))
    except InfeasibleError:
        reject()


@checked(operand=OPERANDS)
@st.composite
def operand_problems(draw: st.DrawFn, *, operand: str | None = None) -> OperandProblem:
    """``wgmma`` operand problems: canonical tiles, and rows of any pitch; many are inadmissible.

    Args:
        operand: ``"A"`` or ``"B"``; None for either.
    """
    operand = draw(st.sampled_from(OPERANDS)) if operand is None else operand
    step = wgmma.INSTRUCTION_M if operand == "A" else 8
    dtype = draw(st.sampled_from(wgmma.DTYPES))
    kind = wgmma.multiply(dtype)
    shape = step * draw(st.integers(1, 4)), kind.k * draw(st.integers(1, 4))
    swizzle = draw(st.sampled_from(wgmma.SWIZZLES))
    major = draw(st.sampled_from(wgmma.MAJORS))
    major = major if kind.transposable else "K"
    along = shape[1] if major == "K" else shape[0]
    if along * kind.bits % (8 * SWIZZLE_TABLE[swizzle].span_bytes) == 0 and draw(st.booleans()):
        return canonical_operand(operand, shape, major=major, swizzle=swizzle, dtype=dtype)
    pitch = along + draw(st.sampled_from((0, 8, 1, 64)))
    rows = (((shape[0], pitch),), ((shape[1], 1),)) if major == "K" else (((shape[0], 1),), ((shape[1], pitch),))
    return OperandProblem(operand, shape, rows, swizzle, dtype, 16 * draw(st.integers(0, 4)))


@checked(max_rank=(1, 5))
@st.composite
def tensor_maps(draw: st.DrawFn, *, max_rank: int = 5) -> copy.TensorMap:
    """TensorMaps; most obey the hardware rules.

    Args:
        max_rank: Most dimensions.
    """
    dtype = draw(st.sampled_from(DTYPES))
    size = copy.element_bytes(dtype)
    axes = draw(st.lists(st.tuples(st.integers(1, 512), st.integers(1, 64)), min_size=1, max_size=max_rank))
    dims, strides, reach = [extent for extent, _ in axes], [], size
    for extent in dims[:-1]:
        reach = -(-reach * extent // 16) * 16
        strides.append(reach)
    box = [16 // size * draw(st.integers(1, 4)), *[min(extent, wanted) for extent, wanted in axes[1:]]]
    return copy.TensorMap(
        dtype,
        tuple(dims),
        tuple(strides),
        tuple(box),
        swizzle=draw(st.sampled_from(wgmma.SWIZZLES)),
        oob_fill=draw(st.sampled_from(("ZERO", "NAN"))),
        base_address=16 * draw(st.integers(0, 1 << 20)),
    )


def matrix_descriptors() -> st.SearchStrategy[wgmma.MatrixDescriptor]:
    """Matrix descriptors of ``wgmma``: every field over all its bits."""
    address = st.integers(0, wgmma.ADDRESS_LIMIT_BYTES // wgmma.UNIT_BYTES - 1).map(lambda units: 16 * units)
    return st.builds(
        wgmma.MatrixDescriptor, address, address, address, st.integers(0, 7), st.sampled_from(wgmma.SWIZZLES)
    )
