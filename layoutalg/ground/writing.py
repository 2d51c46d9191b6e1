"""A hook: the notation package registers its writer here, because ground must not import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WRITERS: list[Callable[..., str]] = []


def written_by(writer: Callable[..., str]) -> None:
    """Register the function behind ``to_text``. ``layoutalg`` calls this once."""
    _WRITERS[:] = [writer]


class Written:
    """A value that can be written in the notations of other systems."""

    __slots__ = ()

    def to_text(self, form: str, **options: Any) -> str:
        """Return the value in another system's notation, exact or refused; ``layoutalg.parse`` reads it.

        Args:
            form: ``"cute_cpp"`` and ``"cute_dsl"`` for what CuTe prints, ``"cute_type"`` for a C++ type, ``"ttg"`` for
                an attribute of Triton, ``"gluon"`` for a constructor, ``"isl"``.
            options: ``element_bits`` for the CuTe forms: swizzles are then written on byte addresses, with a pointer
                that shows the element width. Without it they act on element offsets.

        Raises: MalformedError: LA195. RepresentabilityError: LA196, LA711, and those of ``layoutalg.convert``.

        Example:
            >>> import layoutalg as la
            >>> shared = la.parse("Sw<3,3,3> o 0 o (8,64):(64,1)")
            >>> shared.to_text("cute_cpp")
            'Sw<3,3,3> o _0 o (_8,_64):(_64,_1)'
            >>> shared.to_text("cute_cpp", element_bits=16)
            'Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)'
        """
        return _WRITERS[0](self, form, **options)
