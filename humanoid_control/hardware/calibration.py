"""Calibration of a real robot: where each actuator's zero is, how that is known, and of which drive."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.errors import RobotError
from humanoid_control.files import check_keys, check_row, known, number, schema_file, whole_file

SCHEMA = "humanoid_calibration/1"
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
