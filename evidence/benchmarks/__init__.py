"""Speed, measured next to the libraries that a user would take instead.

A bench is a module with `measure(...)`, which takes its options by name and returns rows, and `notes(rows)`, which
says what was counted:

    from evidence.benchmarks import ik

    rows = ik.measure(robot="lola")
    print({row["name"]: row["median"] for row in rows})
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import numpy as np

Row = dict[str, Any]
"""One measured quantity: `name`, `unit`, `median`, `p99`, `n`, and what else the bench tells of it."""
COLUMNS = ("name", "unit", "median", "p99", "n")


class Bench(Protocol):
    """Interface of the module of a bench; `COLUMNS` and `TITLE` may be missing."""

    COLUMNS: list[str]
    TITLE: str

    def measure(self, **options: Any) -> list[Row]:
        """Rows; with `quiet=False` a bar shows how far it is."""
        ...

    def notes(self, rows: list[Row]) -> list[str]:
        """Notes below the table, each a line however long."""
        ...


class BenchEntry(NamedTuple):
    """A bench in the list.

    Attributes:
        task: what it measures, in one line.
        options: that `measure` takes, with their defaults.
        module: below this package.
        page: arguments with which it is run for the page of all.
    """

    task: str
    options: Mapping[str, Any]
    module: str
    page: tuple[str, ...] = ()


BENCHES = {
    "stack": BenchEntry(
        "measure the five nodes together: latency, rates, CPU, memory (about 60 s)",
        {"robot": "hrp2", "seconds": 40.0},
        "nodes.stack",
    ),
    "start": BenchEntry(
        "time the start until the robot moves, and node restarts; --cold: also kernels and checkout (2 or 6 min)",
        {"robot": "hrp2", "rounds": 5, "cold": False},
        "nodes.start",
        ("--cold",),
    ),
    "retarget": BenchEntry(
        "time a frame of retargeting, with error and smoothness, next to PlaCo, mink and pink if installed "
        "(about 90 s)",
        {"robot": "wabian2,we4rii", "motion": "", "marker_set": "", "unit": "", "scale": 1.0},
        "retargeting",
    ),
    "whole_body": BenchEntry(
        "time a frame of whole-body retargeting, with foot slip, next to GMR if installed (about 60 s)",
        {"robot": "lola,hrp2,suralp,wabian2", "motion": "dance"},
        "motion.whole_body",
    ),
    "batch": BenchEntry(
        "process a library of identical clips with one and two processes: clips/s, frames/s, memory (about 90 s)",
        {"robot": "hrp2", "clips": 24, "rounds": 3},
        "motion.batch",
    ),
    "bounding_volumes": BenchEntry(
        "fit four bounding volumes to nine shapes, next to the published table (about 5 s)", {}, "bounding_volumes"
    ),
    "self_distance": BenchEntry(
        "time distances between the shapes of a robot: compiled kernels next to coal (about 10 s)",
        {"robot": "hrp2"},
        "self_distance",
    ),
    "ik": BenchEntry(
        "time a tick of whole-body inverse kinematics, next to PlaCo, mink and pink if installed (about 30 s)",
        {"robot": "lola"},
        "ik",
    ),
    "loop": BenchEntry(
        "run the inverse kinematics node in closed loop at 500 Hz: latency, period, missed ticks (about 60 s)",
        {"robot": "lola", "seconds": 40.0},
        "nodes.loop",
    ),
    "latency": BenchEntry(
        "time the way from a marker to a command in another process part by part, and count the ticks' lateness "
        "(about 60 s; 10,000,000 cycles: 5.6 h)",
        {"robot": "lola", "cycles": 15000, "load": 0, "transport": "udp", "keep": ""},
        "nodes.latency",
    ),
    "policy": BenchEntry(
        "time the way from an observation to the command of a learned policy in another process, and its share of "
        "a core (about 5 min)",
        {"robot": "g1", "policy": "", "seconds": 240.0},
        "nodes.policy",
    ),
    "dynamics": BenchEntry(
        "time forward dynamics of Lola with drives and Dill with three solvers, next to pinocchio and "
        "MuJoCo (about 2 min)",
        {"robot": "lola"},
        "dynamics",
    ),
    "distance": BenchEntry(
        "time swept-sphere volumes: six functions next to coal, and a whole robot (about 5 s)",
        {"robot": "lola"},
        "ssv_distance",
    ),
    "tendons": BenchEntry(
        "time joint-muscle mappings of table I, filter updates next to others, three groups (about 45 s)",
        {"robot": "kengoro_upper"},
        "tendons",
    ),
    "reaching": BenchEntry(
        "time optimal reaches of 2 to 7 joints, next to the best of ten starts and crocoddyl if installed (about 20 s)",
        {},
        "motion.reaching",
    ),
    "human": BenchEntry(
        "time fit, calibration, dynamics and reaches of a person, next to OpenSim and crocoddyl if "
        "installed (about 40 s)",
        {"rounds": 5},
        "motion.person",
    ),
    "human_node": BenchEntry(
        "fit a person to live markers at 240 Hz with force plates: age, missed frames, CPU (about 40 s)",
        {"seconds": 20.0},
        "motion.live_person",
    ),
    "driver": BenchEntry(
        "time the driver of a real robot: frames next to vendor libraries, lateness, message to frame (about 4 min)",
        {"only": "", "seconds": 10.0, "trials": 100},
        "driver",
    ),
    "walk": BenchEntry(
        "measure walking: tick time, top speeds of four robots, largest push, odometry (--quick: about 6 "
        "min, else hours)",
        {"quick": False, "keep": ""},
        "walk",
        ("--quick",),
    ),
    "perform": BenchEntry(
        "compare a dance by the whole-body controller, PD replay, TSID, crocoddyl, a tracker and the "
        "walker (about 5 min)",
        {"robot": "", "motion": "dance", "engine": "mujoco", "only": ""},
        "performing.comparison",
    ),
}


YARDSTICK = "pinocchio_all_terms"
YARDSTICK_CALLS, WARM_CALLS = 3000, 300


def load_bench(name: str) -> Bench:
    """The module of a bench, ready to measure: one thread a library, which is faster for small matrices.

    Threads are set before numpy is imported, so load a bench before anything else where that matters.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return cast(Bench, importlib.import_module(f"{__name__}.{BENCHES[name].module}"))


def row(name: str, unit: str, median: float, p99: float, n: int, **more: Any) -> Row:
    """A row of a bench: a quantity with its median and the 99th percentile of its bad side, with three digits.

    Args:
        n: how many values there were.
        more: further columns.
    """
    return {"name": name, "unit": unit, "median": round(median, 3), "p99": round(p99, 3), "n": int(n), **more}


def row_of(name: str, unit: str, values: Sequence[float] | np.ndarray, **more: Any) -> Row:
    """A row of single values; where more is better, as in 1/s, the bad side is the low one."""
    import numpy as np  # after `load_bench`

    v = np.asarray(values, dtype=float)
    p50, p99 = np.percentile(v, [50, 1 if unit in ("1/s", "Hz") else 99])
    return row(name, unit, float(p50), float(p99), len(v), **more)


def yardstick() -> Row:
    """Row of pinocchio's computeAllTerms of Lola with a floating base, next to every bench in the same run.

    Machines and their hours differ; multiples of this time compare.
    """
    import time

    import numpy as np
    import pinocchio as pin

    from humanoid_control.robots import load_robot

    robot = load_robot("lola", "floating")
    model, data = robot.model, robot.model.createData()
    q, v = robot.q("neutral"), np.full(robot.model.nv, 0.1)
    spent = np.empty(WARM_CALLS + YARDSTICK_CALLS)
    for k in range(len(spent)):
        begin = time.perf_counter()
        pin.computeAllTerms(model, data, q, v)
        spent[k] = time.perf_counter() - begin
    return row_of(YARDSTICK, "us", 1e6 * spent[WARM_CALLS:])
