"""One-sided inverses of tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.limits import POINTS
from layoutalg.ground.listed import ListedLayout


def left_table(layout: ListedLayout) -> ListedLayout:
    """Return R on 0..max with R(layout(c)) = c, the smallest such c; 0 for numbers the layout never takes.

    Example:
        >>> from layoutalg.ground.listed import listed
        >>> left_table(listed([4, 0, 2])).table().tolist()
        [1, 0, 2, 0, 0]
    """
    place = _places(layout)
    return ListedLayout((len(place),), tuple(np.maximum(place, 0).tolist()))


def right_table(layout: ListedLayout) -> ListedLayout:
    """Return the longest R with layout(R(i)) = i for all i below its size, with the least coordinates.

    Example:
        >>> from layoutalg.ground.listed import listed
        >>> right_table(listed([4, 0, 2, 1])).table().tolist()
        [1, 3, 2]
    """
    place = _places(layout)
    if place[0] < 0:
        because = "no coordinate has the value 0, where a right inverse starts"
        raise AdmissibilityError(Diagnostic("LA131", "the table has no right inverse", (str(layout),), because))
    missing = np.flatnonzero(place < 0)
    size = int(missing[0]) if len(missing) else len(place)
    return ListedLayout((size,), tuple(place[:size].tolist()))


def _places(layout: ListedLayout) -> npt.NDArray[np.int64]:
    """Return the least coordinate of each value from 0 to the greatest, -1 where there is none."""
    values = layout.table()
    if int(values.min()) < 0:
        at = int(values.argmin())
        because = f"the value at {at} is {int(values[at])}"
        raise AdmissibilityError(Diagnostic("LA649", "an inverse needs values >= 0", (str(layout),), because))
    top = int(values.max()) + 1
    if top > POINTS:
        because = f"the inverse has {top} entries, a table at most {POINTS}"
        raise BudgetError(Diagnostic("LA653", "no family was found for the inverse", (str(layout),), because))
    place = np.full(top, -1, dtype=np.int64)
    place[values[::-1]] = np.arange(len(values) - 1, -1, -1)
    return place
