"""Exact integer matrices: known forms, refusals, empty cases."""

from __future__ import annotations

import numpy as np
import pytest
from judges.equations import is_solution

from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.integer.lattice import Lattice, NoSolution, kernel, solve, solve_mod
from layoutalg.integer.matrix import as_matrix, check, hnf, identity, is_unimodular, multiply, snf


def code(error) -> str:
    return error.value.diagnostic.code


def test_known_forms():
    A = [[2, 4, 4], [-6, 6, 12], [10, -4, -16]]
    assert snf(A).invariants == (2, 6, 12)
    assert hnf([[2, 3], [4, 9], [0, 5]]).H == ((2, 0), (0, 1), (0, 0))


def test_empty_matrices():
    assert hnf([]).H == hnf([]).U == ()
    assert snf([], columns=3) == snf((), 3)
    assert identity(3) == snf([], columns=3).V
    assert identity(2) == snf([[], []]).U
    assert snf([[], []]).rank == 0
    assert kernel([], columns=2) == identity(2)
    assert solve([[], []], [0, 1]) == NoSolution((0, 1), 0, 1)
    assert solve([[], []], [0, 0]).particular == ()
    assert solve([], [], columns=2).basis == identity(2)
    assert Lattice.spanned_by([], 2).basis == ()


def test_numpy_input_becomes_python_integers():
    H, U = hnf(np.array([[2, 1], [0, 3]], dtype=np.int32))
    assert all(type(entry) is int for row in (*H, *U) for entry in row)
    assert check.vector(np.array([1, 2], dtype=np.uint8), "b") == (1, 2)


@pytest.mark.parametrize("bad", [[[1.0]], [[True]], [[1], [1, 2]], "A", [1, 2], np.array([[1.5]]), [[None]], None])
def test_malformed_matrices(bad):
    with pytest.raises(MalformedError) as error:
        snf(bad)
    assert code(error) == "LA720"
    with pytest.raises(MalformedError):
        hnf(bad)


def test_forms_have_budgets():
    import random

    rng = random.Random(0)
    with pytest.raises(BudgetError) as error:
        hnf([[rng.randint(-9, 9) for _ in range(260)] for _ in range(260)])
    assert code(error) == "LA739"
    for call in (lambda: hnf([[1]] * 1001), lambda: snf([[1] * 1001])):
        with pytest.raises(BudgetError) as error:
            call()
        assert code(error) == "LA739"
    with pytest.raises(MalformedError):
        snf([], columns=10**30)


def _dense(height, width, digits):
    import random

    rng = random.Random(1)
    return [[rng.randint(-(10**digits), 10**digits) for _ in range(width)] for _ in range(height)]


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize(
    ("form", "height", "width", "digits"),
    [
        (snf, 29, 30, 300),
        (snf, 30, 30, 300),
        (snf, 2, 2, 30000),
        (kernel, 30, 200, 2),
        (hnf, 8, 8, 3000),
        (hnf, 120, 60, 9),
    ],
)
def test_long_eliminations_are_refused_soon(form, height, width, digits):
    import time

    start = time.thread_time()
    with pytest.raises(BudgetError) as error:
        form(_dense(height, width, digits))
    assert code(error) == "LA739"
    assert time.thread_time() - start < 5


def test_large_diagonals_are_refused_soon():
    import time

    # every pair needs the divisibility of its entries mended
    rng = np.random.default_rng(0)
    numbers = [int.from_bytes(rng.bytes(400), "little") + 2 for _ in range(60)]
    start = time.thread_time()
    with pytest.raises(BudgetError) as error:
        snf([[a if i == j else 0 for j in range(60)] for i, a in enumerate(numbers)])
    assert code(error) == "LA739"
    assert time.thread_time() - start < 5


@pytest.mark.parametrize(("size", "digits"), [(16, 2), (32, 2), (32, 9)])
def test_dense_forms_within_the_budget(size, digits):
    import math

    A = _dense(size, size, digits)
    D, U, V = snf(A)
    assert multiply(multiply(U, as_matrix(A)), V) == D
    H, T = hnf(A)
    assert multiply(T, as_matrix(A)) == H
    diagonals = [math.prod(row[k] for k, row in enumerate(form)) for form in (D, H)]
    # modulo a prime as an independent judge of the determinant
    prime, rows, value = 2**61 - 1, [list(row) for row in A], 1
    for k in range(size):
        top = next(i for i in range(k, size) if rows[i][k] % prime)
        rows[k], rows[top] = rows[top], rows[k]
        value = value * rows[k][k] * (1 if top == k else -1) % prime
        unit = pow(rows[k][k], -1, prime)
        for i in range(k + 1, size):
            q = rows[i][k] * unit % prime
            rows[i] = [(a - q * b) % prime for a, b in zip(rows[i], rows[k], strict=True)]
    assert all(diagonal % prime in (value, prime - value) for diagonal in diagonals)


def test_sizes_are_checked():
    with pytest.raises(MalformedError):
        multiply(((1, 2),), ((1,),))
    with pytest.raises(MalformedError):
        solve([[1, 2]], [1, 2])
    with pytest.raises(MalformedError):
        solve_mod([[1]], [1], -2)
    with pytest.raises(MalformedError):
        as_matrix([[0] * 1001] * 1001)


def test_only_unimodular_matrices_have_the_identity_as_their_form():
    assert not is_unimodular([[2, 0], [0, 1]])
    assert identity(2) != hnf([[2, 0], [0, 1]]).H
    assert not is_unimodular([[1, 0]])


def test_singular_prime_powers():
    # 2 x = 2 (mod 4) has the two solutions 1 and 3
    answer = solve_mod([[2]], [2], 4)
    assert answer.particular == (1,)
    assert answer.basis == ((2,),)
    assert not solve_mod([[4]], [2], 8)


def test_an_obstruction_is_checked_on_its_own():
    answer = solve_mod([[2, 4]], [1], 8)
    assert answer == NoSolution((1,), 2, 1)
    assert is_solution([[2, 4]], [1], 8, answer)
    assert not is_solution([[2, 4]], [1], 8, NoSolution((1,), 3, 1))
    assert not is_solution([[2, 4]], [2], 8, answer)


def test_lattices_are_canonical_and_refuse_other_bases():
    assert Lattice.spanned_by([(4, 2), (2, 4)]) == Lattice.spanned_by([(2, 4), (6, 6)])
    with pytest.raises(MalformedError) as error:
        Lattice(1, ((-2,),))
    assert code(error) == "LA723"
    with pytest.raises(MalformedError):
        Lattice.spanned_by([])
    assert Lattice.spanned_by([(2, 0)]).index == 0
    assert str(Lattice.spanned_by([(2, 0)])) == "Z{(2,0)}^2"
    assert eval(repr(Lattice.spanned_by([(2, 4)]))) == Lattice.spanned_by([(2, 4)])
