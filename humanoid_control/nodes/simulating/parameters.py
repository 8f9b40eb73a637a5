"""Parameters of the node `simulator`, with the engine and sensor faults derived from them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.robots import Robot
from humanoid_control.simulation import DRIVES, ENGINES, ROTORS, TOUCHING, Engine, Imperfection, SimulationConfig


@dataclass(frozen=True)
class SimulatorParameters(WorldParameters):
    """Parameters of the simulator."""

    rate: float = param(500.0, "rate of the joint states in simulated time", "Hz", 10.0, 1000.0)
    engine: str = param(
        "multibody",
        "dynamics engine: this package or MuJoCo",
        choices=ENGINES,
    )
    base: str = param(
        "fixed", "fixed: the anchor link is held; floating: the robot stands on its feet", choices=("fixed", "floating")
    )
    drives: str = param(
        "ideal",
        "ideal: instantaneous torque; rigid, elastic: motors and gears from the drive file of the robot; "
        "tendons: tendons at constant tensions, whose joints ignore commands; winches: tendons driven by "
        "tendon_commands",
        choices=DRIVES,
    )
    step: float = param(0.001, "integration step", "s", 0.0001, 0.01)
    stiffness: float = param(
        60.0, "position gain of each drive, as a multiple of its effort limit", "1/rad", 1.0, 1000.0
    )
    damping_ratio: float = param(1.0, "damping ratio of each drive (1: critical)", "", 0.05, 10.0)
    rotors: str = param(
        "geared",
        "motor inertia of ideal drives: geared (high reduction) or quasi_direct (as assumed by learned policies)",
        choices=ROTORS,
    )
    friction: float = param(0.8, "friction coefficient of the ground", "", 0.0, 10.0)
    touching: str = param(
        "all",
        "ground contact: all links by their collision shapes (for falls), or only the soles",
        choices=TOUCHING,
    )
    ground: str = param(
        "", "shape of the ground, such as 'plane:slope=8' or 'stairs:rise=0.15,run=0.3,steps=5'; empty: level"
    )
    contact_stiffness: float = param(1.0e5, "ground stiffness under a sole corner", "N/m", 1.0e3, 1.0e7)
    gravity: float = param(9.81, "downward acceleration", "m/s^2", 0.0, 100.0)
    real_time_factor: float = param(1.0, "ratio of simulated time to real time; 0: as fast as possible", "", 0.0, 100.0)
    paused: bool = param(False, "start paused: wait for ~/pause or ~/step")
    stamp: str = param(
        "wall", "time of the headers: of this computer, or simulated and published on /clock", choices=("wall", "sim")
    )
    slow_every: int = param(5, "number of joint states per odometry and clock message", "", 1, 500)
    sensor_every: int = param(
        0, "number of joint states per imu and wrench message; 0: as slow_every; a walker needs 1", "", 0, 500
    )
    publish_tf: bool = param(True, "publish the true pose of the root link on /tf; false if odometry publishes it")
    command_timeout: float = param(
        0.5, "command silence after which the last position is held at rest", "s", 0.01, 60.0, live=True
    )
    gate: bool = param(True, "apply the torque gate to joints that are commanded with gains")
    may_touch: str = param(
        "", "pairs of links that the gate allows to touch, such as 'l_hand/r_hand, l_hand/torso'; empty: none"
    )
    gains_timeout: float = param(
        0.1, "silence of commands with gains after which their joints are lowered by damping", "s", 0.005, 10.0
    )
    step_periods: int = param(1, "number of joint state periods per ~/step", "", 1, 10000, live=True)
    push_duration: float = param(0.1, "duration of a wrench on ~/push", "s", 0.001, 60.0, live=True)
    tension: float = param(
        0.0,
        "tension of each tendon with drives 'tendons'; 0: the tensions that hold the neutral posture",
        "N",
        0.0,
        10000.0,
        live=True,
    )
    moment_arm_error: float = param(
        0.0,
        "standard deviation of the relative error of the tendon moment arms",
        "",
        0.0,
        0.5,
    )
    winch_error: float = param(
        0.0,
        "with drives 'winches': standard deviation of the relative error of the wire stiffness",
        "",
        0.0,
        0.5,
    )
    path_friction: float = param(
        0.0, "with drives 'winches': tendon friction along the path, as a share of the tension", "", 0.0, 0.3
    )
    seed: int = param(0, "seed of all random sensor errors; the same seed gives identical data", "", 0, 2147483647)
    noise: str = param(
        "",
        "noise standard deviations, such as 'position=0.001,gyro=0.02'; also velocity, effort, "
        "orientation, accel, force, torque, length, tension",
    )
    bias: str = param("", "standard deviations of constant offsets, drawn once; same format as noise")
    resolution: str = param("", "quantisation steps of readings; same format as noise, without orientation")
    delay: str = param(
        "", "age of readings [s]: '0.01', or 'joint_states=0.002,imu=0.01,wrench=0.005,tendon_states=0.002'"
    )
    dropout: str = param("", "probability that a message is dropped; same format as delay")
    tendons: bool = param(False, "publish tendon_states, for a robot with a tendon file")
    tendon_every: int = param(2, "number of joint states per tendon_states message", "", 1, 500)
    tendon_stiffness: float = param(
        0.0,
        "stiffness of each tendon wire; 0: inextensible, or with drives 'winches' the stiffness of the units",
        "N/m",
        0.0,
        1e9,
    )
    tendon_drift: float = param(0.0, "standard deviation of the tendon length drift in 1 s", "m", 0.0, 0.1)
    tendon_spikes: float = param(0.0, "share of tendon lengths with an error of 5 mm", "", 0.0, 1.0)
    tendon_faults: str = param(
        "",
        "failing tendons, such as 'l_biceps=slack,r_triceps=stuck'; also broken, missing; with drives "
        "'winches' also snapped, slipped=0.02 [m], deaf",
        live=True,
    )
    publish_description: bool = param(True, "publish robot_description; false if robot_state_publisher does")


def engine_of(p: SimulatorParameters, robot: Robot) -> Engine:
    """Return the engine that the parameters select.

    Raises:
        HumanoidError: see `SimulationConfig.build`.
    """
    names = {f.name for f in fields(SimulationConfig)} & {f.name for f in fields(p)}
    return SimulationConfig(**{name: getattr(p, name) for name in names}).build(robot)


def imperfection_of(p: SimulatorParameters) -> Imperfection:
    """Return the sensor imperfections.

    Raises:
        UnknownNameError: see `Imperfection.from_texts`.
        ConfigError: see `Imperfection.from_texts`.
    """
    return Imperfection.from_texts(p.noise, p.bias, p.resolution, p.delay, p.dropout)
