"""Bank conflicts by ranks against counting the words of every bank."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg import f2
from layoutalg.f2 import LinearLayout


def touched(value: int, element_bits: int, banks: int, bank_bits: int) -> set[tuple[int, int]]:
    """The (bank, word) pairs of one element, from the bits it occupies in memory."""
    first = value * element_bits
    words = range(first // bank_bits, (first + element_bits - 1) // bank_bits + 1)
    return {(word % banks, word) for word in words}


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([4, 8, 16, 32, 64, 128]),
    st.sampled_from([1, 2, 4, 32, 64]),
    st.sampled_from([32, 64]),
    st.integers(1, 11),
    st.data(),
)
def test_wavefronts_count_the_words_of_the_fullest_bank(
    element_bits: int, banks: int, bank_bits: int, width: int, data: st.DataObject
) -> None:
    value = data.draw(
        st.sampled_from([st.integers(0, (1 << width) - 1), st.sampled_from([0, *(1 << b for b in range(width))])])
    )
    columns = tuple(data.draw(st.lists(value, max_size=6)))
    lanes = data.draw(st.integers(0, len(columns)))
    constant = data.draw(st.integers(0, (1 << width) - 1))
    access = LinearLayout(
        (("register", len(columns) - lanes), ("lane", lanes)), (("offset", width),), columns, constant
    )
    words: dict[int, set[int]] = defaultdict(set)
    each = [touched(access.at(x), element_bits, banks, bank_bits) for x in range(access.size)]
    for bank, word in set().union(*each):
        words[bank].add(word)
    count = f2.conflict_degree(access, element_bits, banks=banks, bank_bits=bank_bits)
    assert count == max(map(len, words.values()))
    step = f2.bank_conflict(access, element_bits, banks=banks, bank_bits=bank_bits)
    assert (step is None) == (count == 1)
    if step is not None:
        packed = step["register"] | step["lane"] << access.in_axes[0][1]
        for x in range(access.size):
            both = each[x] | each[x ^ packed]
            assert len({bank for bank, _ in both}) < len(both)
