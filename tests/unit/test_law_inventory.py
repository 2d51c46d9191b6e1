"""Every transfer function and every rewrite of the package is in a law, or is listed with a reason."""

from __future__ import annotations

import pytest
from law_inventory import Found, covered, excused, found_in, package, uses

from layoutalg.proofs.laws import laws

TEXTS = package()
OPEN = 22
"""Functions listed as having no law yet; this number is only ever lowered."""
FOUND = [each for module, text in TEXTS.items() for each in found_in(text, module)]

USES = {name: used for module, text in TEXTS.items() for name, used in uses(module, text).items()}
KNOWN = covered(laws(), USES)


def missing(found: list[Found], known: set[str]) -> list[str]:
    """Return what is neither in a law nor excused."""
    packages, functions = excused()
    return [
        each.name
        for each in found
        if each.name not in known
        and each.name not in functions
        and not any(each.name.startswith(f"{name}.") for name in packages)
    ]


def test_every_transfer_function_and_rewrite_is_in_a_law_or_excused() -> None:
    lacking = missing(FOUND, KNOWN)
    assert not lacking, f"name them in the `about` of a law, or with a reason in law_inventory.toml: {lacking}"


def test_reasons_are_given_for_functions_that_exist() -> None:
    packages, functions = excused()
    names = {each.name for each in FOUND}
    assert not set(functions) - names, "listed, but no net catches it"
    assert all(any(module == name or module.startswith(f"{name}.") for module in TEXTS) for name in packages)
    assert all(len(reason.split()) > 1 or reason == "pictures" for reason in (*packages.values(), *functions.values()))


def test_open_ones_only_become_fewer() -> None:
    still = [name for name, reason in excused()[1].items() if reason.startswith("no law yet") and name not in KNOWN]
    assert len(still) <= OPEN, "a function without a law was added: give it one"


def test_a_function_without_a_law_is_missed() -> None:
    name = "layoutalg.piecewise.boxes.demand"
    assert name in KNOWN
    assert missing(FOUND, KNOWN - {name}) == [name]
    without = [law for law in laws() if law.name != "intervals.demand"]
    assert name not in covered(without, {})


ROOM = '"""Bounds of sums by intervals."""\n\ndef sums(x: int) -> int:\n    return x\n'
WORD = '"""A room."""\n\ndef f(x: int) -> int:\n    """Return x rewritten."""\n    return x\n'
TYPE = '"""A room."""\n\nclass CuteLayout:\n    def g(self) -> CuteLayout | None:\n        return self\n'
PLAIN = '"""A room."""\n\ndef h(x: CuteLayout) -> int:\n    """Return the size."""\n    return 0\n'


@pytest.mark.parametrize(
    ("source", "name", "net"),
    [(ROOM, "room.sums", "rooms"), (WORD, "room.f", "words"), (TYPE, "room.CuteLayout.g", "types")],
)
def test_each_net_catches_by_itself(source: str, name: str, net: str) -> None:
    (found,) = found_in(source, "room")
    assert (found.name, found.nets) == (name, (net,))
    assert missing([found], set()) == [name]


def test_nets_let_plain_functions_through() -> None:
    assert not found_in(PLAIN, "room")


def test_private_functions_are_covered_by_what_calls_them() -> None:
    source = "def outer(x):\n    return _inner(x)\n\ndef _inner(x):\n    return x\n\ndef _other(x):\n    return x\n"
    law = next(each for each in laws() if each.name == "intervals.demand")
    known = covered([law], uses("layoutalg.piecewise.boxes", source.replace("outer", "demand")))
    assert "layoutalg.piecewise.boxes._inner" in known
    assert "layoutalg.piecewise.boxes._other" not in known
