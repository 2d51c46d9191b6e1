"""Running the laws on a library: as tests, or one at a time for the least counterexample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from layoutalg.cute import CuteLayout
from layoutalg.testing.laws.library import CHECK, Broken, Library, Refused
from layoutalg.testing.laws.statements import LAWS, Law

EXAMPLES = 200
"""Operands that a law is tried on."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The least operands found that break a law.

    Args:
        law: Name of the law.
        operands: As the law draws them: specs, then numbers.
        text: The operands as the library's reports write them.
        because: What the library answered, and what the law asks for.
    """

    law: str
    operands: tuple[Any, ...]
    text: str
    because: str

    def __str__(self) -> str:
        return f"{self.text}: {self.because}"


def laws_of(library: Library) -> tuple[Law, ...]:
    """Return the laws whose functions the library has."""
    return tuple(law for law in LAWS.values() if all(getattr(library, name) is not None for name in law.needs))


def broken(library: Library, law: str, operands: tuple[Any, ...]) -> str | None:
    """Return why a law does not hold for these operands; None where it does, or where the library refuses."""
    try:
        _law(law).check(library, *operands)
    except Refused:
        return None
    except Broken as error:
        return str(error)
    return None


def counterexample(library: Library, law: str, examples: int = EXAMPLES) -> Counterexample | None:
    """Return the least operands that break a law of ``LAWS``; None where none were found.

    Args:
        library: The library.
        law: Name of the law.
        examples: How many operands are tried; the same ones in every run.
    """
    found, _ = tried(library, law, examples)
    return found


def tried(
    library: Library, law: str, examples: int = EXAMPLES, first: Sequence[tuple[Any, ...]] = ()
) -> tuple[Counterexample | None, int]:
    """Return ``counterexample`` and for how many drawn operands the library gave an answer.

    Args:
        library: As for ``counterexample``.
        law: As for ``counterexample``.
        examples: As for ``counterexample``.
        first: Operands that are tried before the drawn ones; those that break the law are returned as they are.
    """
    chosen, answered = _law(law), 0
    for operands in first:
        because = broken(library, law, operands)
        if because is not None:
            return _found(law, operands, because), 0

    def fails(operands: Any) -> bool:
        nonlocal answered
        try:
            chosen.check(library, *operands)
        except Refused:
            return False
        except Broken:
            return True
        answered += 1
        return False

    plan = settings(
        max_examples=CHECK.integer(examples, "examples", 1),
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        least = find(chosen.drawn(library), fails, settings=plan)
    except NoSuchExample:
        return None, answered
    return _found(law, tuple(least), broken(library, law, least) or ""), answered


def _found(law: str, operands: tuple[Any, ...], because: str) -> Counterexample:
    told = [str(part) if isinstance(part, int) or law == "swizzle" else str(CuteLayout(*part)) for part in operands]
    return Counterexample(law, operands, ", ".join(told), because)


def _law(name: str) -> Law:
    CHECK.choice(name, "law", LAWS)
    return LAWS[name]


class LawSuite:
    """Tests of a library, one per law: a test class of yours inherits this and names its library.

    Laws that are known not to hold are listed with a reason in ``known``; they are expected to fail, strictly, so that
    a mended library is noticed. ``examples`` operands are drawn for each law, the same ones in every run, after those
    listed for it in ``first``. A law of which the library refuses everything fails as well.

    Example:
        >>> from layoutalg import cute
        >>> class TestMine(LawSuite):
        ...     library = Library(
        ...         name="mine", build=lambda spec: cute.CuteLayout(*spec), size=lambda a: a.size,
        ...         value=lambda a, i: a(i), coalesce=lambda a: a[0],
        ...     )
        ...     known = {"coalesce": "keeps the first mode alone"}
        >>> [law.name for law in laws_of(TestMine.library)]
        ['evaluate', 'coalesce']
        >>> print(counterexample(TestMine.library, "coalesce"))
        (1,2):(1,1): the answer has the values 0, not 0 1
    """

    library: ClassVar[Library]
    known: ClassVar[Mapping[str, str]] = {}
    first: ClassVar[Mapping[str, Sequence[tuple[Any, ...]]]] = {}
    examples: ClassVar[int] = EXAMPLES

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test of each law."""
        if "law" not in metafunc.fixturenames:
            return
        laws = [law.name for law in laws_of(self.library)]
        unknown = set(self.known) - set(laws)
        if unknown:
            raise CHECK.malformed("known", f"must name laws of this library, {', '.join(laws)}", sorted(unknown))
        marked = [
            pytest.param(
                law, marks=pytest.mark.xfail(strict=True, raises=pytest.fail.Exception, reason=self.known[law])
            )
            if law in self.known
            else law
            for law in laws
        ]
        metafunc.parametrize("law", marked, ids=laws)

    def test_law(self, law: str) -> None:
        """Try a law; fail with the least operands that break it."""
        found, answered = tried(self.library, law, self.examples, self.first.get(law, ()))
        claim = f"  law    {law}: {LAWS[law].claim}"
        if found is not None:
            told = f"{self.library.name} breaks a law\n{claim}\n  at     {found.text}\n  since  {found.because}"
            pytest.fail(told, pytrace=False)
        if not answered:
            names = ", ".join(kind.__name__ for kind in self.library.refusals)
            told = f"{self.library.name} refuses everything that a law asks\n{claim}\n"
            pytest.fail(f"{told}  so     nothing was tested; it refuses by {names}", pytrace=False)
