"""Confirm with z3 that no XOR of chunks takes fewer turns, by counting words instead of computing ranks.

A group touches every place of a space equally often. Its turns are the number of places in the bank of place 0 divided
by the number in the word of place 0. So a bound on turns is a bound on a weighted count of places; a place is in bank 0
iff all its bank bits, XORs of unknown bits, are 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import matrix
from layoutalg.ground import solver
from layoutalg.synth.swizzles.search import Space


@solver.whole
def no_map(spaces: Sequence[Space], targets: Sequence[int], sources: Sequence[int], word: int, turns: int) -> None:
    """Return normally iff no linear map from source bits to target bits takes at most ``turns`` turns.

    Args:
        spaces: Places that groups touch, as offsets without the map.
        targets: Offset bits that the map changes.
        sources: Offset bits that it reads.
        word: log2 of the elements per word.
        turns: Total turns of all spaces.

    Raises: BudgetError: LA001, or LA005 if there is such a map.

    Example:
        >>> no_map([Space((1, 2), 1, 1, 0)], [0], [1], 0, 1)
    """
    asked = solver.session()
    z3 = asked.z3
    unknown = {(to, of): z3.Bool(f"f{to}_{of}", asked.context) for to in targets for of in sources}
    scale = max(space.inside for space in spaces)
    terms = []
    for space in spaces:
        for number in range(1 << len(space.basis)):
            place = matrix.apply(space.basis, number)
            bits = []
            for bank in range(space.mask.bit_length()):
                value = z3.BoolVal(bool(place >> bank + word & 1), asked.context)
                for of in sources:
                    if place >> of & 1 and (bank + word, of) in unknown:
                        value = z3.Xor(value, unknown[bank + word, of])
                bits.append(value)
            home = z3.Not(z3.Or(bits)) if bits else z3.BoolVal(True, asked.context)
            terms.append((home, space.weight << scale - space.inside))
    asked.solver.add(z3.PbLe(terms, turns << scale))
    found = solver.solve(asked, "whether an XOR of chunks takes fewer turns", [])
    if found is not None:
        raise solver.wrong_answer("whether an XOR of chunks takes fewer turns", "z3 found one, the search did not")
