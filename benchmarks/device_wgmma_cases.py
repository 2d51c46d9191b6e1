"""Cases of chains of ``wgmma``: images, descriptors, registers and metadata, and launching them.

Notation: ``positions[m, j]`` of sparse A is where in its row the stored element j of row m belongs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from device import Launch, compile_text, cuda
from instruments import fragments
from instruments.wgmma_chain import Shape, chain_kernel, variants

from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

ROW_BYTES = 128
"""Bytes along K of the tile of B in shared memory."""


@dataclass
class Case:
    """The arguments of one launch of a chain kernel."""

    image: np.ndarray
    image_bytes: int
    image_stride: int
    steps: int
    a_words: np.ndarray
    b_words: np.ndarray
    a_registers: np.ndarray
    metadata: np.ndarray
    variant: np.ndarray

    @property
    def blocks(self) -> int:
        return len(self.variant)


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the raw elements of integers that a type holds exactly; one number per bit of ``b1``."""
    kind = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}[wgmma.OPERAND_BITS[dtype]]
    return fragments.encode(np.asarray(values), dtype).astype(kind)


def to_bytes(raw: np.ndarray, dtype: str) -> np.ndarray:
    """Return raw elements, lying one after another, as bytes."""
    if dtype == "b1":
        return np.packbits(raw.astype(np.uint8), axis=-1, bitorder="little")
    return np.ascontiguousarray(raw).view(np.uint8)


def from_bytes(data: np.ndarray, dtype: str) -> np.ndarray:
    """Return bytes as raw elements: the inverse of ``to_bytes``."""
    if dtype == "b1":
        return np.unpackbits(data, axis=-1, bitorder="little")
    return np.ascontiguousarray(data).view({8: np.uint8, 16: np.uint16, 32: np.uint32}[wgmma.OPERAND_BITS[dtype]])


def places(descriptor: wgmma.MatrixDescriptor, rows: int, k: int, bits: int, major: str) -> np.ndarray:
    """Return which element of shared memory is read at each (row, k)."""
    address = wgmma.operand_offsets(descriptor, rows=rows, k=k, element_bits=bits, major=major)
    return address * 8 // bits + (np.arange(k) % 8 if bits == 1 else 0)


def tile(
    rows: int, k_bytes: int, step_bytes: int, major: str, swizzle: str, start: int
) -> tuple[list[wgmma.MatrixDescriptor], int]:
    """Return the descriptor of each K step of a canonical tile, and the bytes that it fills."""
    span = SWIZZLE_TABLE[swizzle].span_bytes
    k, step = k_bytes // 2, step_bytes // 2  # of 16-bit elements, the only ones that are MN-major
    if major == "K" and swizzle == "NONE":
        starts = [rows * at for at in range(0, k_bytes, step_bytes)]
        leading, stride, size = rows * 16, 128, rows * k_bytes
    elif major == "K":
        width = max(span, k_bytes)
        starts = [at // span * rows * span + at % span for at in range(0, k_bytes, step_bytes)]
        leading, stride, size = rows * span, 8 * span, rows * width
    elif swizzle == "NONE":
        starts = [128 * (at // 8) for at in range(0, k, step)]
        leading, stride, size = 128, 16 * k, 2 * rows * k
    else:
        starts = [at * span for at in range(0, k, step)]
        leading, stride = k * span, 8 * span
        size = -(-2 * rows // span) * span * k
    return [wgmma.MatrixDescriptor(start + at, leading, stride, 0, swizzle) for at in starts], -(-size // 1024) * 1024


def random_values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return random integers whose products sum exactly in every accumulator."""
    low, high = {"b1": (0, 1), "u8": (0, 9), "s8": (-9, 9)}.get(dtype, (-4, 4))
    return rng.integers(low, high + 1, shape)


def random_metadata(rng: np.random.Generator, bits: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random codes [64, groups] and where each stored element belongs [64, stored]."""
    codes = wgmma.SPARSE_CODES[bits]
    chosen = rng.choice(np.array(list(codes)), (64, groups))
    size = 2 if bits == 32 else 4
    inside = np.array([codes.get(code, (0,) * (size // 2)) for code in range(16)])
    positions = inside[chosen] + size * np.arange(groups)[None, :, None]
    return chosen, positions.reshape(64, -1)


def metadata_words(codes: np.ndarray, bits: int, selector: int, rng: np.random.Generator) -> np.ndarray:
    """Return the word of each thread; threads that are not heard hold other valid codes."""
    where = wgmma.metadata_coordinates(bits, selector)
    noise = rng.choice(np.array(list(wgmma.SPARSE_CODES[bits])), where.shape[:2])
    nibbles = np.where(where[..., 0] >= 0, codes[where[..., 0], where[..., 1]], noise).astype(np.uint64)
    return (nibbles << (4 * np.arange(8, dtype=np.uint64))).sum(axis=1).astype(np.uint32)


def pack_registers(stored: np.ndarray, dtype: str) -> np.ndarray:
    """Return the four words of each thread for one step: uint32[128, 4]."""
    where = wgmma.register_coordinates(wgmma.OPERAND_BITS[dtype])
    raw = encode(stored, dtype)[where[..., 0], where[..., 1]]
    return to_bytes(raw, dtype).reshape(128, 16).view(np.uint32)


def campaign_cases(shape: Shape, rng: np.random.Generator) -> tuple[Case, np.ndarray, list[str]]:
    """Return one case for every major, swizzle of A and B, selector and sign; the products; and what each case is."""
    kind = wgmma.multiply(shape.a, shape.b)
    bits, steps = kind.bits, 2 if shape.sparse else 4
    stored_k, full_k = kind.k, shape.k
    chosen = [
        (number, variant, a, b)
        for number, variant in enumerate(variants(shape))
        for a in (wgmma.SWIZZLES if not shape.registers else ("NONE",))
        for b in wgmma.SWIZZLES
    ]
    image_bytes = 0
    made = []
    for number, variant, a_swizzle, b_swizzle in chosen:
        a_major, b_major = ("MN" if variant[2] else "K"), ("MN" if variant[3] else "K")
        a_tiles, a_size = tile(64, 32 * steps, 32, a_major, a_swizzle, 0)
        b_tiles, b_size = tile(shape.n, ROW_BYTES, ROW_BYTES // steps, b_major, b_swizzle, a_size)
        image_bytes = max(image_bytes, a_size + b_size)
        made.append((number, variant, a_major, b_major, a_tiles, b_tiles))
    blocks = len(made)
    image = np.zeros((blocks, image_bytes), dtype=np.uint8)
    a_words, b_words = (np.zeros((blocks, steps), dtype=np.uint64) for _ in "ab")
    registers = np.zeros((blocks, steps, 128, 4), dtype=np.uint32)
    metadata = np.zeros((blocks, steps, 128), dtype=np.uint32)
    expected = np.zeros((blocks, 64, shape.n), dtype=np.int64)
    labels = []
    for c, (_, variant, a_major, b_major, a_tiles, b_tiles) in enumerate(made):
        raw = from_bytes(image[c], shape.a).copy()
        a = random_values(rng, shape.a, (steps, 64, stored_k))
        b = random_values(rng, shape.b, (steps, shape.n, full_k))
        for s in range(steps):
            full = np.zeros((64, full_k), dtype=np.int64)
            if shape.sparse:
                codes, positions = random_metadata(rng, bits, full_k // (2 if bits == 32 else 4))
                metadata[c, s] = metadata_words(codes, bits, variant[4], rng)
                np.put_along_axis(full, positions, a[s], axis=1)
            else:
                full = a[s]
            expected[c] += full @ b[s].T
            if shape.registers:
                registers[c, s] = pack_registers(a[s], shape.a)
            else:
                raw[places(a_tiles[s], 64, stored_k, bits, a_major)] = encode(a[s], shape.a)
            raw[places(b_tiles[s], shape.n, full_k, bits, b_major)] = encode(b[s], shape.b)
            a_words[c, s], b_words[c, s] = a_tiles[s].encode(), b_tiles[s].encode()
        if variant[0]:
            expected[c] = -expected[c]
        image[c] = to_bytes(raw, shape.a)
        labels.append(f"A {a_major} {a_tiles[0].swizzle}, B {b_major} {b_tiles[0].swizzle}, {variant}")
    numbers = np.array([entry[0] for entry in made], dtype=np.int32)
    case = Case(image, image_bytes, image_bytes, steps, a_words, b_words, registers, metadata, numbers)
    return case, expected, labels


class Chains:
    """Launches chain kernels of one cubin, made in this child."""

    def __init__(self, shapes: list[Shape]) -> None:
        self.kernel = chain_kernel(shapes[0], shapes[1:])
        self.file = f"{self.kernel.name}_{os.getpid()}"
        log = compile_text(self.kernel, cuda().cubins / f"{self.file}.cubin")
        if log:
            raise RuntimeError(log)

    def chain(self, shape: Shape, case: Case) -> np.ndarray:
        """Return the words of D: uint32[blocks, 128, words]."""
        numbers = [case.image_bytes, case.image_stride, case.steps]
        given = [case.image, *numbers, case.a_words, case.b_words, case.a_registers, case.metadata, case.variant]
        given.append(np.zeros((case.blocks, 128, shape.words), dtype=np.uint32))
        kernel = replace(self.kernel, name=f"la_chain_{shape.name}")
        one = Launch(shape.name, kernel, given, (9,), case.blocks, smem=case.image_bytes + 1024, file=self.file)
        return cuda().run(one)[9]
