"""The driver of a real robot: frames next to the makers' libraries, its cycle, and the way from message to frame."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from evidence.benchmarks import Row
from humanoid_control.errors import EnvironmentProblem, UnknownNameError, missing_package
from humanoid_control.hardware.transport import HardwareError
from humanoid_control.terminal import progress

COLUMNS = ["name", "unit", "median", "p99", "n", "aim", "beside"]
TITLE = "bench driver"
NOT_INSTALLED = "not installed"
ESTOPS = 10  # trials of the guardian for each of the emergency stop


class DriverPart(NamedTuple):
    """One part of the bench.

    Attributes:
        module: below `drivers`. function: of it. argument: it takes: seconds, trials, estops, cycles or none.
        note: on what is counted.
    """

    module: str
    function: str
    argument: str
    note: str


PARTS = {
    "unitree": DriverPart(
        "unitree_frames", "measure", "",
        "unitree: a command of 29 motors is packed with its CRC, a state is checked and read; objects: with the "
        "objects of the DDS binding; vendor: with the objects and CRC of unitree_sdk2py.",
    ),
    "canopen": DriverPart(
        "can_frames", "frame_times", "",
        "canopen: 30 CiA 402 drives; write: frames are filled; send: also handed to an idle bus; the peer sets and "
        "reads the mapped variables of the PDO objects of canopen, and sends.",
    ),
    "dynamixel": DriverPart(
        "dynamixel", "measure", "",
        "dynamixel: goals of 30 servos are packed, the bytes of their responses parsed; sdk: GroupSyncWrite and "
        "GroupSyncRead of dynamixel-sdk on a port that responds at once.",
    ),
    "cycle_compute": DriverPart(
        "cycle", "compute", "cycles",
        "cycle_compute: a cycle of 30 joints without the buses: gears, supervision, power state, commands, limits.",
    ),
    "cycle": DriverPart(
        "cycle", "lateness", "seconds",
        "cycle_500, cycle_1000: lateness of the cycles of robot_driver while 4 processes compute; "
        "missed: deadlines without a cycle.",
    ),
    "pdo_loop": DriverPart(
        "can_frames", "pdo_loop", "seconds",
        "pdo_loop: 30 drives in another process over multicast; missed: samples that are absent after 0.4 periods, "
        "or a cycle that is a period late.",
    ),
    "guardian": DriverPart(
        "guardian", "death_to_frame", "trials",
        "guardian_ms: from kill -9 of the driver to the first frame of the guardian (limit: 10 ms); p99: longest.",
    ),
    "round_trip": DriverPart(
        "round_trip", "robot_round_trip", "seconds",
        "robot_round_trip: from a state of a G1 in another process to the resulting command, over DDS; processor: "
        "processor time of the driver side per round.",
    ),
    "command_to_bus": DriverPart(
        "round_trip", "command_to_bus", "seconds",
        "command_to_bus: from the publication of joint_commands in one process to the arrival of its frame at a G1 "
        "in a third one, through robot_driver at 500 Hz; driver_cpu: processor share of its process.",
    ),
    "estop": DriverPart(
        "round_trip", "emergency_stop", "estops",
        "estop_ms: from a message on emergency_stop to the damping frame at the robot.",
    ),
}  # fmt: skip


def measure(only: str = "", seconds: float = 10.0, trials: int = 100, quiet: bool = True) -> list[Row]:
    """Rows of all parts, or of those that are named.

    Args:
        only: parts with commas between: unitree, canopen, dynamixel, cycle_compute, cycle, pdo_loop, guardian,
            round_trip, command_to_bus, estop; empty: all.
        seconds: of each measurement that takes time [s]. trials: of the guardian.

    Raises:
        UnknownNameError: a part that is none.
    """
    names = [name.strip() for name in only.split(",") if name.strip()] or list(PARTS)
    for name in names:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    given = {"seconds": seconds, "trials": max(trials, 1), "estops": max(trials // ESTOPS, 1)}
    given["cycles"] = max(200, round(500 * seconds))
    rows: list[Row] = []
    with progress("measuring", len(names), quiet) as show:
        for k, name in enumerate(names):
            show(k, name)
            rows += _part(PARTS[name], given, name)
    return [{"aim": "", "beside": "", **r} for r in rows]


def _part(part: DriverPart, given: dict[str, float], name: str) -> list[Row]:
    """Rows of a part; one that says so where what it needs is not installed, or where it failed."""
    try:
        module = import_module(f"evidence.benchmarks.drivers.{part.module}")
        function: Callable[..., list[Row]] = getattr(module, part.function)
        return function(given[part.argument]) if part.argument else function()
    except (ModuleNotFoundError, EnvironmentProblem) as e:
        if isinstance(e, ModuleNotFoundError) and missing_package(e) is None:
            raise
        return [absent(name)]
    except HardwareError as e:  # the other parts are worth their time
        return [absent(name, "failed", str(e))]


def absent(name: str, why: str = NOT_INSTALLED, beside: str = "") -> Row:
    """The row of something that could not be measured here."""
    return {"name": name, "unit": why, "median": float("nan"), "p99": float("nan"), "n": 0, "beside": beside}


def notes(rows: list[Row]) -> list[str]:
    """Lines on what is counted, for the rows that there are."""
    names = [r["name"] for r in rows]
    load = " / ".join(f"{x:.1f}" for x in os.getloadavg())
    out = [f"Load of the machine at the end: {load} on {os.cpu_count()} cores. Targets assume SCHED_FIFO."]
    for key, part in PARTS.items():
        first = part.note.split(":")[0].split(",")[0]
        if any(name.startswith((first, key)) for name in names):
            out.append(part.note)
    return out
