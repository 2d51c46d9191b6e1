"""What kernels on routed and paged rows share: their value, and how the threads of a block share rows.

Implementation notes: texts hardly depend on the number of rows, so that few compiled kernels serve all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID, status_words
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.kernels.vectors import PLAIN_LOOP, CopyLoop
from layoutalg.codegen.launch import place_map
from layoutalg.ground.record import Checked

THREADS = 256
WARP = 32
MOST_ROWS = 1 << 26
"""Of rows that are read again soon: no hints to the caches."""


@dataclass(frozen=True, slots=True)
class IndirectKernel(Checked):
    """A kernel on arrays, some of them indices, and what its launch needs.

    Args:
        kernel: The text and the numbers of a launch.
        blocks: Blocks of the grid; a launch with another grid is refused.
        what: What it does, in one line.
        moved_bytes: Minimum bytes read and written, indices included.
        arrays: The arrays, in parameter order.
        numbers: Values of the parameters behind the arrays.
        maps: Descriptors that stand for arrays, by their names, relative to the arrays' addresses.
        persistent: Whether blocks loop over tiles, so that any number of blocks from 1 to ``blocks`` works.
    """

    kernel: KernelSource
    blocks: int
    what: str
    moved_bytes: int
    arrays: tuple[ArrayArgument, ...]
    numbers: tuple[int, ...]
    maps: tuple[tuple[str, bytes], ...] = ()
    persistent: bool = False

    def _validate(self) -> None:
        grid = PERSISTENT_GRID if self.persistent else self.blocks
        object.__setattr__(self, "kernel", replace(self.kernel, grid=grid))

    def __str__(self) -> str:
        arrays = ", ".join(f"{each.name} {'x'.join(map(str, each.shape))}" for each in self.arrays)
        return "\n".join([
            f"kernel        {self.kernel.name} for {self.kernel.arch}: {self.what}",
            f"  launch      {'1 to ' * self.persistent}{self.blocks} blocks of {self.kernel.threads} threads, "
            f"{self.kernel.dynamic_smem_bytes} bytes of shared memory",
            f"  arrays      {arrays}",
        ])  # fmt: skip

    def arguments(self, blocks: int | None = None, status: Place | None = None, **places: Place) -> list[Any]:
        """Return the arguments of a launch: every array by its name, an address or an array of its extents.

        Args:
            blocks: Blocks of the launch of a persistent kernel; by default one per tile.
            status: Array for one status word per block of a persistent kernel, 1 on success; by default a new array.
            places: The arrays.

        Raises: MalformedError: LA945, LA947.
        """
        names = [each.name for each in self.arrays]
        if sorted(places) != sorted(names):
            raise CHECK.malformed("arrays", f"must be {', '.join(names)}", tuple(places))
        addresses = checked_places(self.arrays, places)
        maps, found = dict(self.maps), list[Any]()
        for each, address in zip(self.arrays, addresses, strict=True):
            there = places[each.name] if each.nbytes else address
            found.append(place_map(maps[each.name], address) if each.name in maps else there)
        found += self.numbers
        count = CHECK.integer(self.blocks if blocks is None else blocks, "blocks", 1, self.blocks + 1)
        if not self.persistent:
            if count != self.blocks:
                raise CHECK.malformed("blocks", f"must be {self.blocks} or left out: it is not persistent", count)
            return found
        return [*found, count, status_words(count, status)]


def index_list(name: str, count: int, size: int = 4, written: bool = False) -> ArrayArgument:
    """Return the argument of a list of indices."""
    return ArrayArgument(name, (count,), size, size, written=written, indices=True)


@dataclass(frozen=True, slots=True)
class Share:
    """How threads of a block share rows of vectors."""

    width: int  # threads of a row, a power of two
    each: int  # vectors of a thread
    parts: int  # blocks' parts of a row
    vectors: int  # vectors of a row
    threads: int = field(default=THREADS, repr=False)  # threads of a block
    # C expression of the number of a block's part, if it has several
    unit: str = field(default="blockIdx.x", repr=False)

    @classmethod
    def of(cls, vectors: int, most: int = 8, least: int = 1, threads: int = THREADS) -> Share:
        """Return the share with the fewest idle vectors, then with the most threads for a row.

        Args:
            vectors: Vectors of a row.
            most: Most vectors of a thread.
            least: Vectors of a thread that are worth fewer threads for a row, down to a warp.
            threads: Threads of a block, a power of two.

        Example:
            >>> Share.of(896), Share.of(12)
            (Share(width=128, each=7, parts=1, vectors=896), Share(width=4, each=3, parts=1, vectors=12))
            >>> Share.of(256), Share.of(256, least=4)
            (Share(width=256, each=1, parts=1, vectors=256), Share(width=64, each=4, parts=1, vectors=256))
        """

        def rank(width: int) -> tuple[int, bool, int]:
            each = min(most, -(-vectors // width))
            return -(-vectors // (width * each)) * width * each - vectors, each < least and width > WARP, -width

        widths = [1 << bit for bit in range(threads.bit_length())]
        width = min([each for each in widths if each <= 2 * vectors], key=rank)
        each = min(most, -(-vectors // width))
        return cls(width, each, -(-vectors // (width * each)), vectors, threads)

    @property
    def together(self) -> int:
        """Rows of a block."""
        return self.threads // self.width

    @property
    def row(self) -> str:
        """C expression of the row of a thread."""
        mine = f"{self.unit} / {self.parts}u" if self.parts > 1 else self.unit
        return f"{mine} * {self.together}u + threadIdx.x / {self.width}u" if self.together > 1 else mine

    @property
    def at(self) -> str:
        """C expression of its first vector."""
        lane = f"threadIdx.x % {self.width}u" if self.together > 1 else "threadIdx.x"
        return f"{self.unit} % {self.parts}u * {self.width * self.each}u + {lane}" if self.parts > 1 else lane

    def blocks(self, rows: int) -> int:
        """Blocks for so many rows."""
        return max(1, -(-rows // self.together) * self.parts)

    def guard(self, number: int, below: str = "") -> str:
        """C condition that a thread's vector is in its row, or below a bound; empty if all are."""
        whole = self.width * self.each * self.parts == self.vectors
        return "" if whole and not below else f"at + {number * self.width}u < {below or f'{self.vectors}u'}"

    def moves(
        self, target: str, have: str = "", room: str = "", names: tuple[str, str] = ("from", "there"),
        indents: tuple[int, int] = (4, 4), loop: CopyLoop = PLAIN_LOOP,
    ) -> tuple[str, str]:  # fmt: skip
        """C statements that load a thread's vectors and that store them.

        Args:
            target: The target.
            have: Vectors of the row that are loaded, the others are zeros; by default all.
            room: Vectors of the row that are stored; by default all.
            names: The pointers to the thread's first vector.
            indents: Blanks before loads and stores.
            loop: The operators of caches.
        """
        guards = (lambda number: self.guard(number, have)), (lambda number: self.guard(number, room))
        return loop.moves(target, self.width, names, self.each, guards, indents)
