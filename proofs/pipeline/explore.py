"""Runs of a pipeline at one N: every event in every order, or one of them held back as long as possible."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from layoutalg.ground import clock
from layoutalg.proofs.pipeline.machine import Event, Machine, State, Violation
from layoutalg.proofs.pipeline.ops import COPIES, SIGNALS


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ends in a violation."""

    machine: Machine
    events: tuple[Event, ...]
    violation: Violation


def shortest(machine: Machine, budget: int) -> tuple[Run | None, int]:
    """Return the shortest run to a violation, and the states left.

    Breadth first over all orders; the states left are 0 if the budget did not suffice.
    """
    first = machine.start()
    came: dict[State, tuple[State, Event] | None] = {first: None}
    queue = deque([first])
    while queue:
        clock.check("the runs of a pipeline")
        state = queue.popleft()
        events = list(machine.events(state))
        if not events or machine.finished(state):
            wrong = machine.last(state)
            if wrong is not None:
                return _run(machine, came, state, None, wrong), budget - len(came)
            continue
        for event in events:
            following, wrong = machine.after(state, event)
            if wrong is not None:
                return _run(machine, came, state, event, wrong), budget - len(came)
            step = state, event
            if following is not None and came.setdefault(following, step) is step:
                if len(came) > budget:
                    return None, 0
                queue.append(following)
    return None, budget - len(came)


def _run(
    machine: Machine, came: dict[State, tuple[State, Event] | None], state: State, event: Event | None, wrong: Violation
) -> Run:
    events = [] if event is None else [event]
    step = came[state]
    while step is not None:
        events.append(step[1])
        step = came[step[0]]
    return Run(machine, tuple(reversed(events)), wrong)


def delayed(machine: Machine, signals_last: bool = False) -> Run | None:
    """Return a run to a violation in which one event is held back until nothing else can happen, or None.

    With ``signals_last`` that is an access, and arrivals behind asynchronous accesses are held back even longer.
    """
    every = [task for tasks in machine.tasks for task in tasks]
    held: list[Event | None] = [(task.role, task) for task in every if task.buf >= 0 or not signals_last]
    if not signals_last:
        held = [None, *held, *[(-1, task) for task in every if task.op.op in COPIES or task.op.op in SIGNALS]]
    elif not any(task.op.op in SIGNALS for task in every):
        return None
    states, events = _in_turn(machine)
    free: dict[Event | None, int] = {
        event: count for count, state in reversed([*enumerate(states)]) for event in machine.events(state)
    }
    for one in held:
        clock.check("the runs of a pipeline")
        same = free.get(one, 0)  # until an event can happen, the run that holds it back is the one in turn
        run = _follow(machine, one, signals_last, states[same], events[:same])
        if run is not None:
            return run
    return None


def _in_turn(machine: Machine) -> tuple[list[State], list[Event]]:
    """Return the states of the run that takes the first event each time, and the events between them."""
    states, events = [machine.start()], list[Event]()
    while free := [] if machine.finished(states[-1]) else list(machine.events(states[-1])):
        state, wrong = machine.after(states[-1], free[0])
        if state is None or wrong is not None:
            break
        states.append(state)
        events.append(free[0])
    return states, events


def pruned(run: Run) -> Run:
    """Return a run to a violation of the same kind without the events that it does not need."""
    events = list(run.events)
    place = len(events) - 2
    while place >= 0:
        shorter = _replay(run.machine, [*events[:place], *events[place + 1 :]], run.violation)
        if shorter is not None:
            events = list(shorter.events)
            run = shorter
        place = min(place, len(events) - 1) - 1
    return run


def _replay(machine: Machine, events: list[Event], wanted: Violation) -> Run | None:
    """Return the run of these events up to a violation of the wanted kind, None if they do not lead to one."""
    state: State | None = machine.start()
    for count, event in enumerate(events):
        if state is None or event not in list(machine.events(state)):
            return None
        state, wrong = machine.after(state, event)
        if wrong is not None:
            same = wrong.kind == wanted.kind and wrong.task is wanted.task
            return Run(machine, tuple(events[: count + 1]), wrong) if same else None
    return None


def _follow(machine: Machine, held: Event | None, signals_last: bool, state: State, events: list[Event]) -> Run | None:
    """Go on from a state to the end, with an event held back."""
    while True:
        free = list(machine.events(state))
        if not free or machine.finished(state):
            wrong = machine.last(state)
            return None if wrong is None else Run(machine, tuple(events), wrong)
        others = [event for event in free if held is None or event[0] != held[0] or event[1] is not held[1]]
        if signals_last and len(others) < len(free):
            others = [event for event in others if event[0] >= 0 or event[1].op.op not in SIGNALS]
        if not others:
            others = [event for event in free if held is None or event[1] is held[1]] or free
            held = None
        event = others[0]
        events.append(event)
        following, wrong = machine.after(state, event)
        if wrong is not None:
            return Run(machine, tuple(events), wrong)
        if following is None:
            return None
        state = following
