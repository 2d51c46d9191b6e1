"""Work in other processes, on this machine or many: one way for searches and campaigns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final, TypeVar

from layoutalg.ground.errors import Diagnostic, MissingExtraError
from layoutalg.synth.search.roofline import CHECK

Item = TypeVar("Item")
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
CONNECT_SECONDS: Final = 10


@contextmanager
def workers(jobs: int = 1, dask: str | None = None) -> Iterator[Executor | None]:
    """Give an executor: the workers of dask at an address, or so many processes; None for one after another.

    Raises: MissingExtraError: LA897: ``distributed`` is not installed. MalformedError: LA886: nobody answers.
    """
    if dask is not None:
        try:
            from distributed import Client
        except ImportError:
            because = "install layoutalg[distributed]"
            raise MissingExtraError(Diagnostic("LA897", "dask needs an extra", (dask,), because)) from None
        connected: Any = Client
        try:
            client = connected(dask, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise CHECK.malformed("dask", f"must be the address of a scheduler that answers ({error})", dask) from None
        with client:
            yield client.get_executor()
    elif jobs == 1:
        yield None
    else:
        with ProcessPoolExecutor(jobs) as pool:
            yield pool


def completed(
    function: Callable[[Asked], Answer],
    items: Iterable[Item],
    asked: Callable[[Item], Asked],
    executor: Executor | None = None,
) -> Iterator[tuple[Item, Answer | Exception]]:
    """Yield every item with its answer, or what was raised, once it is there; a ``BrokenExecutor`` if a worker died.

    Without an executor an item is taken when it is its turn. If the iteration ends early, what has not begun is
    cancelled.

    Args:
        function: What the workers call.
        items: The items; they stay here.
        asked: From an item to what the function is called with.
        executor: The workers.
    """
    if executor is None:
        for item in items:
            answer: Answer | Exception
            try:
                answer = function(asked(item))
            except Exception as error:
                answer = error
            yield item, answer
        return
    tasks: dict[Future[Answer], Item] = {}
    try:
        for item in items:
            try:
                task = executor.submit(function, asked(item))
            except BrokenExecutor as error:  # what was done before is yielded as well
                task = Future()
                task.set_exception(error)
            tasks[task] = item
        for task in as_completed(tuple(tasks)):
            item, answer = tasks.pop(task), _answer(task)
            del task  # dask repeats tasks of dead workers, also those that are done, while anybody refers to them
            yield item, answer
    finally:
        for task in tasks:
            task.cancel()


def _answer(task: Future[Answer]) -> Answer | Exception:
    """What a task returned or raised; errors of dask itself say that its worker died."""
    try:
        return task.result()
    except Exception as error:
        if isinstance(error, CancelledError) or type(error).__module__.startswith("distributed"):
            return BrokenExecutor(str(error) or type(error).__name__)
        return error


def answers(
    function: Callable[[Item], Answer], items: Iterable[Item], executor: Executor | None = None
) -> Iterator[Answer]:
    """Yield the answers in the order of the items, as they come; the first error ends it.

    Example:
        >>> list(answers(abs, [-1, 2, -3]))
        [1, 2, 3]
    """
    found: dict[int, Answer] = {}
    following = 0
    for (place, _), answer in completed(function, enumerate(items), itemgetter(1), executor):
        if isinstance(answer, Exception):
            raise answer
        found[place] = answer
        while following in found:
            yield found.pop(following)
            following += 1
