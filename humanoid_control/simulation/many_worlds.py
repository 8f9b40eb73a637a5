"""Simulation of one experiment under many conditions, on all cores."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.simulation.engine import Engine

Variation = Mapping[str, Any]
Progress = Callable[[int, int, str], None]


class Observer(Protocol):
    """Recorder of one world while it runs."""

    def observe(self, engine: Engine) -> None:
        """Record the state; called at the start and every `every` seconds."""

    def result(self) -> Any:
        """Return the picklable outcome."""


@dataclass(frozen=True)
class Observed:
    """Outcome of one world.

    Attributes:
        real_time_factor: simulated over computation time on one core.
        failure: reason of the divergence.
    """

    variation: Variation
    result: Any
    real_time_factor: float
    failure: str


def simulate_many(
    make: Callable[[Variation], Engine],
    variations: Sequence[Variation],
    seconds: float,
    observe: Callable[[Variation], Observer],
    workers: int | None = None,
    progress: Progress | None = None,
    every: float = 0.01,
) -> list[Observed]:
    """Simulate one world per variation; outcomes keep their order and do not depend on the workers.

    Args:
        make: builds a world; importable if there are several workers.
        variations: conditions by name.
        seconds: simulated time.
        observe: creates an observer; importable as `make`.
        workers: spawned processes; default: one per core; 1: this process.
        progress: called with (done, total, text).
        every: observation interval [s].

    Raises:
        HumanoidError: for bad input, or if a world raises.
    """
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"the simulated time must be positive, got {seconds:g} s")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if not variations:
        return []
    workers = min(workers or os.cpu_count() or 1, len(variations))
    report = progress or (lambda done, total, text: None)
    out: list[Observed | None] = [None] * len(variations)
    simulate = partial(_simulate, make, observe, seconds, every)
    outcomes = _in_this_process(simulate, variations) if workers == 1 else _in_workers(simulate, variations, workers)
    for done, (k, observed) in enumerate(outcomes, 1):
        out[k] = observed
        report(done, len(variations), name_of(variations[k]))
    return [o for o in out if o is not None]


def name_of(variation: Variation) -> str:
    """Return a variation as text: 'friction=0.2'."""
    return ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in variation.items()) or "as it is"


Simulate = Callable[[Variation], Observed]


def _in_this_process(simulate: Simulate, variations: Sequence[Variation]) -> Iterator[tuple[int, Observed]]:
    for k, variation in enumerate(variations):
        yield k, simulate(variation)


def _in_workers(simulate: Simulate, variations: Sequence[Variation], workers: int) -> Iterator[tuple[int, Observed]]:
    try:
        pickle.dumps((simulate, variations))
    except (pickle.PicklingError, AttributeError, TypeError) as e:
        raise ConfigError(f"with several workers, make and observe must be importable functions: {e}") from None
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, mp_context=context)
    try:
        with _interrupts_blocked():  # inherited by the workers: only this process handles SIGINT
            futures: dict[Future[Observed], int] = {executor.submit(simulate, v): k for k, v in enumerate(variations)}
        waiting = set(futures)
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield futures[future], future.result()
        executor.shutdown()
    except BrokenProcessPool:
        raise HumanoidError("a worker process died; was there enough memory? try fewer workers") from None
    finally:  # after an interrupt or an error the remaining workers are stopped
        executor.shutdown(wait=False, cancel_futures=True)
        workers_left = set(multiprocessing.active_children()) - before
        for child in workers_left:
            child.terminate()
        for child in workers_left:
            child.join(2.0)
            if child.is_alive():  # not yet started, or on a busy machine
                child.kill()
                child.join(2.0)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _simulate(
    make: Callable[[Variation], Engine],
    observe: Callable[[Variation], Observer],
    seconds: float,
    every: float,
    variation: Variation,
) -> Observed:
    try:
        engine, observer = make(variation), observe(variation)
        h = engine.settings.step
        total, stride = max(1, round(seconds / h)), max(1, round(every / h))
        done, spent = 0, 0.0
        observer.observe(engine)
        while done < total and not engine.diverged:
            n = min(stride, total - done)
            begin = time.perf_counter()
            engine.step(n)
            spent += time.perf_counter() - begin
            done += n
            observer.observe(engine)
        return Observed(variation, observer.result(), done * h / max(spent, 1e-9), engine.failure)
    except HumanoidError as e:
        raise HumanoidError(f"variation {name_of(variation)}: {e}") from None
    except Exception as e:
        raise HumanoidError(f"variation {name_of(variation)}: {type(e).__name__}: {e}") from e
