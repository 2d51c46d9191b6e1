"""Runs of bytes: the union of byte ranges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def merged_runs(starts: npt.NDArray[np.int64], lengths: int | npt.NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Return the bytes of some ranges as (first byte, length), ascending and apart.

    Example:
        >>> merged_runs(np.array([64, 0, 8, 4]), 8)
        ((0, 16), (64, 8))
    """
    if not starts.size:
        return ()
    order = np.argsort(starts, kind="stable")
    first = starts[order]
    ends = np.maximum.accumulate(first + np.broadcast_to(lengths, starts.shape)[order])
    begins = np.flatnonzero(np.concatenate([[True], first[1:] > ends[:-1]]))
    last = ends[np.concatenate([begins[1:] - 1, [len(ends) - 1]])]
    return tuple(zip(first[begins].tolist(), (last - first[begins]).tolist(), strict=True))
