"""Hardware file `<robot>.hardware.yaml`: buses, actuators, limits, supervision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import HumanoidError
from humanoid_control.files import schema_file
from humanoid_control.hardware.calibration import HomingRow, Zero, read_homing
from humanoid_control.hardware.commands.limiter import CommandLimits
from humanoid_control.hardware.supervision import SupervisionLimits
from humanoid_control.hardware.transmission import Gear, Linkage, Transmission
from humanoid_control.hardware.transport import TRANSPORTS, ActuatorSpec, BusSpec, Mode, transport_class
from humanoid_control.hardware.yaml_rows import Row, key_lines
from humanoid_control.multibody.mechanisms import DriveMechanism
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.drive_mechanisms import mechanisms_of
from humanoid_control.robots.drives import drives_of

SCHEMA = "humanoid_hardware/1"
FILE_KEYS = (
    "schema", "robot", "rate", "command_timeout", "soft_start", "soft_speed", "range_margin", "max_step", "defaults",
    "buses", "joints", "drives", "groups", "estop", "guardian",
)  # fmt: skip
LIMIT_KEYS = ("velocity", "acceleration", "effort", "lower", "upper")
SUPERVISED = ("following_error", "temperature", "voltage", "continuous")
JOINT_KEYS = (
    "bus", "id", "mode", "ratio", "sign", "offset", "kp", "kd", "needs_calibration", "limits", "homing", *SUPERVISED,
)  # fmt: skip
DRIVE_KEYS = ("bus", "ids", "signs", "offsets", "needs_calibration", "limits", *SUPERVISED)
DEFAULTS: dict[str, Any] = {"velocity": 0.5, "acceleration": 20.0, "effort": 0.8, "following_error": 0.15}
TEMPERATURE, VOLTAGE, LOAD = (70.0, 80.0), (0.0, 1000.0), 0.7
GUARDIANS = ("auto", "always", "never")


@dataclass(frozen=True)
class Bus:
    """Bus of the robot."""

    transport: str
    spec: BusSpec


@dataclass(frozen=True)
class DrivenJoint:
    """Limits of one driven joint: lower, upper [rad], velocity [rad/s], acceleration [rad/s^2], effort [N m] of
    commands.

    Attributes:
        following_error: fault level [rad].
        temperature: warning, fault [deg C].
        voltage: permitted supply [V].
        continuous: sustained torque [N m].
        kp: [N m/rad].
        kd: [N m s/rad].
        rated_velocity: limit of the measured speed, from row or URDF [rad/s].
        rated_effort: limit of the measured torque, from row or URDF [N m].
    """

    name: str
    lower: float
    upper: float
    velocity: float
    acceleration: float
    effort: float
    following_error: float = 0.15
    temperature: tuple[float, float] = TEMPERATURE
    voltage: tuple[float, float] = VOLTAGE
    continuous: float = np.inf
    mode: Mode = Mode.POSITION
    kp: float = 0.0
    kd: float = 0.0
    rated_velocity: float = np.inf
    rated_effort: float = np.inf


@dataclass(frozen=True)
class LinkageRow:
    """Drive with several motors that move several joints."""

    drive: str
    actuators: tuple[str, ...]
    signs: tuple[float, ...]
    offsets: tuple[float, ...]


@dataclass(frozen=True)
class GearRow:
    """Actuator of the joint with its name: q_joint = sign q_actuator / ratio + offset."""

    ratio: float = 1.0
    sign: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Hardware:
    """Real robot as its file describes it.

    Attributes:
        robot: with a fixed base.
        fixed: angle of joints without a drive [rad].
        needs_calibration: actuators that do not know their zero.
        rate: cycle rate of the driver [Hz].
        command_timeout: silence of commands that stops the robot [s].
        soft_start: shortest blend [s].
        soft_speed: largest speed that a blend adds [rad/s].
        range_margin: inside the range [rad].
        max_step: command step that starts a new blend [rad].
        estop_heartbeat: silence of the emergency stop that stops the robot [s]; 0: no heartbeat.
    """

    robot: Robot
    path: Path | None
    buses: tuple[Bus, ...]
    joints: tuple[DrivenJoint, ...]
    gears: Mapping[str, GearRow]
    linkages: tuple[LinkageRow, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)
    needs_calibration: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    homing: Mapping[str, HomingRow] = field(default_factory=dict)
    rate: float = 500.0
    command_timeout: float = 0.1
    soft_start: float = 2.0
    soft_speed: float = 0.5
    range_margin: float = 0.02
    max_step: float = 0.3
    estop_topic: str = "emergency_stop"
    estop_heartbeat: float = 0.0
    guardian: str = "auto"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Driven joints."""
        return tuple(j.name for j in self.joints)

    @cached_property
    def actuators(self) -> tuple[str, ...]:
        """Actuators of all buses, in the order of all arrays."""
        return tuple(a.name for bus in self.buses for a in bus.spec.actuators)

    def column(self, key: str) -> np.ndarray:
        """Return one field of each driven joint (n,)."""
        return np.array([getattr(j, key) for j in self.joints], dtype=float)

    def command_limits(self) -> CommandLimits:
        """Return limits of commands; the range is reduced by the margin."""
        lower, upper = self.column("lower"), self.column("upper")
        margin = np.minimum(self.range_margin, (upper - lower) / 4)
        rest = (self.column(k) for k in ("velocity", "acceleration", "effort"))
        return CommandLimits(lower + margin, upper - margin, *rest)

    def supervision_limits(self) -> SupervisionLimits:
        """Return limits of measurements."""
        warm, hot = np.array([j.temperature for j in self.joints]).T
        low, high = np.array([j.voltage for j in self.joints]).T
        rest = {k: self.column(k) for k in ("continuous", "following_error")}
        rest |= {k: self.column(f"rated_{k}") for k in ("velocity", "effort")}
        return SupervisionLimits(
            self.column("lower"), self.column("upper"), self.range_margin, warm=warm, hot=hot, low_voltage=low,
            high_voltage=high, **rest,
        )  # fmt: skip

    def transmission(self, zeros: Mapping[str, Zero]) -> Transmission:
        """Return the transmission; calibrated zeros replace the file's offsets.

        Raises:
            RobotError: if a drive mechanism is invalid.
        """
        place = {name: k for k, name in enumerate(self.actuators)}
        joint = {name: k for k, name in enumerate(self.names)}

        def offset(actuator: str, otherwise: float) -> float:
            return zeros[actuator].zero if actuator in zeros else otherwise

        gears = [Gear(joint[n], place[n], g.ratio, g.sign, offset(n, g.offset)) for n, g in self.gears.items()]
        linkages = []
        mechanisms: dict[str, DriveMechanism] = mechanisms_of(self.robot) if self.linkages else {}
        for row in self.linkages:
            drive = next(d for d in drives_of(self.robot).drives if d.name == row.drive)
            offsets = [offset(a, o) for a, o in zip(row.actuators, row.offsets, strict=True)]
            linkages.append(
                Linkage(
                    mechanisms[row.drive],
                    tuple(joint[j] for j in drive.joints),
                    tuple(place[a] for a in row.actuators),
                    np.array(row.signs),
                    np.array(offsets),
                )
            )
        return Transmission(len(self.joints), gears, linkages)

    def on_one_bus(self, transport: str, options: Mapping[str, Any] | None = None) -> Hardware:
        """Return a simulated copy with the same joints, limits and timing, without gears.

        Args:
            transport: 'simulator' or 'loopback'.
        """
        stiff = {Mode.IMPEDANCE: Mode.POSITION}
        joints = tuple(replace(j, mode=stiff.get(j.mode, j.mode)) for j in self.joints)
        start = self.robot.postures["neutral"]
        actuators = tuple(
            ActuatorSpec(
                j.name,
                k,
                j.mode,
                lower=j.lower,
                upper=j.upper,
                velocity=j.velocity,
                effort=j.effort,
                options={"start": float(start[self.robot.index[j.name]])} if transport == "loopback" else {},
            )
            for k, j in enumerate(joints)
        )
        spec = BusSpec(transport, actuators, 1.0 / self.rate, options or {})
        return replace(
            self,
            joints=joints,
            buses=(Bus(transport, spec),),
            gears={j.name: GearRow() for j in joints},
            linkages=(),
            needs_calibration=(),
            homing={},
            guardian="auto",
        )


def without_file(
    robot: Robot, transport: str, options: Mapping[str, Any] | None = None, rate: float = 500.0
) -> Hardware:
    """Return a robot on simulated drives, all joints driven, default shares of the URDF limits.

    Args:
        robot: fixed base.
        rate: [Hz].
    """
    led = {f for f, *_ in robot.mimic}
    joints = tuple(
        _driven(robot, name, Row({}, Path(robot.name), {}), Row({}, Path(robot.name), {}), Mode.POSITION)
        for k, name in enumerate(robot.joint_names)
        if k not in led
    )
    plain = Hardware(robot, None, (), joints, {}, rate=rate)
    return plain.on_one_bus(transport, options)


# -------- Reading


def hardware_path(robot: Robot) -> Path | None:
    """Return the hardware file next to a robot's URDF, or None."""
    path = robot.folder / f"{robot.name}.hardware.yaml" if robot.folder is not None else None
    return path if path is not None and path.is_file() else None


def read_hardware_file(path: Path, robot: Robot | None = None, rate: float = 0.0) -> Hardware:
    """Read and check a hardware file.

    Args:
        robot: with a fixed base; None: named in the file.
        rate: [Hz]; 0: from the file.

    Raises:
        HumanoidError: if invalid; names file, line, cause, nearest valid word.
    """
    values = schema_file(path, SCHEMA, "hardware file")
    file = Row(values, path, key_lines(path))
    if "tendons" in file:
        raise file.error("the file describes muscle units: start tendon_driver instead of robot_driver", "tendons")
    file.check(FILE_KEYS, ("robot", "buses", "joints"))
    named = file.text("robot")
    if robot is None:
        robot = robot_of(file)
    elif not named.endswith(".urdf") and named != robot.name:
        raise file.error(f"the file describes {named}, the robot is {robot.name}", "robot")
    return _HardwareReader(file, robot, rate).hardware()


def robot_of(file: Row) -> Robot:
    """Load the named robot with a fixed base; a URDF next to the file comes first.

    Raises:
        RobotError: if it does not exist.
    """
    name = file.text("robot")
    beside = file.path.parent / name
    try:
        return load_robot(beside if name.endswith(".urdf") and beside.is_file() else name, "fixed")
    except HumanoidError as e:
        raise file.error(str(e), "robot") from None


def _driven(robot: Robot, name: str, row: Row, defaults: Row, mode: Mode) -> DrivenJoint:
    """Read a driven joint: limits from its row, else shares of the URDF limits."""
    k = robot.index[name]
    most = {"velocity": float(robot.velocity[k]), "effort": float(robot.effort[k])}
    limits = row.row("limits")
    limits.check(LIMIT_KEYS)
    values: dict[str, float] = {}
    for key, whole in most.items():
        share = defaults.number(key, DEFAULTS[key], 0.0, 1.0)
        values[key] = limits.number(key, share * whole, 0.0)
        if values[key] > whole:
            raise limits.error(f"{key} {values[key]:g} of {name} is wider than the URDF's {whole:g}", key)
    for key, whole, wider in (("lower", robot.lower[k], -1), ("upper", robot.upper[k], 1)):
        values[key] = limits.number(key, float(whole))
        if wider * values[key] > wider * whole + 1e-9:
            raise limits.error(f"{key} {values[key]:g} of {name} is wider than the URDF's {whole:g}", key)
    if not values["lower"] < values["upper"]:
        raise limits.error(f"{name} has no range between {values['lower']:g} and {values['upper']:g}", "lower")
    acceleration = min(defaults.number("acceleration", DEFAULTS["acceleration"], 1e-3), robot.acceleration_limits[k])
    return DrivenJoint(
        name,
        acceleration=limits.number("acceleration", acceleration, 1e-3),
        following_error=row.number(
            "following_error", defaults.number("following_error", DEFAULTS["following_error"], 1e-6), 1e-6
        ),
        temperature=row.pair("temperature", defaults.pair("temperature", TEMPERATURE)),
        voltage=row.pair("voltage", defaults.pair("voltage", VOLTAGE)),
        continuous=row.number("continuous", np.inf, 1e-6),
        mode=mode,
        kp=row.number("kp", 0.0, 0.0),
        kd=row.number("kd", 0.0, 0.0),
        rated_velocity=limits.number("velocity", most["velocity"]),
        rated_effort=limits.number("effort", most["effort"]),
        **values,
    )


def bus_of(name: str, row: Row, actuators: Sequence[ActuatorSpec], rate: float) -> Bus:
    """Read a bus.

    Raises:
        RobotError: if a key is unknown, there is no actuator, or the load is too high.
    """
    transport = row.text("transport")
    cls = class_of(row, transport)
    row.check(("transport", "load", *cls.bus_keys))
    options = row.options(cls.bus_keys)
    if not actuators:
        raise row.error(f"no actuator is on bus {name}")
    spec = BusSpec(name, tuple(actuators), 1.0 / rate, options, row.where())
    load, most = cls.bus_load(spec), row.number("load", LOAD, 0.0, 1.0)
    if load > most:
        slower = int(rate * most / load / 10) * 10
        raise row.error(
            f"bus '{name}' would carry {100 * load:.0f} % of its capacity at {rate:g} Hz (limit "
            f"{100 * most:.0f} %): lower the rate to {slower} Hz, or use two buses"
        )
    return Bus(transport, spec)


def class_of(row: Row, transport: str) -> Any:
    """Return the transport class named in the row of a bus.

    Raises:
        RobotError: if the transport is unknown or lacks a package.
    """
    try:
        return transport_class(transport)
    except HumanoidError as e:
        raise row.error(str(e), "transport") from None


class _HardwareReader:
    """Parser of one hardware file."""

    def __init__(self, file: Row, robot: Robot, rate: float) -> None:
        self.file, self.robot = file, robot
        self.buses, self.defaults = file.row("buses"), file.row("defaults")
        self.defaults.check((*DEFAULTS, "temperature", "voltage"))
        self.rate = rate or file.number("rate", 500.0, 50.0, 1000.0)
        self.on_bus: dict[str, list[ActuatorSpec]] = {name: [] for name in self.buses.values}
        self.joints: dict[str, DrivenJoint] = {}
        self.gears: dict[str, GearRow] = {}
        self.linkages: list[LinkageRow] = []
        self.fixed: dict[str, float] = {}
        self.needs: list[str] = []
        self.homing: dict[str, HomingRow] = {}

    def hardware(self) -> Hardware:
        for _, row in self.buses.rows():
            row.known("transport", row.text("transport"), TRANSPORTS, "transport")
        for name, row in self.file.row("joints").rows():
            row.known("joint", name, self.robot.index)
            self._joint(name, row)
        for name, row in self.file.row("drives").rows():
            self._linkage(name, row)
        led = {self.robot.joint_names[f] for f, *_ in self.robot.mimic}
        lost = [n for n in self.robot.joint_names if n not in {*self.joints, *self.fixed, *led}]
        if lost:
            names = ", ".join(lost[:4]) + (f" and {len(lost) - 4} more" if len(lost) > 4 else "")
            raise self.file.error(f"neither driven nor fixed: {names}", "joints")
        number = partial(self.file.number, low=0.0)
        estop = self.file.row("estop")
        estop.check(("topic", "heartbeat"))
        ordered = [self.joints[n] for n in self.robot.joint_names if n in self.joints]
        return Hardware(
            self.robot,
            self.file.path,
            tuple(bus_of(name, row, self.on_bus[name], self.rate) for name, row in self.buses.rows()),
            tuple(ordered),
            self.gears,
            tuple(self.linkages),
            self.fixed,
            tuple(self.needs),
            self._groups(),
            self.homing,
            self.rate,
            command_timeout=number("command_timeout", 0.1, high=10.0),
            soft_start=number("soft_start", 2.0, high=60.0),
            soft_speed=self.file.number("soft_speed", 0.5, 0.01, 10.0),
            range_margin=number("range_margin", 0.02, high=0.5),
            max_step=self.file.number("max_step", 0.3, 0.001, 10.0),
            estop_topic=estop.text("topic", "emergency_stop"),
            estop_heartbeat=estop.number("heartbeat", 0.0, 0.0, 60.0),
            guardian=self.file.known("guardian", self.file.text("guardian", "auto"), GUARDIANS, "guardian"),
        )

    def _groups(self) -> dict[str, tuple[str, ...]]:
        row, out = self.file.row("groups"), dict[str, tuple[str, ...]]()
        for name in row.values:
            out[name] = joints = row.names(name)
            for joint in joints:
                row.known("driven joint", joint, self.joints, name)
                if sum(joint in members for members in out.values()) > 1:
                    raise row.error(f"{joint} is in two groups", name)
        return out

    def _homing(self, name: str, row: Row, cls: Any) -> HomingRow | None:
        if "homing" not in row:
            return None
        if not cls.homes:
            raise row.error(f"drives of bus {row.text('bus')} do not support homing", "homing")
        if "offset" in row:
            raise row.error(
                f"offset of {name} conflicts with its homing, which defines the angle at encoder 0", "offset"
            )
        most = self.joints[name]
        self.homing[name] = read_homing(row.row("homing"), (most.lower, most.upper), most.velocity, most.effort)
        return self.homing[name]

    def _joint(self, name: str, row: Row) -> None:
        if "fixed" in row:
            row.check(("fixed",))
            k = self.robot.index[name]
            self.fixed[name] = row.number("fixed", None, float(self.robot.lower[k]), float(self.robot.upper[k]))
            return
        cls = self._class_of(row)
        row.check((*JOINT_KEYS, *cls.actuator_keys), ("bus", "id"))
        by_gains = "IMPEDANCE" if "kp" in row else "POSITION"
        mode = Mode[row.known("mode", row.text("mode", by_gains), Mode.__members__, "mode")]
        if mode is Mode.EFFORT and not ("kp" in row and "kd" in row):
            raise row.error(f"{name} is torque-controlled: it needs kp and kd for holding without commands", "mode")
        joint = self.joints[name] = _driven(self.robot, name, row, self.defaults, mode)
        ratio, sign = row.number("ratio", 1.0), row.number("sign", 1.0)
        if ratio <= 0:
            raise row.error(f"ratio of {name} must be above zero (use sign for the direction), got {ratio:g}", "ratio")
        if abs(sign) != 1:
            raise row.error(f"sign of {name} must be 1 or -1, got {sign:g}", "sign")
        home = self._homing(name, row, cls)
        gear = self.gears[name] = GearRow(ratio, sign, home.angle if home else row.number("offset", 0.0))
        r = gear.sign * gear.ratio
        ends = sorted(((joint.lower - gear.offset) * r, (joint.upper - gear.offset) * r))
        spec = ActuatorSpec(
            name, row.count("id"), mode, ends[0], ends[1], joint.velocity * gear.ratio, joint.effort / gear.ratio,
            joint.kp / r**2, joint.kd / r**2, row.options(cls.actuator_keys), row.where(),
            home.spec(ratio) if home else None,
        )  # fmt: skip
        self._on_bus(row, spec, "id")
        if row.options({"needs_calibration": False}).get("needs_calibration"):
            self.needs.append(name)

    def _linkage(self, name: str, row: Row) -> None:
        drives = {d.name: d for d in drives_of(self.robot).drives}
        row.known("drive", name, drives)
        drive, cls = drives[name], self._class_of(row)
        row.check((*DRIVE_KEYS, *cls.actuator_keys), ("bus", "ids"))
        m = len(drive.joints)
        for joint in drive.joints:
            if joint in self.joints or joint in self.fixed:
                raise row.error(f"{joint} has its own row, but belongs to the drive {name}")
            self.joints[joint] = _driven(self.robot, joint, row, self.defaults, Mode.POSITION)
        ids = row.listed("ids", int, m)
        signs = row.listed("signs", float, m) if "signs" in row else [1.0] * m
        offsets = row.listed("offsets", float, m) if "offsets" in row else [0.0] * m
        if any(abs(s) != 1 for s in signs):
            raise row.error(f"signs of {name} must be 1 or -1, got {signs}", "signs")
        actuators = tuple(f"{name}.{k + 1}" for k in range(m)) if m > 1 else (name,)
        for actuator, number in zip(actuators, ids, strict=True):
            spec = ActuatorSpec(actuator, number, options=row.options(cls.actuator_keys), where=row.where())
            self._on_bus(row, spec, "ids")
        self.linkages.append(LinkageRow(name, actuators, tuple(signs), tuple(offsets)))
        if row.options({"needs_calibration": False}).get("needs_calibration"):
            self.needs += actuators

    def _class_of(self, row: Row) -> Any:
        bus = row.known("bus", row.text("bus"), self.buses.values, "bus")
        return class_of(self.buses.row(bus), self.buses.row(bus).text("transport"))

    def _on_bus(self, row: Row, spec: ActuatorSpec, key: str) -> None:
        bus = row.text("bus")
        for other in self.on_bus[bus]:
            if other.id == spec.id:
                raise row.error(f"id {spec.id} is used twice on bus {bus} ({other.name}, {spec.name})", key)
        self.on_bus[bus].append(spec)
