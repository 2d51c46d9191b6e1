"""Choose sample sizes of a symbolic problem without accidental relations.

Plans at a few such sizes suggest the form of the map; its validity elsewhere is proved, never inferred. Sizes are odd
multiples of a grain, with primes that differ between names and turns, so that a polynomial that agrees at all turns is
almost always the right one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import divisible
from layoutalg.ground.errors import LayoutError, MalformedError
from layoutalg.ground.facts import completed, facts_of
from layoutalg.ground.polynomial import Polynomial, names_of, value_at
from layoutalg.proofs.symbolic.plan import evaluated
from layoutalg.proofs.symbolic.problem import SymbolicProblem

PRIMES = (
    (3, 5, 7, 11, 13, 17, 19, 23),
    (29, 13, 31, 19, 23, 41, 37, 43),
    (17, 37, 11, 43, 59, 29, 61, 53),
)
"""Odd multiples of the grain, by turn and place; no small affine relation between columns."""
MOST_GRAIN = 512


def tile_grains(problem: SymbolicProblem) -> dict[str, int]:
    """Return, per name, a grain that makes the tensor whole tiles."""
    pattern = problem.pattern
    grains = dict.fromkeys(problem.names, 1)
    chunk = max(1, 16 // pattern.element_bytes)
    for place, (_, high) in enumerate(problem.bounds):
        reach = pattern.tile[place] * pattern.element_strides[place]
        for name in names_of(evaluated((high, problem.tensor.shape[place]))):
            grains[name] = math.lcm(grains[name], min(reach, MOST_GRAIN) if reach > 1 else 1)
    for stride in evaluated(problem.tensor.strides):
        for name in stride.names:
            grains[name] = math.lcm(grains[name], chunk)
    return grains


def wished(problem: SymbolicProblem) -> Assumptions:
    """Return the assumptions, extended by pitches being whole chunks unless they exclude it."""
    known = problem.assumptions
    chunk = max(1, 16 // problem.pattern.element_bytes)
    inner = [top for top, tile in zip(_highs(problem), problem.pattern.tile, strict=True) if tile > 1][-1:]
    for value in (*evaluated(problem.tensor.strides), *inner):
        if value.names:
            with suppress(MalformedError):
                known = known.extended([divisible(value, chunk)])
    return known


def sample(
    problem: SymbolicProblem, grains: Mapping[str, int], turn: int, known: Assumptions | None = None
) -> dict[str, int] | None:
    """Return sizes that meet what is known, odd multiples of the grains if possible; None if none is found.

    Example:
        >>> from layoutalg.proofs.tensor import Tensor
        >>> problem = SymbolicProblem.of(Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64))
        >>> sample(problem, {"M": 1, "K": 64}, 0)
        {'K': 192, 'M': 5}
    """
    known = problem.assumptions if known is None else known
    names = frozenset(problem.names) | known.names  # some may occur only in the assumptions
    facts = facts_of(known, names)
    sizes: dict[str, int] = {}
    steps: dict[str, int] = {}
    free = [name for name in names if name not in facts.solved]
    inner = names_of(evaluated([high for _, high in problem.bounds])) | names_of(evaluated(problem.tensor.shape))
    for place, name in enumerate(sorted(free, key=lambda name: (name not in inner, -_depth(problem, name), name))):
        modulus, rest = facts.residue.get(name, (1, 0))
        grain = grains.get(name, 1)
        while rest % math.gcd(grain, modulus):
            grain = grain // 2 if grain % 2 == 0 else 1
        whole = math.lcm(grain, modulus)
        start = next(rest + modulus * k for k in range(whole // modulus) if (rest + modulus * k) % grain == 0)
        least = max(facts.low.get(name, 1), 1 if name in inner else _reach(problem, name, sizes))
        prime = PRIMES[turn][place % len(PRIMES[turn])]
        value = start + whole * prime
        if value < least:
            value += 2 * -(-least // (2 * whole)) * whole
        high = facts.high.get(name)
        if high is not None and value > high:
            value = start + (high - start) // whole * whole - whole * turn
        if value < max(1, facts.low.get(name, 1)):
            return None
        sizes[name] = value
        steps[name] = whole
    _contain(problem, sizes, steps)
    filled = completed(facts, sizes)
    if filled is None or known.broken_at(filled) is not None:
        return None
    try:
        problem.at(filled)
    except LayoutError:
        return None
    return {name: filled[name] for name in problem.names}


def _highs(problem: SymbolicProblem) -> tuple[Polynomial, ...]:
    return evaluated([high for _, high in problem.bounds])


def _contain(problem: SymbolicProblem, sizes: dict[str, int], steps: Mapping[str, int]) -> None:
    """Enlarge extents that are smaller than the bounds."""
    shape, highs = evaluated(problem.tensor.shape), evaluated([high for _, high in problem.bounds])
    for extent, high in zip(shape, highs, strict=True):
        longer = sorted(extent.names - high.names)
        if not longer or not extent.names | high.names <= sizes.keys():
            continue
        missing = value_at(high, sizes) - value_at(extent, sizes)
        if missing > 0:
            step = steps[longer[0]]
            sizes[longer[0]] += 2 * -(-int(missing) // (2 * step)) * step


def _depth(problem: SymbolicProblem, name: str) -> int:
    """The innermost dimension whose stride contains the name."""
    strides = evaluated(problem.tensor.strides)
    return max((place for place, stride in enumerate(strides) if name in stride.names), default=0)


def _reach(problem: SymbolicProblem, name: str, sizes: Mapping[str, int]) -> int:
    """Span of the dimensions with smaller known strides; a larger pitch avoids overlap."""
    reach = 1
    shape, strides = evaluated(problem.tensor.shape), evaluated(problem.tensor.strides)
    for place in range(len(shape) - 1, -1, -1):
        if name in strides[place].names:
            return reach
        if strides[place].names <= sizes.keys() and shape[place].names <= sizes.keys():
            extent, stride = value_at(shape[place], sizes), value_at(strides[place], sizes)
            reach = max(reach, int(extent * abs(stride)))
    return reach
