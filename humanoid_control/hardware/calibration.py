"""Calibration (zero of each actuator) and homing.

Relative encoders are calibrated once in a known posture, or home after every start.
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
HOMING_SPEED, HOMING_TIME = 0.1, 30.0  # [rad/s] at the joint, [s]; defaults of the hardware file
BEYOND = 0.5  # [rad] by which a switch or a hard stop may lie outside the joint's range
METHODS = ("jig", "limit switch", "hand", "study")
LARGE = 0.2  # [rad] largest change of a zero without explicit permission


@dataclass(frozen=True)
class Zero:
    """Zero of one actuator.

    Attributes:
        zero: joint angle (gear) or motor angle (linkage) where the actuator reads zero [rad].
        method: one of METHODS.
        date: ISO 8601.
        std: standard deviation [rad]; 0: not known.
        serial: serial number of the drive; empty: none.
    """

    zero: float
    method: str = "hand"
    date: str = ""
    std: float = 0.0
    serial: str = ""


def calibration_path(hardware: Path) -> Path:
    """Return the path next to a hardware file: lola.hardware.yaml -> lola.calibration.yaml."""
    return hardware.with_name(hardware.name.removesuffix(".yaml").removesuffix(".hardware") + ".calibration.yaml")


def named_calibration(hardware: Path, named: str | Path | None = None) -> Path:
    """Return the named path, else the one next to the hardware file.

    Raises:
        ConfigError: if the named file does not exist.
    """
    if not named:
        return calibration_path(hardware)
    if not Path(named).is_file():
        raise ConfigError(f"{named}: calibration not found; `~/set_zero` writes the one next to the hardware file")
    return Path(named)


def read_calibration(path: Path, actuators: Iterable[str]) -> dict[str, Zero]:
    """Read zeros by actuator; empty if the file does not exist.

    Raises:
        RobotError: if a row is invalid.
        UnknownNameError: if an actuator or method is unknown.
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
    """Write zeros atomically; the previous file becomes `.1`.

    Raises:
        ConfigError: if the file cannot be written.
    """
    rows: dict[str, Any] = {name: asdict(zero) for name, zero in zeros.items()}
    text = "# Written by the driver (~/set_zero); do not edit.\n"
    text += yaml.safe_dump({"schema": SCHEMA, "actuators": rows}, sort_keys=False, allow_unicode=True)
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
        if path.exists():
            shutil.copy2(path, path.with_name(path.name + ".1"))


def missing_calibration(zeros: Mapping[str, Zero], serials: Mapping[str, str], needed: Iterable[str]) -> list[str]:
    """Return reasons for calibration before power.

    Args:
        needed: actuators that do not know their zero.
    """
    out = []
    for name in needed:
        if name not in zeros:
            out.append(f"{name} not calibrated")
    for name, zero in zeros.items():
        found = serials.get(name, "")
        if zero.serial and found and found != zero.serial:
            out.append(f"{name} needs calibration: its drive is {found}, but {zero.serial} was calibrated")
    return out


def check_change(before: Mapping[str, Zero], after: Mapping[str, Zero], allow_large: bool) -> None:
    """Reject accidental large changes.

    Raises:
        RobotError: if a zero changes by over LARGE without `allow_large`.
    """
    for name, zero in after.items():
        change = abs(zero.zero - before[name].zero) if name in before else 0.0
        if change > LARGE and not allow_large:
            raise RobotError(
                f"the zero of {name} would change by {change:.2f} rad: set allow_large_zero if this is intended"
            )


# -------- Homing

Home = Callable[[int, bool], HomingProgress]
"""Callback that starts or ends the homing of an actuator's drive; see `Transport.home`."""


@dataclass(frozen=True)
class HomingRow:
    """Homing of one joint, in units of the joint; see `HomingSpec`.

    Attributes:
        angle: joint angle at home [rad].
    """

    method: int
    speed: float
    slow: float
    effort: float
    angle: float
    timeout: float

    def spec(self, ratio: float) -> HomingSpec:
        """Convert to the actuator side; `ratio`: actuator turns per joint turn."""
        return HomingSpec(self.method, self.speed * ratio, self.slow * ratio, self.effort / ratio)


def read_homing(row: Row, span: tuple[float, float], velocity: float, effort: float) -> HomingRow:
    """Read the `homing` row of a joint.

    Args:
        span: range of the joint [rad].

    Raises:
        RobotError: if a number is out of range.
    """
    row.check(HOMING_KEYS, ("method", "angle"))
    method = row.number("method", None, -128, 127)
    if method != int(method) or method == 0:
        raise row.error(f"method must be a CiA 402 homing method, got {method:g}", "method")
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
    """Homing: groups in parallel, joints of a group in sequence.

    Attributes:
        active: joints homing now (n,).
    """

    def __init__(
        self, names: Sequence[str], rows: Mapping[str, HomingRow], transmission: Transmission, queues: list[list[int]]
    ) -> None:
        """Set up; nothing moves.

        Args:
            queues: joint indices of each group in homing order.
        """
        self._names, self._rows, self._queues = tuple(names), rows, [list(queue) for queue in queues if queue]
        self._actuators = {k: transmission.actuators_of(k)[0] for queue in queues for k in queue}
        self._started_at, self._found = dict[int, float](), set[int]()
        self._count, self._done = sum(map(len, self._queues)), 0
        self.active, self.failure = np.zeros(len(self._names), dtype=bool), ""

    def update(self, now: float, home: Home, homed: np.ndarray) -> bool:
        """Advance by one cycle; True when finished or failed.

        Args:
            homed: joints that report a known zero (n,).
        """
        for queue in self._queues:
            joint = queue[0]
            name = self._names[joint]
            begin = self._started_at.setdefault(joint, now)
            self.active[joint] = True
            progress, timeout = HomingProgress.DONE, self._rows[name].timeout
            if joint not in self._found:
                progress = home(self._actuators[joint], True)
            if progress is HomingProgress.DONE:
                self._found.add(joint)
            if progress is HomingProgress.DONE and homed[joint]:  # wait for a sample that uses the new zero
                queue.pop(0)
                self.active[joint], self._done = False, self._done + 1
            elif progress is HomingProgress.FAILED:
                self.failure = f"homing of {name} failed: the drive did not find its zero"
            elif now - begin > timeout:
                self.failure = f"homing of {name} failed: not finished after {timeout:g} s"
        self._queues = [queue for queue in self._queues if queue]
        return bool(self.failure) or not self._queues

    def abort(self, home: Home) -> None:
        """End the homing of all active drives."""
        for joint in np.flatnonzero(self.active).tolist():
            home(self._actuators[joint], False)
        self.active[:] = False

    def __str__(self) -> str:
        now = ", ".join(self._names[queue[0]] for queue in self._queues)
        return f"homing {now}; {self._done} of {self._count} done"


def homing_queues(names: Sequence[str], groups: Mapping[str, Sequence[str]], wanted: Iterable[str]) -> list[list[int]]:
    """Return joint indices in homing order, one queue a group and one for the rest."""
    chosen, grouped = set(wanted), {joint for joints in groups.values() for joint in joints}
    rest = [n for n in names if n not in grouped]
    return [[names.index(j) for j in joints if j in chosen] for joints in (*groups.values(), rest)]


class Encoders:
    """Known zeros of n joints, and homing of the others.

    Attributes:
        homed: joints that know their zero; True without homing (n,).
        waits: True if any zero is unknown.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Mapping[str, HomingRow],
        groups: Mapping[str, Sequence[str]],
        transmission: Transmission,
    ) -> None:
        self._names, self._rows, self._groups, self._transmission = tuple(names), rows, groups, transmission
        self._homes = {k: list(transmission.actuators_of(k)) for k, name in enumerate(names) if name in rows}
        self.homed = np.ones(len(names), dtype=bool)
        self.homing: Homing | None = None
        self.waits = False

    def unknown(self, state: ActuatorState) -> np.ndarray | None:
        """Update from new samples; return joints without valid positions (n,), or None."""
        if not self._homes:
            return None
        know = state.have(Flag.HOMED)
        for k, actuators in self._homes.items():
            self.homed[k] = know[actuators].all()
        unknown = ~self.homed if self.homing is None else ~self.homed | self.homing.active
        self.waits = not self.homed.all()
        return unknown if unknown.any() else None

    def missing(self) -> list[str]:
        """Return joints that do not know their zeros."""
        return [] if not self._homes else [m for m, good in zip(self._names, self.homed, strict=True) if not good]

    def begin(self, names: Sequence[str]) -> str:
        """Home these joints, else all without a zero; return the reason of a refusal, or ''."""
        if strange := [m for m in names if m not in self._rows]:
            return f"no homing in the hardware file for {', '.join(strange)}"
        if not (wanted := list(names) or self.missing()):
            return "nothing to do: all joints have a known zero, or no homing in the hardware file"
        queues = homing_queues(self._names, self._groups, wanted)
        self.homing = Homing(self._names, self._rows, self._transmission, queues)
        return ""

    def proceed(self, now: float, home: Home, reference: np.ndarray, q: np.ndarray) -> bool:
        """Advance by one cycle; True when over.

        Args:
            reference: set to q for joints that have just finished (n,) [rad].
            q: measured (n,) [rad].
        """
        assert self.homing is not None
        before = self.homing.active.copy()
        over = self.homing.update(now, home, self.homed)
        np.copyto(reference, q, where=before & ~self.homing.active)
        if over and not self.homing.failure:
            self.homing = None
        return over

    def abort(self, home: Home) -> None:
        """Cancel homing."""
        if self.homing is not None:
            self.homing.abort(home)
        self.homing = None
