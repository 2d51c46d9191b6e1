"""Facts of descriptors: of a tensor map, its bytes or the call that encodes it, and of a matrix descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from layoutalg.ask.facts import Fact, said
from layoutalg.proofs.tensormap.plan import tensor_map_to_json
from layoutalg.targets.nvidia import tcgen05, wgmma
from layoutalg.targets.nvidia import tensormap as hardware


def dump_facts(text: str, target: str) -> Iterator[Fact]:
    """Yield the facts of the map that a dump of bytes shows."""
    reading = hardware.read_map(text, target)
    if reading.form:
        yield said("read as", reading.form)
    yield from bytes_facts(reading.raw, target)


def call_facts(text: str, target: str) -> Iterator[Fact]:
    """Yield the facts of the map that a call of the driver encodes, or the rules that it breaks."""
    found = hardware.diagnose(text, target)
    yield said("read as", found.read_as)
    if found.tensor_map is None or not found.accepted:
        troubles = [trouble for trouble in found.troubles if trouble.enforced]
        yield said("refused", [str(each) for each in troubles], holds=False)
        return
    yield from map_facts(found.tensor_map, target)


def bytes_facts(raw: bytes, target: str) -> Iterator[Fact]:
    """Decode a map; bytes that are not a map raise an error naming the illegal field and its bits."""
    return map_facts(hardware.decode(raw, target=target), target)


def map_facts(tm: hardware.TensorMap, target: str) -> Iterator[Fact]:
    """Yield the fields of a map, those that no document allows, and what a copy by it needs."""
    for key, value in tensor_map_to_json(tm).items():
        yield Fact(key, (str(value),), value)
    documented = hardware.violations(tm, target=target, evidence="documented")
    if documented:
        found = [violation.to_json() for violation in documented]
        yield said("undocumented", [str(violation) for violation in documented], found)
    transaction, footprint = hardware.transaction_bytes(tm), hardware.footprint_bytes(tm)
    align = hardware.tile_align_bytes(tm.swizzle)
    yield said("barrier", f"{transaction} bytes per copy", {"bytes": transaction})
    text = f"{footprint} bytes, base aligned to {align}"
    yield said("shared", text, {"bytes": footprint, "align_bytes": align})


def word_facts(word: int, target: str) -> Iterator[Fact]:
    """Decode the 64 bits of a matrix descriptor of ``tcgen05`` where the target has it, otherwise of ``wgmma``."""
    return matrix_facts((tcgen05 if target in tcgen05.ARCHS else wgmma).decode(word), target)


def matrix_facts(found: wgmma.MatrixDescriptor | tcgen05.MatrixDescriptor, _target: str) -> Iterator[Fact]:
    """Yield the fields of a matrix descriptor."""
    kind = "tcgen05" if isinstance(found, tcgen05.MatrixDescriptor) else "wgmma"
    yield said("matrix", f"{found.encode():#018x} of {kind}", {"encoded": f"{found.encode():#018x}", "of": kind})
    for entry in fields(found):
        value = getattr(found, entry.name)
        yield Fact(entry.name, (str(value),), value)
