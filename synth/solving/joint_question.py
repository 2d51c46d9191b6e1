"""Read the arguments of ``joint``, and the space of layouts that it compares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from layoutalg.f2 import LinearLayout
from layoutalg.proofs.dtypes import ElementType, element_type
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.synth.solving.accesses import CHECK, Access, accesses
from layoutalg.synth.solving.orders import Case, Cost, Question, operand_rules
from layoutalg.synth.solving.space import Box, Xor, matrix_of, spreading
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import PLAIN, XORS
from layoutalg.targets.nvidia.tensormap import limits

COPIES = ("tma", "tma.store")
PITCH = 1 << 14
"""Global pitch of the non-contiguous tile dimension, in elements, if no tensor is given."""


@dataclass(frozen=True)
class Asked:
    """The arguments of ``joint``, checked."""

    tensor: Tensor
    tile: tuple[int, ...]
    places: tuple[int, int]
    box: Box
    dtype: ElementType
    target: str
    copies: tuple[str, ...]
    operands: tuple[str, ...]
    moves: tuple[tuple[str, dict[int, Access | str]], ...]
    names: tuple[str, ...]
    options: dict[str, Any]


def read(
    tile: Sequence[int], dtype: object, consumers: Sequence[object], target: str, tensor: object, fill: str,
    options: dict[str, Any],
) -> Asked:  # fmt: skip
    kind = element_type(dtype)
    extents = CHECK.vector(tile, "tile")
    first, second = matrix_of(CHECK, extents)
    size = kind.bits // 8
    if kind.bits % 8 or size & (size - 1) or not 1 <= size <= 16:
        raise CHECK.malformed("dtype", "must have 1, 2, 4, 8 or 16 bytes", dtype)
    box = Box((extents[first], extents[second]), size)
    if box.bytes > limits.MAX_SMEM_BYTES:
        rule = f"must fit a block's {limits.MAX_SMEM_BYTES} bytes of shared memory"
        raise CHECK.malformed("tile", rule, f"{box.bytes} bytes")
    CHECK.choice(fill, "fill", ("tma", "threads"))
    if isinstance(consumers, str) or not isinstance(consumers, Sequence) or not consumers:
        raise CHECK.malformed("consumers", "must be a list of at least one consumer", consumers)
    CHECK.choice(target, "target", hardware.ARCHITECTURES)
    copies = ["tma"] if fill == "tma" or "tma" in consumers else []
    operands, moves = [], []
    for each in consumers:
        name, registers = (each[0], each[1]) if isinstance(each, tuple | list) and len(each) == 2 else (each, None)
        if not isinstance(name, str) or (registers is not None and not isinstance(registers, LinearLayout)):
            rule = "must be instruction names, or pairs (name, linear register layout)"
            raise CHECK.malformed("consumers", rule, each)
        if name in COPIES:
            copies += [name] if name not in copies else []
        elif name in ("wgmma.A", "wgmma.B"):
            operands.append(name)
        else:
            moves.append((name, accesses(name, box, registers)))
    if tensor is None:
        strides = tuple(1 if place == second else PITCH << 2 * place for place in range(len(extents)))
        source = (
            Tensor(tuple(8 * extent for extent in extents), strides, kind.tensormap or kind.name)
            if copies
            else (Tensor(extents, None, "u8"))
        )
    else:
        source = tensor_of(tensor)
        if len(source.shape) != len(extents):
            raise CHECK.malformed("tensor", f"must have the {len(extents)} dimensions of the tile", len(source.shape))
    names = (*copies, *operands, *(name for name, _ in moves))
    return Asked(
        source,
        extents,
        (first, second),
        box,
        kind,
        target,
        tuple(copies),
        tuple(operands),
        tuple(moves),
        names,
        options,
    )


def swizzles(asked: Asked) -> Iterator[tuple[str, Xor]]:
    """Yield the swizzles of the space, widest first."""
    for name in reversed(tuple(XORS)):
        bits, base, shift = XORS[name]
        exists = sum(asked.box.bits) + asked.box.low > base + shift
        if hardware.swizzle_supported(name, asked.target) and (exists or not bits):
            yield name, XORS[name]
    if not asked.copies and not asked.operands:
        for inner in (0, 1):
            for xor in spreading(asked.box.extents[inner] * asked.box.element_bytes, asked.box.element_bytes):
                if xor not in XORS.values() and xor[2] >= xor[0]:
                    yield f"Sw<{','.join(map(str, xor))},byte>", xor


def questions(asked: Asked, reasons: dict[str, str]) -> Iterator[Question]:
    """Yield the feasible part of the space for each direction of the chunks."""
    for inner in (1, 0):
        side = ("columns", "rows")[inner]
        if not asked.box.has(inner):
            because = f"{asked.box.extents[inner]} elements do not divide into chunks of 16 bytes"
            reasons[f"chunks along {side}"] = because
            continue
        held = [(name, by[inner]) for name, by in asked.moves]
        wrong = next(((name, found) for name, found in held if isinstance(found, str)), None)
        if asked.copies and asked.tensor.strides[asked.places[inner]] != 1:
            wrong = asked.copies[0], "the inner dimension of a tensor map must have stride 1"
        if wrong is not None:
            reasons[f"{wrong[0]}, chunks along {side}"] = wrong[1]
            continue
        found = [access for _, access in held if isinstance(access, Access)]
        cases = []
        for name, xor in swizzles(asked):
            case = _case(asked, inner, name, xor, found)
            if isinstance(case, Case):
                cases.append(case)
            else:
                reasons.setdefault(case[0], f"{case[1]} ({name})")
        counted = tuple(access for access in found if access.terms is not None)
        fixed = sum(access.least for access in found if access.terms is None)
        strides = asked.tensor.strides[asked.places[0]], asked.tensor.strides[asked.places[1]]
        yield Question(asked.box, inner, tuple(cases), counted, fixed, len(asked.copies), strides)


def _case(asked: Asked, inner: int, name: str, xor: Xor, found: list[Access]) -> Case | tuple[str, str]:
    """Return the conditions of all consumers under one swizzle, or the consumer that rules it out and why."""
    bits, base, _ = xor
    for access in found:
        if bits and access.vector > 1 and access.bits // 8 > 1 << base:
            return access.name, f"the swizzle splits its {access.bits // 8}-byte vectors"
    span = bits + base if bits else 0
    at: dict[Any, int] = {}
    after: list[Any] = []
    for operand in asked.operands:
        if name not in PLAIN:
            return operand, "wgmma does not support this swizzle"
        rules = operand_rules(operand[-1], asked.box, inner, span)
        if isinstance(rules, str):
            return operand, rules
        clash = next((digit for digit, place in rules[0].items() if at.get(digit, place) != place), None)
        at |= rules[0]
        if clash is not None or len(set(at.values())) < len(at):
            return operand, "another operand needs the same digits elsewhere"
        after += [pair for pair in rules[1] if pair not in after]
    top = sum(asked.box.bits) + asked.box.low
    if any(place >= top for place in at.values()):
        return asked.operands[0], "the tile is smaller than 8 rows of the swizzle's span"
    return Case(name, xor, at, tuple(after))


def bound_of(asked: Asked) -> Cost:
    """Return a lower bound (issues, turns) for any layout."""
    least = 0
    for _, by in asked.moves:
        least += min((access.least for access in by.values() if isinstance(access, Access)), default=0)
    return len(asked.copies), least


def space_of(asked: Asked) -> str:
    free = sum(asked.box.bits) - asked.box.chunk
    many = sum(math.factorial(free) for inner in (0, 1) if asked.box.has(inner)) * len(list(swizzles(asked)))
    return f"{many} orders of {free} digits and swizzles"
