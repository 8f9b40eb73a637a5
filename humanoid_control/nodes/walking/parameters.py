"""Parameters of the node `walker`, and the walk settings derived from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.walking import StabilizerGains, StepTimes, WalkSettings
from humanoid_control.walking.arm_swing import ARM_SWINGS
from humanoid_control.walking.planning.step import StepLimits
from humanoid_control.walking.planning.toe_roll import RollSettings

STEP, GAINS, ROLL = StepTimes(), StabilizerGains(), RollSettings()
WALK = WalkSettings()
UPPER = ("upright", "imitate")
TWISTS = ("Twist", "TwistStamped")
FOOTSTEPS = ("markers", "poses", "path")


@dataclass(frozen=True)
class WalkerParameters(WorldParameters):
    """Parameters of the walker."""

    ground: str = param(
        "", "map of the ground, as the parameter `ground` of the simulator; empty: estimated from the soles"
    )
    rate: float = param(250.0, "command rate; sensor messages at a higher rate are skipped", "Hz", 50.0, 1000.0)
    step_time: float = param(STEP.nominal, "step time of comfortable steps", "s", 0.3, 3.0)
    shortest_step_time: float = param(STEP.shortest, "minimum step time", "s", 0.2, 3.0)
    comfortable_step: float = param(STEP.comfortable, "step length above which steps become quicker", "m", 0.01, 10.0)
    double_support: float = param(STEP.double_support, "double support share of the step time", "", 0.05, 0.6)
    lift: float = param(STEP.lift, "swing foot height", "m", 0.0, 0.3)
    toe_roll: float = param(
        ROLL.off,
        "maximum toe roll angle of a foot with a toe joint before a long step; 0: disabled",
        "rad",
        0.0,
        0.6,
    )
    heel_strike: float = param(ROLL.strike, "landing angle of such a foot after a long step, toes up", "rad", 0.0, 0.3)
    crouch: float = param(WALK.crouch, "height of the centre of mass below the neutral posture", "m", 0.0, 0.2)
    start_time: float = param(WALK.start, "duration of the weight shift before the first step", "s", 0.3, 5.0)
    settle_time: float = param(
        WALK.settle, "duration of the weight shift to the middle after the last step", "s", 0.2, 5.0
    )
    arm_swing: str = param(
        WALK.arms,
        "motion of arms without targets: still; opposite to the legs; or against the vertical angular "
        "momentum, by the null space, a weighted norm, or a task",
        choices=ARM_SWINGS,
    )
    forward: float = param(0.0, "maximum forward step; 0: limit of the robot legs", "m", 0.0, 2.0)
    sideways: float = param(0.0, "maximum lateral step; 0: limit of the robot legs", "m", 0.0, 1.0)
    turn: float = param(0.0, "maximum turn per step; 0: limit of the robot legs", "rad", 0.0, 1.5)
    dcm_gain: float = param(GAINS.dcm, "gain of the divergent component of motion", "1/s", 0.0, 20.0)
    dcm_integral: float = param(GAINS.integral, "integral gain of the divergent component of motion", "1/s", 0.0, 5.0)
    zmp_margin: float = param(
        GAINS.margin, "minimum distance of the zero-moment point from the edge of the support", "m", 0.0, 0.05
    )
    ankle_gain: float = param(GAINS.ankle, "sole rotation rate per missing moment", "rad/(N m s)", 0.0, 0.05)
    height_gain: float = param(GAINS.height, "sole height rate per missing force", "m/(N s)", 0.0, 1e-3)
    upper: str = param(
        "upright",
        "imitate: chest and arms follow the topic `targets`, while standing and walking; upright: they do not",
        choices=UPPER,
    )
    cmd_vel_type: str = param("Twist", "message type of cmd_vel", choices=TWISTS)
    cmd_vel_timeout: float = param(0.5, "age after which cmd_vel counts as zero", "s", 0.05, 10.0, live=True)
    footsteps_type: str = param(
        "markers",
        "message type of footsteps: MarkerArray with ns l_foot or r_foot, or PoseArray or Path with alternating feet",
        choices=FOOTSTEPS,
    )
    joy_axes: str = param("1,0,3", "joy axes of forward, left, and turning left")
    joy_speeds: str = param("0.3,0.1,0.3", "velocities at full stick: forward, left [m/s], turning [rad/s]")
    joy_held: int = param(4, "joy button that must be held for the sticks to act; -1: none", "", -1, 63)
    joy_stop: int = param(1, "joy button that stops the robot as fast as possible; -1: none", "", -1, 63)
    height: float = param(
        0.0,
        "raise of the centre of mass during the next steps, within the reach of the legs",
        "m",
        -0.1,
        0.1,
        live=True,
    )
    sensor_late: float = param(
        0.02,
        "sensor silence, by its own stamps, after which the walk comes to rest",
        "s",
        0.005,
        1.0,
        live=True,
    )
    sensor_lost: float = param(
        0.06, "sensor silence after which the walk is stopped as fast as possible", "s", 0.01, 2.0, live=True
    )
    sensor_off: float = param(
        0.2, "joint state silence after which the joints are only damped", "s", 0.02, 5.0, live=True
    )
    following_error: float = param(
        0.15,
        "maximum tracking error per joint; exceeding it for 50 ms stops the walk as fast as possible, as "
        "do frozen measurements; 0: disabled",
        "rad",
        0.0,
        10.0,
        live=True,
    )
    start_check: bool = param(True, "start standing only if the sensors agree that the robot is at rest on both feet")
    odom_frame: str = param("odom", "frame of odom, footsteps and plan")
    odom_rate: float = param(100.0, "rate of odom, tf and contacts", "Hz", 1.0, 1000.0)
    odom_drift: float = param(
        0.01, "standard deviation of the odom position, as a share of the distance; for its covariance", "", 0.0, 1.0
    )
    markers_rate: float = param(
        15.0, "rate of footsteps/planned with subscribers; 0: disabled", "Hz", 0.0, 100.0, live=True
    )


def step_limits(p: WalkerParameters, own: StepLimits) -> StepLimits:
    """Return the step limits of the robot, overridden by parameters."""
    return replace(
        own,
        forward=p.forward or own.forward,
        sideways=p.sideways or own.sideways,
        turn_out=p.turn or own.turn_out,
        turn_in=min(p.turn or own.turn_in, own.turn_in),
    )


def walk_settings(p: WalkerParameters) -> WalkSettings:
    """Return the walk settings.

    Raises:
        ConfigError: if numbers are inconsistent.
    """
    times = replace(
        STEP,
        nominal=p.step_time,
        shortest=min(p.shortest_step_time, p.step_time),
        double_support=p.double_support,
        comfortable=p.comfortable_step,
        lift=p.lift,
    )
    gains = replace(
        GAINS,
        dcm=p.dcm_gain,
        integral=p.dcm_integral,
        margin=p.zmp_margin,
        ankle=p.ankle_gain,
        height=p.height_gain,
    )
    return replace(
        WALK,
        dt=1.0 / p.rate,
        times=times,
        crouch=p.crouch,
        start=p.start_time,
        settle=p.settle_time,
        arms=p.arm_swing,
        gains=gains,
        roll=RollSettings(p.toe_roll, p.heel_strike),
        ground=ground_of(p.ground) if p.ground else None,
    )
