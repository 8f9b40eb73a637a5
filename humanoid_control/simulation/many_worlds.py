"""Many worlds at once: the same experiment under many conditions, on all cores.

Also here:

* Whether a robot stands, and how hard that is for it: the observer of studies on many worlds.
"""

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
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.simulation.engine import VARIABLES, Engine, SimulationConfig

# -------- Many worlds at once: the same experiment under many conditions, on all cores

Variation = Mapping[str, Any]
Progress = Callable[[int, int, str], None]


class Observer(Protocol):
    """Looks at a world while it runs."""

    def look(self, engine: Engine) -> None:
        """Called at the start and every `every` seconds."""

    def result(self) -> Any:
        """What was found; it must be picklable."""


@dataclass(frozen=True)
class Observed:
    """One world's outcome.

    Attributes:
        variation: its conditions. result: of its observer.
        real_time_factor: simulated seconds by seconds of computing, on one core, without observing.
        failure: why it diverged; empty where it did not.
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
    """Simulate a world for each variation; the outcomes are in the order of the variations, whoever was first.

    Worker processes are started afresh (spawn), so nothing is shared but what `make` builds. The outcome of a
    variation does not depend on how many workers there are.

    Args:
        make: builds the world of a variation. With several workers, a function that can be imported.
        variations: conditions by name.
        seconds: simulated time of each.
        observe: makes the observer of a variation; as `make`.
        workers: processes; default one a core, but no more than variations. 1: in this process.
        progress: called with (done, total, text).
        every: simulated time between looks [s].

    Raises:
        HumanoidError: bad input, or an exception in a world; the variation is named.
    """
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"the simulated time must be positive, got {seconds:g} s")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if not variations:
        return []
    workers = min(workers or os.cpu_count() or 1, len(variations))
    tell = progress or (lambda done, total, text: None)
    out: list[Observed | None] = [None] * len(variations)
    runs = _here if workers == 1 else _pooled
    for done, (k, observed) in enumerate(runs(make, variations, seconds, observe, every, workers), 1):
        out[k] = observed
        tell(done, len(variations), name_of(variations[k]))
    return [o for o in out if o is not None]


def name_of(variation: Variation) -> str:
    """A variation as text: 'friction=0.2, stiffness=30'."""
    return ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in variation.items()) or "as it is"


def _here(make, variations, seconds, observe, every, _workers) -> Iterator[tuple[int, Observed]]:  # type: ignore[no-untyped-def]
    for k, variation in enumerate(variations):
        yield k, _one(make, variation, seconds, observe, every)


def _pooled(make, variations, seconds, observe, every, workers) -> Iterator[tuple[int, Observed]]:  # type: ignore[no-untyped-def]
    try:
        pickle.dumps((make, observe, variations))
    except (pickle.PicklingError, AttributeError, TypeError) as e:
        raise ConfigError(f"with several workers, make and observe must be importable functions: {e}") from None
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, mp_context=context)
    try:
        with _interrupts_blocked():  # the workers inherit that: an interrupt is ours to answer
            futures: dict[Future[Observed], int] = {
                executor.submit(_one, make, v, seconds, observe, every): k for k, v in enumerate(variations)
            }
        waiting = set(futures)
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield futures[future], future.result()
        executor.shutdown()
    except BrokenProcessPool:
        raise HumanoidError("a worker process died; was there enough memory? try fewer workers") from None
    finally:  # an interrupt or an error: nobody waits for the others
        executor.shutdown(wait=False, cancel_futures=True)
        workers_left = set(multiprocessing.active_children()) - before
        for child in workers_left:
            child.terminate()
        for child in workers_left:
            child.join(2.0)
            if child.is_alive():  # busy machine, or one that is still being started
                child.kill()
                child.join(2.0)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _one(
    make: Callable[[Variation], Engine],
    variation: Variation,
    seconds: float,
    observe: Callable[[Variation], Observer],
    every: float,
) -> Observed:
    try:
        engine, observer = make(variation), observe(variation)
        h = engine.settings.step
        total, stride = max(1, round(seconds / h)), max(1, round(every / h))
        done, spent = 0, 0.0
        observer.look(engine)
        while done < total and not engine.diverged:
            n = min(stride, total - done)
            begin = time.perf_counter()
            engine.step(n)
            spent += time.perf_counter() - begin
            done += n
            observer.look(engine)
        return Observed(variation, observer.result(), done * h / max(spent, 1e-9), engine.failure)
    except HumanoidError as e:
        raise HumanoidError(f"variation {name_of(variation)}: {e}") from None
    except Exception as e:
        raise HumanoidError(f"variation {name_of(variation)}: {type(e).__name__}: {e}") from e


# -------- Whether a robot stands, and how hard that is for it: the observer of studies on many worlds

SETTLING = 1.0  # [s] the robot sinks into its drives and the ground
LOW, TILTED = 0.7, np.radians(45.0)  # of its height, of its root link: it has fallen
PUSHED = 0.1  # [s]
STUDIED = (*(v for v in VARIABLES if v != "slope"), "slope_deg", "push_x", "push_y")


@dataclass(frozen=True)
class Stand:
    """What became of a robot that should stand.

    Attributes:
        stood: neither fell nor diverged.
        fell_at: when [s]; None where it stood.
        drift: largest horizontal distance of the root link from where it was when the robot had settled [m].
        tilt: largest angle of the root link against its start [rad].
        torque_share: largest torque after settling as a share of the drive's limit. torque_joint: whose.
    """

    stood: bool
    fell_at: float | None
    drift: float
    tilt: float
    torque_share: float
    torque_joint: str


class StandingObserver:
    """Watches a robot stand; pushes it at its root link, for 0.1 s, once it has settled."""

    def __init__(self, push_x: float = 0.0, push_y: float = 0.0) -> None:
        """`push_x`, `push_y`: forward and to the left [N]."""
        self._push = np.array([push_x, push_y, 0.0, 0.0, 0.0, 0.0])
        self._start: np.ndarray | None = None
        self._settled: np.ndarray | None = None
        self._fell: float | None = None
        self._drift = self._tilt = self._share = 0.0
        self._joint = ""

    def look(self, engine: Engine) -> None:
        """See `many.Observer`."""
        pose = engine.base_state()[0]
        if self._start is None:
            self._start = pose
        tilt = 2 * np.arccos(min(1.0, abs(float(pose[3:] @ self._start[3:]))))
        self._tilt = max(self._tilt, tilt)
        reach = max(self._start[2], 0.2)
        if self._fell is None and (engine.diverged or self._start[2] - pose[2] > (1 - LOW) * reach or tilt > TILTED):
            self._fell = engine.time
        if engine.time < SETTLING - 1e-9:
            return
        if self._settled is None:
            self._settled = pose
            if self._push.any():
                engine.push(engine.robot.root_link, self._push, PUSHED)
        self._drift = max(self._drift, float(np.linalg.norm(pose[:2] - self._settled[:2])))
        share = np.abs(engine.torque) / engine.robot.effort
        k = int(np.argmax(share)) if len(share) else -1
        if k >= 0 and share[k] > self._share:
            self._share, self._joint = float(share[k]), engine.robot.joint_names[k]

    def result(self) -> Stand:
        """See `many.Observer`."""
        return Stand(self._fell is None, self._fell, self._drift, self._tilt, self._share, self._joint)


def make_world(base: SimulationConfig, variation: Mapping[str, Any]) -> Engine:
    """The world of a variation of a recipe."""
    values = {k: v for k, v in variation.items() if k in VARIABLES}
    if "slope_deg" in variation:
        values["slope"] = np.radians(variation["slope_deg"])
    return base.changed(values).build()


def make_observer(variation: Mapping[str, Any]) -> StandingObserver:
    """The observer of a variation."""
    return StandingObserver(float(variation.get("push_x", 0.0)), float(variation.get("push_y", 0.0)))


def standing_study(
    recipe: SimulationConfig,
    variations: list[dict[str, float]],
    seconds: float,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Observed]:
    """How a robot stands under each of the conditions; results are `Stand`.

    Args:
        recipe: what they have in common.
        variations: numbers by name, of STUDIED; pushes in N, `slope_deg` in degrees.
        seconds: simulated, more than the settling time of 1 s.

    Raises:
        UnknownNameError: of a number that there is not. HumanoidError: as `simulate_many`.
    """
    for variation in variations:
        for name in variation:
            if name not in STUDIED:
                raise UnknownNameError("variable", name, STUDIED)
    if seconds <= SETTLING:
        raise ConfigError(f"the robot settles for {SETTLING:g} s: simulate longer than that, got {seconds:g} s")
    return simulate_many(partial(make_world, recipe), variations, seconds, make_observer, workers, progress)


def as_row(observed: Observed) -> dict[str, Any]:
    """An outcome as one flat dictionary."""
    row = {**observed.variation, **asdict(observed.result), "real_time_factor": observed.real_time_factor}
    return {**row, "failure": observed.failure or None}
