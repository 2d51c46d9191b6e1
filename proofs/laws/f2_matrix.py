"""Matrices over F2: products, elimination, kernels, solutions, inverses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise, product
from operator import or_, xor
from typing import Any, TypeAlias

from layoutalg.f2 import matrix
from layoutalg.f2.matrix import Elimination, apply, eliminate, inverse, kernel, multiply, transpose
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.proofs.laws.engines import bit_vectors, by, enumerated
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.solvers import BITWUZLA
from layoutalg.proofs.laws.term import every
from layoutalg.proofs.laws.trial import Trial

Matrix: TypeAlias = tuple[int, ...]


def columns(trial: Trial, count: int, rows: int, name: str = "c") -> Matrix:
    """Return that many columns with any entries, named ``c0``, ``c1``, ..."""
    found = [trial.bits(f"{name}{k}", rows + 1) for k in range(count)]
    trial.assume(*[column >= 0 for column in found])
    return tuple(found)


def matrices(count: int, rows: int) -> Iterator[Matrix]:
    """Return all matrices of that many columns."""
    return product(range(1 << rows), repeat=count)


def _any(left: Sequence[Any], vector: int) -> Any:
    """Join columns instead of adding them."""
    return reduce(or_, [column for k, column in enumerate(left) if vector >> k & 1], 0)


def _linear(trial: Trial, apply: Callable[..., Any] = apply) -> None:
    M = columns(trial, 4, 16)
    pairs = product(range(16), repeat=2)
    trial.claim(every(*[apply(M, x ^ y) == apply(M, x) ^ apply(M, y) for x, y in pairs]), "M (x + y) = M x + M y")


def _product(trial: Trial, multiply: Callable[..., Any] = multiply) -> None:
    A = columns(trial, 3, 16)
    same = [apply(multiply(A, B), x) == apply(A, apply(B, x)) for B in matrices(2, 3) for x in range(4)]
    trial.claim(every(*same), "(A B) x = A (B x)")


def _flipped(left: Sequence[Any], right: Sequence[int]) -> tuple[Any, ...]:
    """Take entry (row, column) of the right factor for (column, row)."""
    return multiply(left, transpose(right, 3)[: len(right)])


def _associative(trial: Trial, multiply: Callable[..., Any] = multiply) -> None:
    A = columns(trial, 3, 16)
    same = []
    for B, C in product(matrices(2, 3), [range(4)]):
        left, right = multiply(multiply(A, B), C), multiply(A, multiply(B, C))
        same += [one == two for one, two in zip(left, right, strict=True)]
    trial.claim(every(*same), "(A B) C = A (B C), for all columns of C at once")


def _modular(left: Sequence[Any], right: Sequence[int]) -> tuple[Any, ...]:
    """Add columns modulo 8 instead of bit by bit."""
    return tuple([sum([one for k, one in enumerate(left) if column >> k & 1]) & 7 for column in right])


def _unit(trial: Trial, step: int = 1) -> None:
    A = columns(trial, 5, 32)
    one = tuple([1 << bit for bit in range(5)][::step])
    big = tuple([1 << bit for bit in range(32)])
    kept = multiply(A, one)
    trial.claim(every(*[a == b for a, b in zip(kept, A, strict=True)]), "A 1 = A")
    trial.claim(every(*[apply(big, 1 << k) == 1 << k for k in range(32)]), "1 x = x on unit vectors")


def _twice(trial: Trial, rows: int = 6) -> None:
    A = columns(trial, 4, 6)
    back = transpose(transpose(A, rows), 4)
    trial.claim(every(*[a == b for a, b in zip(back, A, strict=True)]), "the transpose of the transpose")


def _turned(pair: tuple[Matrix, Matrix], crossed: bool = True) -> str | None:
    A, B = pair
    first, second = (transpose(B, 3), transpose(A, 2)) if crossed else (transpose(A, 2), transpose(B, 3))
    return None if transpose(multiply(A, B), 2) == multiply(first, second) else "the transpose of a product"


def _turned_cases() -> Iterator[tuple[Matrix, Matrix]]:
    return ((A, B) for A in matrices(3, 2) for B in matrices(2, 3))


def _packed(case: tuple[int, int, int], word: int = 64) -> str | None:
    """Seven dense columns go through one integer; each must be what ``apply`` says."""
    a, b, scale = case
    left = tuple([(37 * k * k + 11 * k + 5) % 64 << scale for k in range(6)])
    right = (a, b, 63, 63, a ^ b, b, 63)
    wanted = tuple([apply(left, column) % (1 << word) for column in right])
    return None if multiply(left, right) == wanted else "the packed product"


def _packed_cases() -> Iterator[tuple[int, int, int]]:
    return product(range(64), range(64), (0, 26, 58))


def _eliminated(trial: Trial, eliminate: Callable[..., Elimination] = matrix.eliminate_uncached) -> None:
    M = columns(trial, 2, 2)
    found = eliminate(M)
    tops = [vector.bit_length() - 1 for vector, _ in found.pivots]
    trial.claim(found.rank + len(found.null) == 2, "rank and nullity")
    trial.claim(every(*[apply(M, used) == vector for vector, used in found.pivots]), "each pivot is the sum of its set")
    trial.claim(every(*[apply(M, used) == 0 for used in found.null]), "each null set sums to zero")
    trial.claim(all(below < above for below, above in pairwise(tops)), "ascending")
    others = [(top, vector) for k, top in enumerate(tops) for j, (vector, _) in enumerate(found.pivots) if k != j]
    trial.claim(every(*[vector >> top & 1 == 0 for top, vector in others]), "reduced")
    trial.claim(every(*[found.reduce(column)[0] == 0 for column in M]), "every column is in the span")


def _forward_alone(given: Sequence[int]) -> Elimination:
    """Stop before the pivots are reduced upwards."""
    found = matrix.eliminate_uncached(given)
    count, mask = found.column_count, (1 << found.column_count) - 1
    vars(found)["pivots"] = tuple([(found.rows[k] >> count, found.rows[k] & mask) for k in sorted(found.rows)])
    return found


def _span(M: Sequence[int]) -> frozenset[int]:
    return frozenset(apply(M, x) for x in range(1 << len(M)))


def _reduced(M: Matrix, eliminate: Callable[..., Elimination] = eliminate) -> str | None:
    found, span = eliminate(M), _span(M)
    vectors = [vector for vector, _ in found.pivots]
    tops = [1 << vector.bit_length() - 1 for vector in vectors]
    if 1 << found.rank != len(span) or found.rank != matrix.rank(M) or found.rank + len(found.null) != len(M):
        return "the rank"
    if _span(vectors) != span or any(apply(M, used) != vector for vector, used in found.pivots):
        return "the pivots"
    if sorted(tops) != tops or any(
        vector & reduce(or_, tops) != top for vector, top in zip(vectors, tops, strict=True)
    ):
        return "not reduced"
    for vector in range(16):
        rest, used = found.reduce(vector)
        if rest ^ apply(M, used) != vector or rest != min(vector ^ each for each in span):
            return f"the remainder of {vector}"
    return None if matrix.image_basis(M) == tuple(vectors) else "the image"


def _null(M: Matrix, kernel: Callable[..., Sequence[int]] = kernel) -> str | None:
    null = {x for x in range(1 << len(M)) if apply(M, x) == 0}
    found = kernel(M)
    if _span(found) != null or 1 << len(found) != len(null):
        return "not a basis of the kernel"
    highest = [vector.bit_length() for vector in found]
    return None if len(set(highest)) == len(found) else "two have one highest column"


def _pairs_alone(M: Sequence[int]) -> list[int]:
    """Look for columns that are zero or equal, not for sums."""
    zero = [1 << k for k, column in enumerate(M) if not column]
    return zero + [1 << k | 1 << M.index(column) for k, column in enumerate(M) if column and M.index(column) < k]


def _solved(M: Matrix, solve: Callable[..., Any] = matrix.solve) -> str | None:
    for target in range(16):
        wanted = {x for x in range(1 << len(M)) if apply(M, x) == target}
        found = solve(M, target)
        all_of = set() if found is None else {found[0] ^ each for each in _span(found[1])}
        if all_of != wanted:
            return f"the solutions of M x = {target}"
    return None


def _square(M: Sequence[int], target: int) -> Any:
    """Solve as if there were one solution at most."""
    found = matrix.solve(M, target)
    return found and (found[0], ())


def _inverse(trial: Trial, inverse: Callable[..., Any] = inverse, size: int = 2) -> None:
    M = columns(trial, size, size)
    try:
        back = inverse(M)
    except AdmissibilityError:
        trial.claim(M[0] == 0 or M[1] == 0 or M[0] == M[1], "a refused matrix is singular")
        return
    for one in (multiply(back, M), multiply(M, back)):
        trial.claim(every(*[column == 1 << k for k, column in enumerate(one)]), "the product is the identity")


def _inverted(M: Matrix, inverse: Callable[..., Any] = inverse) -> str | None:
    one = tuple([1 << k for k in range(len(M))])
    try:
        back = inverse(M)
    except AdmissibilityError:
        return "a regular matrix is refused" if len(_span(M)) == 1 << len(M) else None
    return None if multiply(back, M) == one == multiply(M, back) else "not the inverse"


def _as_given(M: Matrix) -> Matrix:
    """Take the matrix for its own inverse wherever it is regular."""
    inverse(M)
    return M


def _of_transpose(M: Matrix, rows: int = 4) -> str | None:
    return None if matrix.rank(M) == matrix.rank(transpose(M, rows)) else "row rank and column rank"


def _subspaces(pair: tuple[Matrix, Matrix], complement: Callable[..., Matrix] = matrix.common_complement) -> str | None:
    left, right = pair
    U, V = _span(left), _span(right)
    if _span(matrix.intersection(left, right)) != U & V:
        return "the intersection"
    H = complement(left, right, 3)
    if (_span(H) & U) | (_span(H) & V) != {0}:
        return "the complement meets a subspace"
    largest = 8 // max(len(U), len(V))
    return None if len(_span(H)) == largest else f"a complement has {largest} points"


def _set_difference(left: Matrix, right: Matrix, bits: int) -> Matrix:
    """Complete with the unit vectors that neither list holds, as where all vectors are unit vectors."""
    return tuple([1 << bit for bit in range(bits) if 1 << bit not in (*left, *right)])


def _subspace_cases() -> Iterator[tuple[Matrix, Matrix]]:
    return ((left, right) for left in matrices(2, 3) for right in matrices(2, 3))


def _least(case: tuple[Matrix, int], remainder: Callable[..., int] = matrix.remainder) -> str | None:
    M, value = case
    wanted = min(value ^ each for each in _span(M))
    return None if remainder(matrix.image_basis(M), value) == wanted else f"the least is {wanted}"


def _least_cases() -> Iterator[tuple[Matrix, int]]:
    return product(matrices(2, 4), range(16))


def _listed(case: tuple[Matrix, int], table: Callable[..., Any] = matrix.table) -> str | None:
    M, constant = case
    wanted = [reduce(xor, [column for k, column in enumerate(M) if x >> k & 1], constant) for x in range(1 << len(M))]
    return None if table(M, constant).tolist() == wanted else "the table"


def _summed(M: Sequence[int], constant: int) -> Any:
    """Build the table by sums, as if no column carried."""
    values = matrix.table((1,) * 0, constant)
    for column in M:
        values = type(values).__add__(values.repeat(2).reshape(-1, 2).T.reshape(-1), 0)
        values[len(values) // 2 :] += column
    return values


_ALL = "all matrices of 3 columns and 4 rows"
_MATRIX = "layoutalg.f2.matrix."

LAWS = (
    Law(
        "f2.linear",
        "M (x xor y) = M x xor M y.",
        (f"{_MATRIX}apply",),
        bit_vectors(_linear, partial(_linear, apply=_any), "any 4 columns of 16 rows, all x and y"),
    ),
    Law(
        "f2.product",
        "(A B) x = A (B x): the columns of the product are the images of the columns.",
        (f"{_MATRIX}multiply", f"{_MATRIX}apply"),
        (
            *bit_vectors(
                _product,
                partial(_product, multiply=_flipped),
                "any 16 by 3 matrix A, all 3 by 2 matrices B",
            ),
            *enumerated(
                _packed_cases, _packed, partial(_packed, word=32), "dense columns multiplied in one integer", 12288
            ),
        ),
    ),
    Law(
        "f2.associative",
        "(A B) C = A (B C).",
        (f"{_MATRIX}multiply",),
        bit_vectors(
            _associative,
            partial(_associative, multiply=_modular),
            "any 16 by 3 matrix A, all 3 by 2 matrices B, all columns of C",
        ),
    ),
    Law(
        "f2.unit",
        "A 1 = A and 1 x = x.",
        (f"{_MATRIX}multiply",),
        bit_vectors(_unit, partial(_unit, step=-1), "any A of 5 columns and 32 rows"),
    ),
    Law(
        "f2.transpose",
        "The transpose of the transpose is the matrix, and (A B)^T = B^T A^T.",
        (f"{_MATRIX}transpose", f"{_MATRIX}multiply"),
        (
            *bit_vectors(_twice, partial(_twice, rows=5), "any 4 columns of 6 rows"),
            *enumerated(
                _turned_cases, _turned, partial(_turned, crossed=False), "all 2 by 3 times all 3 by 2 matrices", 4096
            ),
        ),
    ),
    Law(
        "f2.elimination",
        "eliminate(M) is the reduced echelon form: each pivot is the sum of its set of columns, tops ascend, no other "
        "pivot has a pivot's row, rank + nullity = columns, and reduce(v) is the least element of v + span.",
        (f"{_MATRIX}eliminate", f"{_MATRIX}forward", f"{_MATRIX}Elimination.reduce", f"{_MATRIX}image_basis"),
        (
            *by(BITWUZLA, _eliminated, partial(_eliminated, eliminate=_forward_alone), "any 2 columns of 2 rows"),
            *enumerated(lambda: matrices(3, 4), _reduced, partial(_reduced, eliminate=_forward_alone), _ALL, 4096),
        ),
    ),
    Law(
        "f2.kernel",
        "kernel(M) is a basis of {x : M x = 0} in which every vector has a highest column of its own.",
        (f"{_MATRIX}kernel",),
        enumerated(lambda: matrices(3, 4), _null, partial(_null, kernel=_pairs_alone), _ALL, 4096),
        why_bounded="That each vector is a solution and how many there are is `f2.elimination`; that no solution is "
        "missed quantifies over x, so all x are listed.",
    ),
    Law(
        "f2.solve",
        "solve(M, t) is every x with M x = t: one of them and a basis of the differences, or None where there is none.",
        (f"{_MATRIX}solve",),
        enumerated(lambda: matrices(3, 4), _solved, partial(_solved, solve=_square), f"{_ALL}, all t", 4096),
        why_bounded="As for `f2.kernel`: the sets of solutions are compared.",
    ),
    Law(
        "f2.inverse",
        "inverse(M) M = 1 = M inverse(M), and exactly the singular matrices are refused.",
        (f"{_MATRIX}inverse", f"{_MATRIX}multiply"),
        (
            *by(BITWUZLA, _inverse, partial(_inverse, inverse=_as_given), "any 2 by 2 matrix"),
            *enumerated(
                lambda: matrices(3, 3), _inverted, partial(_inverted, inverse=_as_given), "all 3 by 3 matrices", 512
            ),
        ),
    ),
    Law(
        "f2.rank",
        "Row rank is column rank.",
        (f"{_MATRIX}rank", f"{_MATRIX}transpose"),
        enumerated(lambda: matrices(3, 4), _of_transpose, partial(_of_transpose, rows=3), _ALL, 4096),
        why_bounded="Elimination of symbols branches at every pivot: 3 by 3 matrices took bitwuzla 64 s.",
    ),
    Law(
        "f2.subspaces",
        "intersection(U, V) is what both hold; common_complement(U, V) meets each in 0 alone and is a largest such "
        "subspace, of dimension bits - max(dim U, dim V).",
        (f"{_MATRIX}intersection", f"{_MATRIX}common_complement"),
        enumerated(
            _subspace_cases,
            _subspaces,
            partial(_subspaces, complement=_set_difference),
            "all pairs of two vectors of 3 bits",
            4096,
        ),
        why_bounded="Three eliminations in a row, each branching at every pivot; `f2.rank` says what one costs.",
    ),
    Law(
        "f2.remainder",
        "remainder(B, v) is the least element of v + span B, B a reduced basis.",
        (f"{_MATRIX}remainder", f"{_MATRIX}image_basis"),
        enumerated(
            _least_cases,
            _least,
            partial(_least, remainder=lambda basis, value: matrix.remainder(basis[:1], value)),
            "all spans of two vectors of 4 bits, all v",
            4096,
        ),
        why_bounded="That nothing in the coset is less quantifies over the span, which is listed.",
    ),
    Law(
        "f2.table",
        "table(M, c) lists M x xor c for x = 0, 1, 2, ...",
        (f"{_MATRIX}table",),
        enumerated(
            lambda: product(matrices(3, 3), range(8)),
            _listed,
            partial(_listed, table=_summed),
            "all 3 by 3 matrices, all constants",
            4096,
        ),
        why_bounded="The table is an array of machine integers.",
    ),
)
