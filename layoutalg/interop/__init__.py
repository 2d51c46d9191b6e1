"""Read and write layouts of other systems, without importing those systems.

``layouts_of`` lists the layouts of a TTGIR file, ``read_printout`` extracts what a CuTe printout contains besides its
layout, ``triton`` converts bases, attributes and Gluon constructors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.interop import triton
    from layoutalg.notation.printout import Printout, read_printout
    from layoutalg.notation.ttgir import TensorType, layouts_of

__all__ = ["Printout", "TensorType", "layouts_of", "read_printout", "triton"]

__getattr__, __dir__ = door(
    __name__,
    {
        f"{__name__}.triton": "triton",
        "layoutalg.notation.printout": "Printout read_printout",
        "layoutalg.notation.ttgir": "TensorType layouts_of",
    },
)
