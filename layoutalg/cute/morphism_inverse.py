"""Inverses of morphisms, from the transposed map alone; shared by flat and nested tuples.

Main definitions: ``TransposeInverses``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from layoutalg.cute.pointed import Map, require_total

if TYPE_CHECKING:
    from typing import Self


class TransposeInverses(ABC):
    """One-sided and two-sided inverses of a class that has ``map`` and ``transpose()``."""

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # numpy leaves operators with a morphism to the morphism
    map: Map

    @abstractmethod
    def transpose(self) -> Self:
        """Return the generalised inverse; every morphism has one."""

    def left_inverse(self) -> Self:
        """Return g with g @ f the identity of the domain.

        Raises: AdmissibilityError: LA187.
        """
        require_total(self.map, f"({self}).left_inverse()", "domain", "goes to the base point, which forgets its digit")
        return self.transpose()

    def right_inverse(self) -> Self:
        """Return g with f @ g the identity of the codomain.

        Raises: AdmissibilityError: LA187.
        """
        answer = self.transpose()
        require_total(answer.map, f"({self}).right_inverse()", "codomain", "is not hit, so no digit reaches it")
        return answer

    def inverse(self) -> Self:
        """Return the inverse of an isomorphism; also ``~f``.

        Raises: AdmissibilityError: LA187.

        Example:
            >>> from layoutalg.cute import NestMorphism
            >>> print(~NestMorphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)))
            (3,(4,2)) --(2,0,1)--> (4,(2,3))
        """
        self.left_inverse()
        return self.right_inverse()

    def __invert__(self) -> Self:
        return self.inverse()
