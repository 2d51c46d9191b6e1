"""The statement that no XOR of chunks takes fewer turns, asked of z3: words are counted, no ranks are taken.

Main statements: a group touches the places of a space, as often each as any other. Its turns are the places whose bank
is that of place 0, divided by those in the word of place 0. So a bound on turns is one on a weighted count of places,
each of which is in bank 0 where all its bank bits, exclusive ors of unknown bits, are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import matrix
from layoutalg.ground import solver
from layoutalg.synth.swizzles.search import Space


@solver.whole
def no_map(spaces: Sequence[Space], targets: Sequence[int], sources: Sequence[int], word: int, turns: int) -> None:
    """Return if no linear map from source bits to target bits takes so few turns.

    Args:
        spaces: Places that groups touch, as offsets without the map.
        targets: Offset bits that the map changes.
        sources: Offset bits that it reads.
        word: Log of the elements of a word.
        turns: The turns of all spaces.

    Raises: BudgetError: LA001, LA005 where there is such a map.

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
        raise solver.wrong_answer("whether an XOR of chunks takes fewer turns", "z3 has one, the search has none")
