"""Pick the variant of a kernel for given sizes; a miss runs the general kernel while the variant compiles."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final

from layoutalg.codegen.compile import nvrtc_version, to_cubin
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.variants.cache import CHECK, Cache, Key
from layoutalg.ground.conditions import conditions
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError, MalformedError
from layoutalg.ground.polynomial import name_of, require_names, sizes_do_not_fit, sizes_of
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Verdict
from layoutalg.ground.version import __version__
from layoutalg.proofs.symbolic.dispatch import Dispatch, more_specific, prove_dispatch
from layoutalg.proofs.symbolic.guard import Guard
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.synth.symbolic.explore import VARIANTS, SymbolicSizes, explore, plan_of, run

NAMES: Final = 64
"""names: of the sizes that variants depend on"""
EARLY: Final = 256
"""sizes: picked before the variants are known, whose variants are made first"""


@dataclass(frozen=True, slots=True)
class Picked:
    """A variant that is ready to run.

    Args:
        guard: The sizes for which it is right, in the domain.
        plan: Its symbolic plan, or None.
        kernel: Its kernel, or None if the builder returns only plans.
        cubin: The compiled kernel; empty without one.
        exact: Whether it is the variant for these sizes; False while that one compiles or if it failed.
    """

    guard: Guard
    plan: SymbolicPlan | None
    kernel: KernelSource | None
    cubin: bytes
    exact: bool


@dataclass(frozen=True, slots=True)
class VariantRow(Record, code="LA507"):
    """What became of one variant.

    Args:
        guard: Its guard.
        state: ``"waiting"`` (no size of it was picked), ``"compiling"``, ``"ready"`` or ``"failed"``.
        source: ``"compiled"``, ``"cache"``, or empty.
        hits: Picks that returned it.
        cubin_bytes: Size of its machine code.
        seconds: Time to load or compile it.
        note: Why it failed, why a cache entry was refused, or why none was written.
    """

    guard: str
    state: str
    source: str = ""
    hits: int = 0
    cubin_bytes: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class VariantReport(Record, code="LA507", schema="layoutalg/variants/1", json="picks misses hit_rate rows"):
    """What picking did so far.

    Args:
        picks: Number of picks.
        misses: Those that returned another variant than that of their sizes.
        rows: The variants; the general one is last.
    """

    picks: int
    misses: int
    rows: tuple[VariantRow, ...]

    @property
    def hit_rate(self) -> float:
        """Part of the picks that returned the variant of their sizes."""
        return 1 - self.misses / self.picks if self.picks else 1.0

    def __str__(self) -> str:
        lines = [f"{self.picks} picks, {self.misses} misses, hit rate {self.hit_rate:.1%}"]
        for row in self.rows:
            made = f"{row.cubin_bytes} bytes, {row.seconds:.3f} s {row.source}" if row.source else ""
            lines.append(
                f"  {row.state:<9} {row.guard}: " + ", ".join(filter(None, (f"{row.hits} hits", made, row.note)))
            )
        return "\n".join(lines)


class _Slot:
    """A variant while it is made."""

    def __init__(self, guard: Guard, made: Any, rank: int = 0) -> None:
        self.guard, self.made = guard, made
        self.rank = rank
        """Larger than that of every variant whose guard this one's implies."""
        self.state, self.source, self.note = "waiting", "", ""
        self.cubin, self.seconds, self.hits = b"", 0.0, 0
        self.ready: tuple[Picked, Picked] | None = None
        """What is returned for sizes of a more specific variant, and for its own."""

    def row(self) -> VariantRow:
        """Return what the report shows."""
        seconds = round(self.seconds, 4)
        return VariantRow(str(self.guard), self.state, self.source, self.hits, len(self.cubin), seconds, self.note)


class Variants:
    """The variants of a kernel over a domain of sizes.

    The builder runs once on nothing but the domain, for the general kernel, which is compiled here. In the background
    it runs on symbolic sizes (``synth.symbolic.explore``), which gives the variants and their guards; a variant is
    compiled when it is first picked. Threads may share one.

    Args:
        build: Takes ``SymbolicSizes`` and returns a ``KernelSource`` (or an object with one as ``.kernel``), a
            ``SymbolicPlan``, or (plan, kernel). It may use of the sizes only what ``sizes.holds(...)`` answered.
        names: Names of the sizes.
        domain: Conditions on the sizes for which there are variants, such as ``"n <= 8192"``.
        general: What is right in the whole domain, in place of what the builder makes for it.
        cache: A folder of compiled kernels.
        most: Maximum number of variants.
        dtype: Element type, for the key of the cache.
        compile: From a kernel to machine code; NVRTC by default.
        toolkit: Name and version of the compiler; needed for a cache if it is not NVRTC.
        executor: Where variants are made; one thread by default. It must share this process.

    Example:
        >>> def build(sizes):
        ...     width = 16 if sizes.holds("n % 8 == 0") else 2
        ...     text = f'extern "C" __global__ void f(int n) {{ /* {width} bytes */ }}'
        ...     return KernelSource("f", text, "sm_90a", 128, 0, (("int", "n"),))
        >>> with Variants(build, "n", domain="n <= 8192", compile=lambda kernel: kernel.text.encode()) as variants:
        ...     first, again = variants.pick(n=64), variants.finish().pick(n=64)
        >>> (first.exact, str(first.guard)), (again.exact, str(again.guard))
        ((False, '1 <= n <= 8192'), (True, 'n % 8 == 0'))
    """

    def __init__(
        self,
        build: Callable[[SymbolicSizes], Any],
        names: object,
        *,
        domain: object = (),
        general: object = None,
        cache: Cache | None = None,
        most: int = VARIANTS,
        dtype: str = "",
        compile: Callable[[KernelSource], bytes] = to_cubin,
        toolkit: str | None = None,
        executor: Executor | None = None,
    ) -> None:
        for argument, value in (("build", build), ("compile", compile)):
            if not callable(value):
                raise CHECK.malformed(argument, "must be callable", value)
        named = (names,) if isinstance(names, str) else CHECK.entries(names, "names", NAMES)
        stated = (domain,) if isinstance(domain, str) else CHECK.entries(domain, "domain", NAMES)
        clauses = tuple((part,) for entry in stated for part in conditions(entry))
        self.domain = Guard(clauses, tuple(name_of(name, "names") for name in named))
        if set(self.domain.names) != set(named):
            raise CHECK.malformed("domain", f"must be about {', '.join(named)}", ", ".join(self.domain.names))
        if cache is not None and compile is not to_cubin and toolkit is None:
            raise CHECK.malformed("toolkit", "must be given with a cache and a compiler of your own", toolkit)
        self._build, self._compile, self._cache = build, compile, cache
        self._toolkit, self._dtype = toolkit, CHECK.kind(dtype, str, "dtype")
        self._most = CHECK.integer(most, "most", 1)
        self._lock, self._picks, self._misses = threading.RLock(), 0, 0
        self._slots: tuple[_Slot, ...] = ()
        self._dispatch: Dispatch | None = None
        self._early: list[Mapping[str, int]] = []
        """Sizes that were picked before the variants were known."""
        made = run(build, SymbolicSizes(self.domain, None)) if general is None else general
        if isinstance(made, LayoutError):
            raise made
        self._general = _Slot(self.domain, made)
        self._make(self._general)
        if self._general.ready is None:
            what = "the general kernel cannot be made"
            raise MalformedError(Diagnostic("LA508", what, (f"sizes with {self.domain}",), self._general.note))
        self._own = ThreadPoolExecutor(1, "variants") if executor is None else None
        self._executor = CHECK.kind(executor or self._own, Executor, "executor")
        self._tasks: list[Future[None]] = []
        self._exploration = self._executor.submit(self._explore)
        self._exploration.add_done_callback(self._explored)

    def pick(self, sizes: Mapping[str, int] | None = None, **more: int) -> Picked:
        """Return the variant for these sizes, or while it is not ready the most specific one that is; never wait.

        Raises: MalformedError: LA623: not one integer per name; LA509: outside the domain.
        """
        values = more if sizes is None else {**sizes, **more}
        if len(values) != len(self.domain.names) or not all(type(value) is int for value in values.values()):
            values = sizes_of(values)
        dispatch = self._dispatch
        try:
            place = dispatch.choose(values) if dispatch is not None else None
            inside = place is not None or self.domain.admits(values)
        except KeyError:
            inside = False
        if not inside or len(values) != len(self.domain.names):
            raise self._refusal(values)
        with self._lock:
            self._picks += 1
            if place is not None:
                slot = self._slots[place]
                if slot.ready is not None:
                    slot.hits += 1
                    return slot.ready[1]
                self._start(slot)
            elif len(self._early) < EARLY:
                self._early.append(dict(values))
            self._misses += 1
            ready = [other for other in self._slots if other.ready is not None and other.guard.admits(values)]
            fallback = max(ready, key=lambda other: other.rank, default=self._general)
            fallback.hits += 1
            return fallback.ready[0]  # type: ignore[index]

    @property
    def dispatch(self) -> Dispatch:
        """Which variant is chosen for which sizes; waits until it is known."""
        self._exploration.result()
        assert self._dispatch is not None  # noqa: S101
        return self._dispatch

    def prove(self) -> Verdict:
        """Prove that at all sizes of the domain the most specific variant is chosen and its plan holds."""
        return prove_dispatch(self.dispatch)

    def finish(self, seconds: float | None = None) -> Variants:
        """Wait until everything asked for so far is made, or until the seconds are over."""
        end = None if seconds is None else time.monotonic() + seconds
        while waiting := [task for task in (self._exploration, *self._tasks) if not task.done()]:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            wait(waiting, left)
        return self

    def report(self) -> VariantReport:
        """Return what picking did so far."""
        with self._lock:
            slots = [slot for slot in self._slots if slot is not self._general]
            return VariantReport(self._picks, self._misses, tuple(slot.row() for slot in (*slots, self._general)))

    def close(self) -> None:
        """Finish what compiles now and start nothing more; picks go on with what is ready."""
        if self._own is not None:
            self._own.shutdown(cancel_futures=True)

    def __enter__(self) -> Variants:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, slot: _Slot) -> None:
        """Make a variant in the background, once."""
        if slot.state == "waiting":
            slot.state = "compiling"
            try:
                self._tasks.append(self._executor.submit(self._make, slot))
            except RuntimeError as error:  # the executor is shut down
                slot.state, slot.note = "waiting", str(error)

    def _explored(self, task: Future[None]) -> None:
        """Note why there are no variants."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._general.note = f"no variants: {error}"

    def _explore(self) -> None:
        dispatch, built = explore(self._build, self.domain, most=self._most)
        guards = [branch.guard for branch in dispatch.branches]
        ranks = [sum(_more_specific(guard, other, self.domain) for other in guards) for guard in guards]
        slots = []
        for guard, made, rank in zip(guards, built, ranks, strict=True):
            slot = _Slot(guard, made, rank) if guard.clauses else self._general
            if slot is not self._general and isinstance(made, LayoutError):
                slot.state, slot.note = "failed", f"the builder refuses: {made.diagnostic.what}"
            slots.append(slot)
        with self._lock:
            self._slots = tuple(slots)
            self._dispatch = Dispatch(self.domain, dispatch.branches, plan_of(self._general.made))
            for values in self._early:
                place = self._dispatch.choose(values)
                if place is not None:
                    self._start(slots[place])

    def _make(self, slot: _Slot) -> None:
        """Load or compile a variant; what goes wrong is noted, and the variant never used."""
        began, plan, note = time.perf_counter(), plan_of(slot.made), ""
        code, source = b"", "built"
        try:
            kernel = _kernel_of(slot.made)
            if kernel is not None:
                code, source, note = self._code(slot, kernel)
            elif plan is None:
                raise CHECK.malformed("build", "must return a kernel or a symbolic plan", slot.made)
        except Exception as error:
            with self._lock:
                slot.state, slot.note = "failed", str(error)
            return
        ready = Picked(slot.guard, plan, kernel, code, False), Picked(slot.guard, plan, kernel, code, True)
        with self._lock:
            slot.cubin, slot.source, slot.note = code, source, note
            slot.seconds, slot.state, slot.ready = time.perf_counter() - began, "ready", ready

    def _code(self, slot: _Slot, kernel: KernelSource) -> tuple[bytes, str, str]:
        """Return the machine code of a kernel, where it came from, and what was wrong with the cache."""
        if self._cache is None:
            return self._compiled(kernel), "compiled", ""
        text = hashlib.sha256(kernel.text.encode()).hexdigest()
        guard = Guard(tuple(dict.fromkeys((*slot.guard, *self.domain))))
        compiler = self._toolkit or nvrtc_version()
        key = Key(str(guard), kernel.arch, self._dtype, compiler, __version__, text)
        code, note = self._cache.load(key)
        if code is not None:
            return code, "cache", ""
        code = self._compiled(kernel)
        return code, "compiled", "; ".join(filter(None, (note, self._cache.store(key, code))))

    def _compiled(self, kernel: KernelSource) -> bytes:
        code = self._compile(kernel)
        if not isinstance(code, bytes):
            raise CHECK.malformed("compile", "must return bytes", code)
        return code

    def _refusal(self, values: Mapping[str, int]) -> MalformedError:
        require_names(self.domain.names, values, f"sizes {', '.join(self.domain.names)}")
        if strange := sorted(set(values) - set(self.domain.names)):
            return sizes_do_not_fit(f"sizes {', '.join(self.domain.names)}", f"unknown names: {', '.join(strange)}")
        broken = self.domain.broken_at(values)
        what = "these sizes are outside the domain of the variants"
        return MalformedError(Diagnostic("LA509", what, (str(self.domain),), f"{broken} fails", dict(values)))


def _kernel_of(made: Any) -> KernelSource | None:
    parts = made if isinstance(made, tuple) else (made,)
    kernels = (part if isinstance(part, KernelSource) else getattr(part, "kernel", None) for part in parts)
    return next((kernel for kernel in kernels if isinstance(kernel, KernelSource)), None)


def _more_specific(one: Guard, other: Guard, domain: Guard) -> bool:
    """Whether a guard is known to be more specific; if that is undecided, either variant may run."""
    try:
        return more_specific(one, other, domain)
    except BudgetError:
        return False
