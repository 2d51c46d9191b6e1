"""Every member of a form of swizzles, counted word by word: no ranks, no search."""

from collections.abc import Sequence

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.proofs.swizzling import TileAccess, instructions, serve
from layoutalg.targets.banks import bank_model


def turns_behind(accesses: Sequence[TileAccess], smem: LinearLayout, bits: int, targets: Sequence[str]) -> int:
    """Return the turns of all accesses on all targets, from the addresses of every instruction."""
    return sum(serve(access, 0, smem, bits, target).turns for access in accesses for target in targets)


def least_xor(
    accesses: Sequence[TileAccess],
    tile: tuple[int, int],
    bits: int,
    targets: Sequence[str],
    chunk_bytes: int,
    first: bool = False,
) -> int:
    """Return the turns of the best map from rows to chunks, by counting all maps; chunks of 16 bytes or more.

    Args:
        accesses: What is moved.
        tile: Rows and columns.
        bits: Bits of an element.
        targets: The targets.
        chunk_bytes: Bytes of a chunk.
        first: Count the first instruction of an access alone: the others' addresses differ by one XOR of all.
    """
    rows, columns = tile
    row_bits, pitch = rows.bit_length() - 1, columns * bits // 8
    chunk_bits = max(1, pitch // chunk_bytes).bit_length() - 1
    maps = np.arange(1 << row_bits * chunk_bits)
    shifts = np.zeros((len(maps), rows), dtype=np.int64)  # per map and row, what its chunk numbers are XORed with
    for bit in range(row_bits):
        image = maps >> bit * chunk_bits & (1 << chunk_bits) - 1
        shifts ^= np.where(np.arange(rows) >> bit & 1, image[:, None], 0)
    axes = accesses[0].layout.out_axes
    plain = [1 << at + columns.bit_length() - 1 for at in range(row_bits)]
    smem = LinearLayout(axes, (("offset", sum(n for _, n in axes)),), (*plain, *(1 << at for at in range(axes[1][1]))))
    total = np.zeros(len(maps), dtype=np.int64)
    for access in accesses:
        for target in targets:
            name, issued = instructions(access, smem, bits, target)
            model = bank_model(target, name)
            every = np.concatenate(issued)
            many = len(every) if first else 1
            for addresses in every[:1] if first else every:
                for phase in model.phases(addresses):
                    where = addresses[list(phase.lanes)]
                    moved = where[None, :] ^ (shifts[:, where // pitch] * chunk_bytes)
                    parts = np.arange(max(1, model.access_bytes // 4))
                    words = np.sort((moved[:, :, None] // 4 + parts).reshape(len(maps), -1), axis=1)
                    fresh = np.ones(words.shape, dtype=bool)
                    fresh[:, 1:] = words[:, 1:] != words[:, :-1]
                    counts = np.zeros((len(maps), model.banks), dtype=np.int64)
                    np.add.at(counts, (np.arange(len(maps))[:, None], words % model.banks), fresh)
                    total += many * counts.max(axis=1)
    return int(total.min())
