"""Calibration of a real robot: where each actuator's zero is, how that is known, and of which drive; homing.

What an encoder does not know by itself is measured once, with the robot in a known posture, and kept in a file; or its
drive looks for it after every start, at a switch or a hard stop.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.files import check_keys, check_row, known, number, schema_file, whole_file
from humanoid_control.hardware.transmission import Transmission
from humanoid_control.hardware.transport import ActuatorState, Flag, HomingProgress, HomingSpec
from humanoid_control.hardware.yaml_rows import Row

SCHEMA = "humanoid_calibration/1"
HOMING_KEYS = ("method", "speed", "slow", "effort", "angle", "timeout")
HOMING_SPEED, HOMING_TIME = 0.1, 30.0  # [rad/s] at the joint, [s], where the file is silent
BEYOND = 0.5  # [rad] that a switch or a hard stop may be beyond the joint's range
METHODS = ("jig", "limit switch", "hand", "study")
LARGE = 0.2  # [rad] by which a zero changes only where that is meant


@dataclass(frozen=True)
class Zero:
    """Zero of one actuator.

    Attributes:
        zero: of a gear the joint angle, of a linkage the motor angle, where the actuator reads zero [rad].
        method: one of METHODS. date: ISO 8601. std: standard deviation [rad], 0: not known.
        serial: number of the drive; empty: it has none.
    """

    zero: float
    method: str = "hand"
    date: str = ""
    std: float = 0.0
    serial: str = ""


def calibration_path(hardware: Path) -> Path:
    """Path of the calibration beside a hardware file: lola.hardware.yaml -> lola.calibration.yaml."""
    return hardware.with_name(hardware.name.removesuffix(".yaml").removesuffix(".hardware") + ".calibration.yaml")


def named_calibration(hardware: Path, named: str | Path | None = None) -> Path:
    """Path of the calibration: of the file that was named, else of the one beside a hardware file, if there is any.

    Raises:
        ConfigError: the file that was named does not exist: without its zeros the robot would not be as it measures.
    """
    if not named:
        return calibration_path(hardware)
    if not Path(named).is_file():
        raise ConfigError(f"{named}: no such calibration; `~/set_zero` writes the one beside the hardware file")
    return Path(named)


def read_calibration(path: Path, actuators: Iterable[str]) -> dict[str, Zero]:
    """Zeros by actuator; none where there is no file.

    Raises:
        RobotError, UnknownNameError: one line that names the file, the row, and the nearest right word.
    """
    if not path.exists():
        return {}
    d = schema_file(path, SCHEMA, "calibration")
    check_keys(d, ("schema", "actuators"), ("actuators",), str(path))
    check_row(d["actuators"], (), f"{path}: actuators")
    actuators = tuple(actuators)
    out = {}
    for name, row in d["actuators"].items():
        where = f"{path}: {known('actuator', str(name), actuators, str(path))}"
        check_row(row, Zero.__dataclass_fields__, where)
        check_keys(row, Zero.__dataclass_fields__, ("zero",), where)
        numbers = {k: number(row, k, where) for k in ("zero", "std") if k in row}
        words = {k: str(row[k]) for k in ("method", "date", "serial") if k in row}
        known("method", words.get("method", "hand"), METHODS, where)
        out[str(name)] = Zero(**numbers, **words)  # type: ignore[arg-type]
    return out


def write_calibration(path: Path, zeros: Mapping[str, Zero]) -> None:
    """Write zeros whole or not at all; the file that was there before is kept as `.1`.

    Raises:
        ConfigError: it cannot be written.
    """
    rows: dict[str, Any] = {name: asdict(zero) for name, zero in zeros.items()}
    text = "# Written by the driver (~/set_zero); not to be edited by hand.\n"
    text += yaml.safe_dump({"schema": SCHEMA, "actuators": rows}, sort_keys=False, allow_unicode=True)
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
        if path.exists():
            shutil.copy2(path, path.with_name(path.name + ".1"))


def missing_calibration(zeros: Mapping[str, Zero], serials: Mapping[str, str], needed: Iterable[str]) -> list[str]:
    """Reasons why actuators must be calibrated before they get power, one for each.

    Args:
        zeros: as read. serials: number that each drive reports; empty: it reports none.
        needed: actuators whose encoders do not know their zero by themselves.
    """
    out = []
    for name in needed:
        if name not in zeros:
            out.append(f"{name} not calibrated")
    for name, zero in zeros.items():
        found = serials.get(name, "")
        if zero.serial and found and found != zero.serial:
            out.append(f"{name} needs calibration: its drive is {found}, calibrated was {zero.serial}")
    return out


def check_change(before: Mapping[str, Zero], after: Mapping[str, Zero], allow_large: bool) -> None:
    """Make sure that no zero moves far by mistake.

    Raises:
        RobotError: one changes by more than LARGE, and that is not allowed.
    """
    for name, zero in after.items():
        change = abs(zero.zero - before[name].zero) if name in before else 0.0
        if change > LARGE and not allow_large:
            raise RobotError(
                f"the zero of {name} would change by {change:.2f} rad: set allow_large_zero where that is meant"
            )


# -------- Homing

Home = Callable[[int, bool], HomingProgress]
"""Lets the drive of an actuator look for its zero, or end that; see `Transport.home`."""


@dataclass(frozen=True)
class HomingRow:
    """Homing of one joint as the hardware file gives it.

    Attributes:
        method, speed, slow, effort: see `HomingSpec`, here at the joint [rad/s], [N m].
        angle: of the joint where its home is [rad]. timeout: [s].
    """

    method: int
    speed: float
    slow: float
    effort: float
    angle: float
    timeout: float

    def spec(self, ratio: float) -> HomingSpec:
        """The same at the actuator, which turns `ratio` times for one turn of the joint."""
        return HomingSpec(self.method, self.speed * ratio, self.slow * ratio, self.effort / ratio)


def read_homing(row: Row, span: tuple[float, float], velocity: float, effort: float) -> HomingRow:
    """Homing of a joint out of its row.

    Args:
        row: below `homing`. span: of the joint [rad]. velocity [rad/s], effort [N m]: its limits.

    Raises:
        RobotError: a number that cannot be, with its line.
    """
    row.check(HOMING_KEYS, ("method", "angle"))
    method = row.number("method", None, -128, 127)
    if method != int(method) or method == 0:
        raise row.error(f"method must be the number of a method of CiA 402, got {method:g}", "method")
    speed = row.number("speed", min(HOMING_SPEED, velocity), 1e-4, velocity)
    return HomingRow(
        int(method),
        speed,
        row.number("slow", 0.2 * speed, 1e-5, speed),
        row.number("effort", effort, 1e-6, effort),
        row.number("angle", None, span[0] - BEYOND, span[1] + BEYOND),
        row.number("timeout", HOMING_TIME, 0.1, 600.0),
    )


class Homing:
    """Joints whose drives look for their zeros: groups at the same time, of each group one joint after the other.

    Attributes:
        active: (n,) joints whose drives look for their zeros now. failure: why it ended; empty: it did not fail.
    """

    def __init__(
        self, names: Sequence[str], rows: Mapping[str, HomingRow], transmission: Transmission, queues: list[list[int]]
    ) -> None:
        """Prepare; nothing moves.

        Args:
            names: of the n joints. rows: of those that can be homed. transmission: to their actuators.
            queues: of each group, the indices of its joints in the order in which they are homed.
        """
        self._names, self._rows, self._queues = tuple(names), rows, [list(queue) for queue in queues if queue]
        self._actuators = {k: transmission.actuators_of(k)[0] for queue in queues for k in queue}
        self._begun, self._found = dict[int, float](), set[int]()
        self._count, self._done = sum(map(len, self._queues)), 0
        self.active, self.failure = np.zeros(len(self._names), dtype=bool), ""

    def update(self, now: float, home: Home, homed: np.ndarray) -> bool:
        """Let it go on by a cycle; True once it is over, well or not.

        Args:
            now: monotonic [s]. home: as `Buses.home`. homed: (n,) joints whose samples know their zero.
        """
        for queue in self._queues:
            joint = queue[0]
            name = self._names[joint]
            begin = self._begun.setdefault(joint, now)
            self.active[joint] = True
            progress, timeout = HomingProgress.DONE, self._rows[name].timeout
            if joint not in self._found:
                progress = home(self._actuators[joint], True)
            if progress is HomingProgress.DONE:
                self._found.add(joint)
            if progress is HomingProgress.DONE and homed[joint]:  # a sample with its new zero is there
                queue.pop(0)
                self.active[joint], self._done = False, self._done + 1
            elif progress is HomingProgress.FAILED:
                self.failure = f"homing of {name} failed: its drive did not find its zero"
            elif now - begin > timeout:
                self.failure = f"homing of {name} failed: not over after {timeout:g} s"
        self._queues = [queue for queue in self._queues if queue]
        return bool(self.failure) or not self._queues

    def abort(self, home: Home) -> None:
        """Let drives that look for their zeros end that."""
        for joint in np.flatnonzero(self.active).tolist():
            home(self._actuators[joint], False)
        self.active[:] = False

    def __str__(self) -> str:
        now = ", ".join(self._names[queue[0]] for queue in self._queues)
        return f"homing {now}; {self._done} of {self._count} done"


def homing_queues(names: Sequence[str], groups: Mapping[str, Sequence[str]], wanted: Iterable[str]) -> list[list[int]]:
    """Indices of the joints to be homed, a queue for each group; those of no group are one group together."""
    chosen, grouped = set(wanted), {joint for joints in groups.values() for joint in joints}
    rest = [n for n in names if n not in grouped]
    return [[names.index(j) for j in joints if j in chosen] for joints in (*groups.values(), rest)]


class Encoders:
    """Encoders of n joints: which know their zeros, and homing of the others.

    Attributes:
        homed: (n,) joints that know theirs; of joints without homing it is not asked. homing: that goes on; None: none.
        waits: some joint does not know its zero.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Mapping[str, HomingRow],
        groups: Mapping[str, Sequence[str]],
        transmission: Transmission,
    ) -> None:
        """Prepare.

        Args:
            names: of the n joints. rows: of those that can be homed. groups: of joints. transmission: to the actuators.
        """
        self._names, self._rows, self._groups, self._transmission = tuple(names), rows, groups, transmission
        self._homes = {k: list(transmission.actuators_of(k)) for k, name in enumerate(names) if name in rows}
        self.homed = np.ones(len(names), dtype=bool)
        self.homing: Homing | None = None
        self.waits = False

    def unknown(self, state: ActuatorState) -> np.ndarray | None:
        """(n,) joints whose measured positions mean nothing yet, by the samples of a cycle; None: there are none."""
        if not self._homes:
            return None
        know = state.have(Flag.HOMED)
        for k, actuators in self._homes.items():
            self.homed[k] = know[actuators].all()
        unknown = ~self.homed if self.homing is None else ~self.homed | self.homing.active
        self.waits = not self.homed.all()
        return unknown if unknown.any() else None

    def missing(self) -> list[str]:
        """Joints that do not know their zeros."""
        return [] if not self._homes else [m for m, good in zip(self._names, self.homed, strict=True) if not good]

    def begin(self, names: Sequence[str]) -> str:
        """Begin homing of these joints, else of all that do not know their zeros; answers why not, or nothing."""
        if strange := [m for m in names if m not in self._rows]:
            return f"no homing in the hardware file for {', '.join(strange)}"
        if not (wanted := list(names) or self.missing()):
            return "nothing to do: all joints know their zeros, or have no homing in the hardware file"
        queues = homing_queues(self._names, self._groups, wanted)
        self.homing = Homing(self._names, self._rows, self._transmission, queues)
        return ""

    def proceed(self, now: float, home: Home, reference: np.ndarray, q: np.ndarray) -> bool:
        """Let homing go on by a cycle; True once it is over, see `Homing.update`.

        Args:
            now: monotonic [s]. home: as `Buses.home`. reference: (n,) changed to q (n,) where a zero was found [rad].
        """
        assert self.homing is not None
        before = self.homing.active.copy()
        over = self.homing.update(now, home, self.homed)
        np.copyto(reference, q, where=before & ~self.homing.active)
        if over and not self.homing.failure:
            self.homing = None
        return over

    def abort(self, home: Home) -> None:
        """End homing."""
        if self.homing is not None:
            self.homing.abort(home)
        self.homing = None
