"""Transfers as values: what moves a tile from one space to another, and how others learn that it has.

A transfer is a tile, a primitive and a protocol; transfers compose to a route where one ends in the space, the shape
and the bytes with which the next begins. What a pipeline has to do around them follows: the bytes that barriers expect,
who arrives, and the proxy fences between accesses of different proxies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.pipeline.ops import CHECK, COPIES, GENERIC, GROUPED, MOST_CTAS, SIGNALS
from layoutalg.proofs.tile_map import extents_of, layout_of

Space: TypeAlias = Literal["global", "shared", "registers", "accumulator"]
Proxy: TypeAlias = Literal["generic", "async"]


PRIMITIVES: Final[Mapping[str, tuple[Space, Space]]] = {
    "tma_load": ("global", "shared"),
    "cp_async": ("global", "shared"),
    "write": ("registers", "shared"),
    "read": ("shared", "registers"),
    "dsmem_copy": ("shared", "shared"),
    "mma": ("shared", "accumulator"),
    "tma_store": ("shared", "global"),
}
"""Ops that move a tile: from where to where."""
FILLS: Final = tuple(name for name, (source, target) in PRIMITIVES.items() if target == "shared" != source)
DRAINS: Final = tuple(name for name, (source, target) in PRIMITIVES.items() if source == "shared" != target)
IN_CLUSTERS: Final = ("tma_load", "dsmem_copy", "read")
SHARE_BYTES: Final = 16
"""A bulk copy moves a multiple of so many (PTX ISA 9.1, cp.async.bulk)."""


def protocols(primitive: str) -> tuple[str, ...]:
    """Return how the end of a transfer can be told, by default the first.

    ``"mbarrier"``: it signals a barrier when it is done (copies by bytes, others by an arrival); ``"group"``: its role
    commits a group and waits for it; ``"program"``: it is done when the role goes on. Then the role arrives itself.
    """
    if primitive in GROUPED:
        return ("group", *["mbarrier"] * (GROUPED[primitive] in SIGNALS.values()))
    return ("mbarrier",) if primitive in COPIES else ("program",)


@dataclass(frozen=True, slots=True)
class Transfer(Checked, code="LA970"):
    """How one tile is moved.

    Args:
        bytes: Bytes of the tile in each CTA that has it.
        primitive: A name in ``PRIMITIVES``: the op of a pipeline.
        protocol: How its end is told; by default the first of the primitive.
        shape: Extents of the tile, outermost first; none if not known.
        ctas: Groups of CTAs. ``tma_load``: they have the same tile, and each copies a share to all of its group.
            ``dsmem_copy``: each copies a share of its own tile to each other one, and so gets a tile of their shares.
            ``read``: each reads the tiles of all of its group, as conversions of registers across a cluster do.

    Example:
        >>> import layoutalg as la
        >>> plan = la.tensormap(la.Tensor((1024, 1024), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
        >>> load = Transfer.of(plan, "tma_load", ctas=((0, 1),))
        >>> load.shape, load.bytes, load.share, load.scope, load.proxy
        ((64, 64), 8192, 4096, 'cluster', 'async')
        >>> print(load.then(Transfer.of("Sw<3,3,3> o 0 o (64,64):(64,1)", "mma", dtype="bf16")))
        tma_load (mbarrier), mma (group): (64, 64), 8192 bytes, global to accumulator, scope cluster
        >>> print(Transfer(8192, "write").then(Transfer(8192, "tma_store")))
        write (program), tma_store (group): 8192 bytes, registers to global, scope cta, proxy fence before tma_store
        >>> sums = Transfer(12288, "write").then(Transfer(12288, "dsmem_copy", ctas=((0, 1, 2, 3),)))
        >>> sums.transfers[1].share, sums.transfers[1].reaches[1]
        (4096, (2, 3, 0))
        >>> print(sums.then(Transfer(12288, "read")))
        write (program), dsmem_copy (mbarrier), read (program): 12288 bytes, registers to registers, scope cluster, \
proxy fence before dsmem_copy, proxy fence before the next dsmem_copy
    """

    bytes: int
    primitive: str
    protocol: str = ""
    shape: tuple[int, ...] = ()
    ctas: tuple[tuple[int, ...], ...] = ()

    def _validate(self) -> None:
        CHECK.integer(self.bytes, "bytes", 1)
        CHECK.choice(self.primitive, "primitive", PRIMITIVES)
        known = protocols(self.primitive)
        if not self.protocol:
            object.__setattr__(self, "protocol", known[0])
        CHECK.choice(self.protocol, f"protocol of {self.primitive}", known)
        together = [cta for group in self.ctas for cta in group]
        for cta in together:
            CHECK.integer(cta, "ctas", 0, MOST_CTAS)
        if together and self.primitive not in IN_CLUSTERS:
            raise CHECK.malformed("ctas", f"are for {', '.join(IN_CLUSTERS)}", self.ctas)
        if sorted(together) != list(range(len(together))) or len({*map(len, self.ctas)}) > 1:
            raise CHECK.malformed("ctas", "must be groups of one size of all CTAs of a cluster", self.ctas)
        if self.primitive == "dsmem_copy" and self.ctas and len(self.ctas[0]) < 2:
            raise CHECK.malformed("ctas", "must be groups of at least two CTAs", self.ctas)
        if self.proxy == "async" and self.ctas and self.bytes % (SHARE_BYTES * self._shares):
            rule = f"must be shares of a multiple of {SHARE_BYTES} bytes for {self._shares} CTAs"
            raise CHECK.malformed("bytes", rule, self.bytes)

    @classmethod
    def of(
        cls,
        tile: object,
        primitive: str,
        protocol: str = "",
        *,
        dtype: object = None,
        ctas: Sequence[Sequence[int]] = (),
    ) -> Transfer:
        """Return the transfer of a plan, a layout or a number of bytes.

        Args:
            tile: A plan of a copy (its tile and ``expect_tx_bytes``), a layout or its text, or the bytes.
            primitive: A name in ``PRIMITIVES``.
            protocol: How its end is told.
            dtype: Element type, for a layout.
            ctas: Groups of CTAs that copy a tile together.

        Raises: MalformedError: LA970: the primitive, protocol, groups or tile do not fit; codes of layouts and types.
        """
        shape: tuple[int, ...] = ()
        given: Any = tile
        if hasattr(tile, "expect_tx_bytes"):
            shape = tuple(getattr(given, "tile", None) or getattr(getattr(given, "problem", None), "tile", None) or ())
            stores = getattr(given, "direction", "load") == "store"
            if stores != (primitive == "tma_store"):
                raise CHECK.malformed("primitive", f"must fit a plan that {'stores' if stores else 'loads'}", primitive)
            given = given.expect_tx_bytes
        elif dtype is not None:
            bits = element_type(dtype).bits
            shape = extents_of(layout_of(tile, None, max(1, bits // 8)), None)
            given = -(-math.prod(shape) * bits // 8)
        groups = tuple([tuple(group) for group in ctas])
        return cls(CHECK.integer(given, "tile", 1, rule="must be a plan, a number of bytes, or a layout with dtype"),
                   primitive, protocol, shape, groups)  # fmt: skip

    @property
    def reaches(self) -> tuple[tuple[int, ...], ...]:
        """The CTAs to which each CTA copies; one entry if they are the same for all, none without a cluster."""
        group = {cta: members for members in self.ctas for cta in members}
        if self.primitive == "dsmem_copy":  # each begins with its neighbour, so that they do not all send to one
            return tuple(
                [
                    tuple(members[(members.index(cta) + far) % len(members)] for far in range(1, len(members)))
                    for cta, members in sorted(group.items())
                ]
            )
        return self.ctas if len(self.ctas) < 2 else tuple([group[cta] for cta in sorted(group)])

    @property
    def share(self) -> int:
        """Bytes that one CTA copies at once: to all of its group, or to one of it."""
        return self.bytes // self._shares

    @property
    def _shares(self) -> int:
        """The CTAs whose shares make up a tile."""
        if not self.ctas or self.primitive == "read":
            return 1
        return len(self.ctas[0]) - (self.primitive == "dsmem_copy")

    @property
    def source(self) -> Space:
        """Where the tile comes from."""
        return PRIMITIVES[self.primitive][0]

    @property
    def target(self) -> Space:
        """Where the tile goes to."""
        return PRIMITIVES[self.primitive][1]

    @property
    def proxy(self) -> Proxy:
        """The proxy of its access to shared memory."""
        return "generic" if self.primitive in GENERIC else "async"

    @property
    def scope(self) -> Literal["cta", "cluster"]:
        """Whether other CTAs take part."""
        return "cluster" if self.ctas else "cta"

    @property
    def is_grouped(self) -> bool:
        """Whether its role waits for it in groups."""
        return self.protocol == "group"

    def then(self, other: Transfer) -> Route:
        """Return the route of this transfer and another one."""
        return Route((self,)).then(other)


@dataclass(frozen=True, slots=True)
class Route(Checked, code="LA970"):
    """Transfers one after the other, each from where the one before went to; see ``Transfer.then``."""

    transfers: tuple[Transfer, ...]

    def _validate(self) -> None:
        if not self.transfers:
            raise CHECK.malformed("transfers", "must be at least one", ())
        for one, other in itertools.pairwise(self.transfers):
            ends = (
                (one.target, other.source, "space"),
                (one.bytes, other.bytes, "bytes"),
                (one.shape, other.shape, "shape"),
            )
            for left, right, what in ends:
                if left != right and not (what == "shape" and not (left and right)):
                    rule = f"must begin with the {what} {left} of the {one.primitive} before it"
                    raise CHECK.malformed(other.primitive, rule, right)

    def then(self, other: Transfer) -> Route:
        """Return the route with one more transfer."""
        return Route((*self.transfers, CHECK.kind(other, Transfer, "other")))

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.transfers[0].bytes

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the tile; none if no transfer knows them."""
        return next((one.shape for one in self.transfers if one.shape), ())

    @property
    def source(self) -> Space:
        """Where it begins."""
        return self.transfers[0].source

    @property
    def target(self) -> Space:
        """Where it ends."""
        return self.transfers[-1].target

    @property
    def proxies(self) -> tuple[Proxy, ...]:
        """The proxy of each transfer."""
        return tuple([one.proxy for one in self.transfers])

    @property
    def scope(self) -> Literal["cta", "cluster"]:
        """The widest scope of its transfers."""
        return "cluster" if any(one.ctas for one in self.transfers) else "cta"

    @property
    def fences(self) -> tuple[str, ...]:
        """Where a proxy fence has to come: after a generic write, and after a generic read before the next copy."""
        found = []
        for one, other in itertools.pairwise(self.transfers):
            if one.target == "shared" and one.proxy == "generic" and other.proxy == "async":
                found.append(f"before {other.primitive}")
        for one, other in itertools.pairwise(self.transfers):
            if one.target == "shared" and one.proxy == "async" and other.proxy == "generic":
                found.append(f"before the next {one.primitive}")
        return tuple(found)

    def __str__(self) -> str:
        told = [f"{', '.join(map(str, self.shape))}".join("()")] * bool(self.shape)
        told += [f"{self.bytes} bytes", f"{self.source} to {self.target}", f"scope {self.scope}"]
        told += [f"proxy fence {place}" for place in self.fences]
        return f"{', '.join(f'{one.primitive} ({one.protocol})' for one in self.transfers)}: {', '.join(told)}"
