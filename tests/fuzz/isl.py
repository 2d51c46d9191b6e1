"""Texts for ISL: parametric layouts and sets, piecewise layouts."""

from __future__ import annotations

from fuzz.drive import contract, text_of

from layoutalg.ground import limits
from layoutalg.piecewise import PiecewiseLayout, PointSet

SEEDS = [
    b"{ [i, j] -> [8i + j] : 0 <= i < 4 and 0 <= j < 8 }", b"[N] -> { [i] -> [2i] : 0 <= i < N }",
    b"[N] -> { [i, j] -> [i div 12, i mod 12, j] : 0 <= i < N and 0 <= j < 37 }", b"{ [i] : 0 <= i < 4 }",
    b"{ [x0, x1] : 0 <= x0 < 3 and 0 <= x1 < 3 and (3x0 + x1) mod 2 = 0 }", b"{ [i] -> [i // 2, i % 2] : 0 <= i < 9 }",
    b"[N, M] -> { [i] : exists (e : i = 2e and 0 <= e < N and e < M) }", b"{ [i] -> [floor(i/3)] : 0 <= i < 9 }",
    b"{ [i] -> [1] : i = 0; [i] -> [i + 2] : 1 <= i < 5 }", b"{ [] -> [3] }", b"{ [i] -> [i] : i >= 0 }",
    b"{ [i, j] -> [max(i, j)] : 0 <= i < 4 and 0 <= j < 4 }", b"{ [i] : false }", b"[N] -> { [i] : 0 <= i and N >= 7 }",
]  # fmt: skip
WORDS = [
    "floor(", "mod ", " div ", "//", "%", "exists (e : ", " and ", " or ", "not ", "false", "true", "max(", "-> [",
    "; ", "[N] -> ", "N", ">= ", "<= ", "!= ", "rat: ", "infty", "@", "A[i]", "<<", ">>=", "i'",
]  # fmt: skip

LIMIT = 3 * 1.5 * limits.ISL_SECONDS  # three readers, each with the usual time of a question to ISL


def target(data: bytes) -> None:
    text = text_of(data)
    contract(PiecewiseLayout.parse, str, text)
    contract(PointSet, str, text)
    contract(lambda given: PiecewiseLayout(given).text, str, text)
