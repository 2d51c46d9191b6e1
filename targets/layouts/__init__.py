"""Layouts fixed by hardware or by the tile rules of compilers, as linear layouts over named axes.

Register families (``blocked``, ``nvidia``, ``amd``, ``scales``) map ``register``, ``lane``, ``warp``, ``block`` to
``dim0``, ``dim1``, ...; shared-memory families (``shared``, ``padding``, ``amd_shared``) map ``offset``, ``block`` and,
where the memory is partitioned, ``partition`` to the same; tensor memory (``tmem``, ``scales``) maps ``row``, ``col``,
``block``. Bits that hold copies are zero vectors.
"""
