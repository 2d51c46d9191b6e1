"""F2 linear algebra against enumeration of all vectors."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.f2 import carry, matrix
from layoutalg.ground.errors import AdmissibilityError

columns_of = st.integers(1, 6).flatmap(lambda rows: st.lists(st.integers(0, 2**rows - 1), max_size=6))
any_integer = st.one_of(st.integers(-40, 40), st.integers(0, 7).map(lambda k: 1 << k), st.integers(-(2**40), 2**40))


def brute(columns: list[int], vector: int) -> int:
    """The product by definition, one column at a time."""
    value = 0
    for index, column in enumerate(columns):
        if vector >> index & 1:
            value ^= column
    return value


def span(columns: list[int] | tuple[int, ...]) -> set[int]:
    return {brute(list(columns), x) for x in range(1 << len(columns))}


@given(columns_of)
def test_rank_image_and_kernel_count_what_enumeration_counts(columns: list[int]) -> None:
    image = span(columns)
    kernel = {x for x in range(1 << len(columns)) if brute(columns, x) == 0}
    assert 1 << matrix.rank(columns) == len(image)
    assert span(matrix.image_basis(columns)) == image
    assert span(matrix.kernel(columns)) == kernel
    assert len(matrix.image_basis(columns)) + len(matrix.kernel(columns)) == len(columns)


@given(columns_of, columns_of)
def test_equal_spaces_have_equal_reduced_bases(left: list[int], right: list[int]) -> None:
    assert (span(left) == span(right)) == (matrix.image_basis(left) == matrix.image_basis(right))


@given(columns_of, st.integers(0, 63))
def test_solve_returns_all_solutions(columns: list[int], target: int) -> None:
    wanted = {x for x in range(1 << len(columns)) if brute(columns, x) == target}
    answer = matrix.solve(columns, target)
    assert (answer is None) == (not wanted)
    if answer is not None:
        particular, kernel = answer
        assert {particular ^ free for free in span(kernel)} == wanted


@given(st.integers(0, 7).flatmap(lambda n: st.lists(st.integers(0, 2**n - 1), min_size=n, max_size=n)))
def test_inverse_undoes_or_shows_a_kernel_vector(columns: list[int]) -> None:
    size = 1 << len(columns)
    if len(span(columns)) == size:
        answer = list(matrix.inverse(columns))
        assert all(brute(answer, brute(columns, x)) == x for x in range(size))
    else:
        with pytest.raises(AdmissibilityError) as caught:
            matrix.inverse(columns)
        witness = caught.value.diagnostic.witness
        assert witness is not None
        vector = witness["kernel"]
        assert isinstance(vector, int)
        assert vector
        assert brute(columns, vector) == 0


@given(st.integers(1, 60).flatmap(lambda n: st.lists(st.integers(0, 2**n - 1), min_size=n, max_size=n)))
def test_large_inverses_multiply_to_the_identity(columns: list[int]) -> None:
    identity = tuple(1 << bit for bit in range(len(columns)))
    try:
        answer = matrix.inverse(columns)
    except AdmissibilityError:
        assert matrix.rank(columns) < len(columns)
        return
    assert matrix.multiply(answer, columns) == identity == matrix.multiply(columns, answer)


@given(columns_of, st.lists(st.integers(0, 2**6 - 1), max_size=5), st.integers(0, 2**40))
def test_products_tables_and_transposes(left: list[int], right: list[int], constant: int) -> None:
    right = [value & ((1 << len(left)) - 1) for value in right]
    product = list(matrix.multiply(left, right))
    assert all(brute(product, x) == brute(left, brute(right, x)) for x in range(1 << len(right)))
    assert matrix.table(left, constant).tolist() == [brute(left, x) ^ constant for x in range(1 << len(left))]
    flipped = matrix.transpose(left, 6)
    assert all((flipped[r] >> c & 1) == (left[c] >> r & 1) for r in range(6) for c in range(len(left)))
    assert matrix.transpose(flipped, len(left)) == tuple(left)


@settings(max_examples=300)
@given(st.data())
def test_products_of_any_size_and_density(data: st.DataObject) -> None:
    # around 32 and 64 rows the packed product changes its word; above, it hands over
    rows = data.draw(st.sampled_from([1, 7, 31, 32, 33, 63, 64, 65, 100]))
    left = data.draw(st.lists(st.integers(0, 2**rows - 1), min_size=1, max_size=70))
    right = data.draw(st.lists(st.integers(0, 2 ** len(left) - 1), max_size=12))
    assert list(matrix.multiply(left, right)) == [brute(left, vector) for vector in right]
    with pytest.raises(IndexError):
        matrix.multiply(left, [*right, *[2 ** (len(left) + 1) - 1] * 8])


@given(columns_of, columns_of)
def test_intersection_and_common_complement(left: list[int], right: list[int]) -> None:
    assert span(matrix.intersection(left, right)) == span(left) & span(right)
    free = matrix.common_complement(left, right, 6)
    assert len(free) == matrix.rank(free) == 6 - max(matrix.rank(left), matrix.rank(right))
    assert span(free) & span(left) == {0} == span(free) & span(right)


def first_departure(values: list[int]) -> int | None:
    """The least index where the values leave the affine map fixed by 0 and the powers of two."""
    bits = len(values).bit_length() - 1
    for index, value in enumerate(values):
        forced = values[0]
        for bit in range(bits):
            if index >> bit & 1:
                forced ^= values[1 << bit] ^ values[0]
        if forced != value:
            return index
    return None


@settings(max_examples=400)
@given(any_integer, st.lists(any_integer, max_size=5))
def test_the_carry_free_lemma(offset: int, addends: list[int]) -> None:
    values = [offset + sum(a for j, a in enumerate(addends) if x >> j & 1) for x in range(1 << len(addends))]
    wrong = first_departure(values)
    columns = carry.sum_of_bits(offset, addends)
    if wrong is None:
        assert columns == tuple(values[1 << j] ^ values[0] for j in range(len(addends)))
    else:
        assert columns is None
        assert wrong.bit_count() == 2


@settings(max_examples=400)
@given(st.lists(any_integer, max_size=5), any_integer, any_integer)
def test_an_offset_after_an_affine_map(columns: list[int], constant: int, offset: int) -> None:
    values = [offset + (constant ^ brute(columns, x)) for x in range(1 << len(columns))]
    wrong = first_departure(values)
    answer = carry.shifted(columns, constant, offset)
    if wrong is None:
        assert answer == (tuple(values[1 << j] ^ values[0] for j in range(len(columns))), values[0])
    else:
        assert answer is None
        assert wrong.bit_count() == 2


def disjoint(columns: tuple[int, ...]) -> bool:
    return all(not a & b for a, b in itertools.combinations(columns, 2))


@given(columns_of)
def test_one_swizzle_finds_a_swizzle_whenever_there_is_one(columns: list[int]) -> None:
    found = carry.one_swizzle(columns)
    tried = [(0, 0, 0)] + [
        (bits, base, sign * distance)
        for bits in range(1, 7)
        for base in range(7)
        for distance in range(bits, 9)
        for sign in (1, -1)
    ]
    exists = any(disjoint(carry.swizzle_columns(*fields, columns)) for fields in tried)
    assert (found is not None) == exists
    if found is not None:
        assert disjoint(carry.swizzle_columns(*found, columns))
        assert carry.swizzle_columns(*found, carry.swizzle_columns(*found, columns)) == tuple(columns)
