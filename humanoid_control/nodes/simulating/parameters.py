"""Parameters of the node `simulator`, with the engine and sensor faults derived from them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.robots import Robot
from humanoid_control.simulation import DRIVES, ENGINES, ROTORS, TOUCHING, Engine, Imperfection, SimulationConfig


@dataclass(frozen=True)
class SimulatorParameters(WorldParameters):
    """Parameters of the simulator."""

    rate: float = param(500.0, "rate of the joint states, in simulated time", "Hz", 10.0, 1000.0)
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
        "ideal: torque at once; rigid, elastic: motors and gears from the robot's file of drives; tendons: tendons at "
        "constant tensions, and no command moves the joints they cross; winches: tendon_commands move them",
        choices=DRIVES,
    )
    step: float = param(0.001, "length of an integration step", "s", 0.0001, 0.01)
    stiffness: float = param(
        60.0, "position gain of each drive, as a multiple of its effort limit", "1/rad", 1.0, 1000.0
    )
    damping_ratio: float = param(1.0, "damping of each drive, 1 is critical", "", 0.05, 10.0)
    rotors: str = param(
        "geared",
        "inertia of the motors of ideal drives: geared, as behind a high reduction; quasi_direct, as learned policies "
        "have it",
        choices=ROTORS,
    )
    friction: float = param(0.8, "friction of the ground", "", 0.0, 10.0)
    touching: str = param(
        "all",
        "contact with the ground: all links by their collision shapes, for falls, or the soles only",
        choices=TOUCHING,
    )
    ground: str = param(
        "", "shape of the ground, as 'plane:slope=8' or 'stairs:rise=0.15,run=0.3,steps=5'; empty: level"
    )
    contact_stiffness: float = param(1.0e5, "stiffness of the ground under a corner of a sole", "N/m", 1.0e3, 1.0e7)
    gravity: float = param(9.81, "downward acceleration", "m/s^2", 0.0, 100.0)
    real_time_factor: float = param(1.0, "simulated by real time; 0: as fast as possible", "", 0.0, 100.0)
    paused: bool = param(False, "begin paused: wait for ~/pause or ~/step")
    stamp: str = param(
        "wall", "time in the headers: of this computer, or simulated, then on /clock too", choices=("wall", "sim")
    )
    slow_every: int = param(5, "joint states per message of odometry and clock", "", 1, 500)
    sensor_every: int = param(
        0, "joint states per message of imu and wrenches; 0: as slow_every. A walker needs 1", "", 0, 500
    )
    publish_tf: bool = param(True, "publish the true pose of the root link on /tf; false where odometry does")
    command_timeout: float = param(
        0.5, "silence of the commands after which the last position is held at rest", "s", 0.01, 60.0, live=True
    )
    gate: bool = param(True, "torques of joints that are commanded with gains pass the gate")
    may_touch: str = param(
        "", "pairs of links that the gate lets touch, as 'l_hand/r_hand, l_hand/torso'; empty: it keeps all apart"
    )
    gains_timeout: float = param(
        0.1, "silence of commands with gains after which their joints are let down by damping", "s", 0.005, 10.0
    )
    step_periods: int = param(1, "periods of the joint states that ~/step advances by", "", 1, 10000, live=True)
    push_duration: float = param(0.1, "how long a wrench on ~/push acts", "s", 0.001, 60.0, live=True)
    tension: float = param(
        0.0,
        "tension of every tendon with drives 'tendons'; 0: the tensions that hold the neutral posture",
        "N",
        0.0,
        10000.0,
        live=True,
    )
    moment_arm_error: float = param(
        0.0,
        "standard deviation of the factors by which the tendons' moment arms are not those of the file",
        "",
        0.0,
        0.5,
    )
    winch_error: float = param(
        0.0,
        "with drives 'winches': standard deviation of the factors by which the wires are stiffer than their units say",
        "",
        0.0,
        0.5,
    )
    path_friction: float = param(
        0.0, "with drives 'winches': friction of tendons along their paths, as a share of the tension", "", 0.0, 0.3
    )
    seed: int = param(0, "seed of everything random in the sensors: the same seed, the same bytes", "", 0, 2147483647)
    noise: str = param(
        "",
        "standard deviations, as 'position=0.001,gyro=0.02'; also velocity, effort, orientation, accel, force, torque, "
        "length, tension",
    )
    bias: str = param("", "standard deviations of constant offsets, drawn once; as noise")
    resolution: str = param("", "steps that readings are rounded to; as noise, but not of orientation")
    delay: str = param(
        "", "age of readings [s]: '0.01', or 'joint_states=0.002,imu=0.01,wrench=0.005,tendon_states=0.002'"
    )
    dropout: str = param("", "probability that a message is left out; as delay")
    tendons: bool = param(False, "publish tendon_states, for a robot with a file of tendons")
    tendon_every: int = param(2, "joint states per message of tendon_states", "", 1, 500)
    tendon_stiffness: float = param(
        0.0,
        "stiffness of each tendon's wire; 0: wires do not stretch, with drives 'winches' the stiffness of the units",
        "N/m",
        0.0,
        1e9,
    )
    tendon_drift: float = param(0.0, "standard deviation of the drift of a tendon length in a second", "m", 0.0, 0.1)
    tendon_spikes: float = param(0.0, "share of the lengths of tendons that are 5 mm wrong", "", 0.0, 1.0)
    tendon_faults: str = param(
        "",
        "tendons that fail, as 'l_biceps=slack,r_triceps=stuck'; also broken, missing; with drives 'winches' also "
        "snapped, slipped=0.02 [m], deaf",
        live=True,
    )
    publish_description: bool = param(True, "publish robot_description; false where robot_state_publisher does")


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
