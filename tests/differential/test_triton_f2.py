"""Linear layouts against the Triton binding: stored answers always, fresh ones where Triton can be run.

``tests/differential/triton_f2_oracle.py`` makes the answers and says how to make them again. Fresh ones need an
interpreter with Triton: this one, or the one that the environment variable ``LAYOUTALG_TRITON_PYTHON`` names. It runs
in a subprocess, since the binding aborts its process on misuse.

Where the answer is a choice the defining equation is compared; whether the choice is the same is reported besides.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from instruments.triton_peer import triton_python

from layoutalg import f2
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError

HERE = Path(__file__).parent
WHICH = ("facts", "apply", "sum", "compose", "inverse", "right_inverse", "one_d", "minimal", "same")
STORED = HERE.parent / "data" / "triton_f2.json"


def read(layout: list[Any]) -> LinearLayout:
    return LinearLayout.from_bases(layout[0], layout[1])


def check(case: list[Any], seen: Counter[str]) -> None:
    """Compare one case; count what was compared."""
    which, *rest = case
    seen[which] += 1
    if which == "one_d":
        size, stride, out, identity, strided, zeros = rest
        assert f2.identity_1d(size, "i", "o") == read(identity)
        assert f2.strided_1d(size, stride, "i", "o") == read(strided)
        assert f2.zeros_1d(size, "i", "o", out) == read(zeros)
        return
    if which == "minimal":
        names = [name for name, _ in rest[0][1]]
        if rest[1]:
            assert f2.from_bases_minimal(rest[0][0], names) == read(rest[1])
        else:
            with pytest.raises(AdmissibilityError, match="LA245"):
                f2.from_bases_minimal(rest[0][0], names)
        return
    one = read(rest[0])
    if which == "facts":
        tests, names, counts, rows = rest[1]
        assert [one.is_surjective, one.is_injective, one.is_invertible] == tests
        assert [list(one.in_dims), list(one.out_dims)] == names
        assert [len(one.in_axes), len(one.out_axes)] == counts
        assert [[column >> row & 1 for column in one.columns] for row in range(one.out_bits)] == rows
    elif which == "same":
        # the binding compares axes in order, and so does ``==``
        assert (one == read(rest[1])) == rest[2]
    elif which == "apply":
        assert [one.apply(x) for x in rest[1]] == rest[2]
    elif which == "sum":
        two, both = read(rest[1]), read(rest[2])
        assert one * two == both
        same_axes = len(both.in_axes) == len(two.in_axes) and len(both.out_axes) == len(two.out_axes)
        assert one * f2.divide_left(both, one) == both == f2.divide_right(both, two) * two
        if same_axes:
            assert f2.divide_left(both, one) == two
    elif which == "compose":
        assert read(rest[1]) @ one == read(rest[2])
    elif which == "inverse":
        assert one.inverse() == read(rest[1])
    elif which == "right_inverse":
        theirs = read(rest[1])
        assert one @ theirs == LinearLayout.identity(one.out_dims) == one @ f2.right_inverse(one)
        seen["right_inverse, same choice"] += theirs == f2.right_inverse(one)
    else:
        target, outer, theirs = one, read(rest[1]), read(rest[2])
        solutions = f2.solve(outer, target)
        target = LinearLayout.from_bases(rest[0][0], outer.out_dims)
        assert outer @ theirs == target == outer @ solutions.particular
        assert solutions.contains(theirs)
        assert outer @ solutions.choose("local") == target == outer @ solutions.choose(("lane",))
        seen["solve, same choice"] += theirs == solutions.particular
        seen["solve, unique"] += solutions.is_unique


@pytest.mark.peer
def test_stored_answers() -> None:
    stored = json.loads(STORED.read_text())
    seen: Counter[str] = Counter()
    for case in stored["cases"]:
        check(case, seen)
    assert stored["triton"] == "3.9.0"
    assert min(seen[which] for which in WHICH) >= 40
    assert seen["solve"] >= 150
    # the same rule (pivots are the lowest input bits) up to the axes that Triton removes beforehand
    assert seen["right_inverse, same choice"] >= 0.9 * seen["right_inverse"]


@pytest.mark.peer
def test_fresh_answers() -> None:
    python = triton_python(named=True)
    seed = random.SystemRandom().randrange(1 << 30)
    count = int(os.environ.get("LAYOUTALG_TRITON_CASES", "1000"))
    script = str(HERE / "triton_f2_oracle.py")
    done = subprocess.run([python, script, str(seed), str(count)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-2000:]}"
    seen: Counter[str] = Counter()
    for case in json.loads(done.stdout)["cases"]:
        try:
            check(case, seen)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {json.dumps(case)}") from error
    print(dict(seen))
