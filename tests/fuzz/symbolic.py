"""Symbolic sizes and conditions."""

from __future__ import annotations

from fuzz.drive import contract, refused, text_of

from layoutalg.cute.symbolic import Assumptions, condition, polynomial
from layoutalg.ground.conditions import conditions
from layoutalg.ground.errors import LayoutError

SEEDS = [
    b"M*N/64 - 3", b"(M + 1)*(M - 1)", b"2*M/64 + 1", b"M**2*K/(3*N)", b"-M + +N", b"M % 16 == 0", b"N >= 64",
    b"64 <= M <= 128", b"K == M", b"K != 0", b"(M*N) % K == 0", b"M % 3 == 1", b"N > M - 4", b"M**3 + N**3 != K**3",
    b"M % (N*K) == 0", b"7", b"M/6 + N/(4*K) >= 0", b"(a + b + c)**5 >= 0",
]  # fmt: skip
WORDS = ["**16", "**", "*(", ")*(", " % ", " == ", " >= ", "/M", "/7", "lambda", "0x", "1_000", "1e5", "M.N", "M[0]",
         " if ", "and", "not ", "1j", "ﬁ"]  # fmt: skip


def target(data: bytes) -> None:
    text = text_of(data)
    contract(polynomial, str, text)
    contract(condition, str, text)
    try:
        found = conditions(text)
        known = Assumptions(found[:-1])
        known.decide(found[-1], timeout_ms=20)
    except LayoutError as error:
        refused(error)
