"""Layouts fixed by hardware or by the tile rules of compilers, as linear layouts over named axes.

Register families map ``register``, ``lane``, ``warp``, ``block`` to ``dim0``, ``dim1``, ...; shared-memory families map
``offset``, ``block`` to the same; tensor memory maps ``row``, ``col``, ``block``. Bits that hold copies are zero
vectors.
"""
