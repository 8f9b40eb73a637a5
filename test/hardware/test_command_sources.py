"""Power states times command sources: nothing that came without power, before a stop or out of date moves a robot."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.gained_command import Gains
from humanoid_control.hardware.commands.sources import CommandSources
from humanoid_control.hardware.commands.trajectory import AHEAD, LATE, TrajectoryPoint, scheduled
from humanoid_control.hardware.power import Event, PowerState
from humanoid_control.hardware.transport import Mode
from humanoid_control.robots import load_robot
from test.hardware.test_driver import Rig
from test.hardware.test_gained_joints import IMPEDANCE

OFFLINE, MONITOR, ENABLING, HOLD, BLEND, RUN, STOPPING, FAULT, ESTOP = PowerState
FAR = 0.4  # [rad] from where the robot is
NONE = np.full(2, np.nan)


class Sourced(Rig):
    """The elbows of HRP-2 with everything that may move them; `advance` runs before each cycle, as in the node."""

    def __init__(self, robot, clock, **changed):
        super().__init__(robot, clock, **changed)
        self.sources = CommandSources(self.driver)
        cycle = self.driver.cycle

        def both():
            self.sources.advance(clock.now)
            cycle()

        self.driver.cycle = both

    def single(self, *joints):
        """Command some joints, far away."""
        q = NONE.copy()
        q[list(joints)] = self.hold_at[list(joints)] + FAR
        self.sources.command(JointCommand(q, NONE, NONE), self.clock.now, self.clock.now)

    def velocities(self):
        """Command both joints a velocity and no place."""
        self.sources.command(JointCommand(NONE, np.full(2, 0.5), NONE), self.clock.now, self.clock.now)

    def with_gains(self):
        """Command both joints, far away, with gains of the sender's."""
        gains = Gains(np.full(2, 60.0), np.full(2, 1.5))
        now = self.clock.now
        self.sources.command(JointCommand(self.hold_at + FAR, np.zeros(2), np.zeros(2)), now, now, gains)

    def trajectory(self, age=0.0, seconds=0.5):
        """Send a trajectory of both joints; True where it was taken."""
        points = [TrajectoryPoint(seconds, (self.hold_at + FAR).tolist())]
        try:
            self.sources.start(self.names, points, age, self.clock.now)
        except ConfigError:
            return False
        return True

    def to_power(self):
        """Bring the robot to where it follows commands, whatever its state is; it stays there."""
        d = self.driver
        if self.state is STOPPING and not d.stopped:
            self.to(MONITOR)
        if self.state in (FAULT, ESTOP):
            d.emergency_stop("test", False)
            self.run(1.0)
            assert d.clear_faults() == ""
            self.to(MONITOR)
        if self.state not in (ENABLING, HOLD) or d.stopped:
            self.run(0.3)
            assert d.enable() == ""
        return self.to(HOLD)


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


@pytest.fixture
def rig(robot, clock):
    return Sourced(robot, clock)


@pytest.fixture
def rig_for(robot, clock):
    """Return a function that makes a rig whose drives take a source."""
    drives = {"commands with gains": IMPEDANCE, "velocities": {"mode": Mode.VELOCITY}}
    return lambda source: Sourced(robot, clock, joint=drives.get(source))


def monitored(r):
    r.run(0.3)


def enabling(r):
    r.run(0.05)
    assert r.driver.enable() == ""
    r.to(ENABLING)


def stopping(r):
    r.running(lambda t: (r.hold_at + 0.002, 0.5))
    r.driver.stop()
    r.to(STOPPING)


def stopped(r):
    r.running()
    r.driver.stop()
    r.to(HOLD)


def switching_off(r):
    r.running(lambda t: (r.hold_at + 0.002, 0.5))
    r.driver.disable()
    r.to(STOPPING)


def switched_off(r):
    r.running()
    r.driver.disable()
    r.to(MONITOR)


def faulty(r):
    r.running()
    r.driver.machine.handle(Event.FAIL, r.clock.now, "a fault")
    r.to(FAULT)


def emergency(r):
    r.running()
    r.driver.emergency_stop("test", True)
    r.to(ESTOP)


def holding(r):
    r.enabled()


def blending(r):
    r.enabled().to(BLEND, r.still)


def running(r):
    r.running(r.still)


FOLLOWING = [holding, blending, running]
STATES = [monitored, enabling, stopping, stopped, switching_off, switched_off, faulty, emergency]
STATE_OF = {
    monitored: MONITOR,
    enabling: ENABLING,
    holding: HOLD,
    blending: BLEND,
    running: RUN,
    stopping: STOPPING,
    stopped: HOLD,
    switching_off: STOPPING,
    switched_off: MONITOR,
    faulty: FAULT,
    emergency: ESTOP,
}
SOURCES = {
    "commands": lambda r: r.single(0, 1),
    "commands of one joint, then of the other": lambda r: (r.single(0), r.single(1)),
    "trajectory": lambda r: r.trajectory(),
    "trajectory that begins later": lambda r: r.trajectory(age=-2.0),
    "velocities": lambda r: r.velocities(),
    "commands with gains": lambda r: r.with_gains(),
}
SENT_ONCE = ("trajectory", "trajectory that begins later")


@pytest.mark.parametrize("state", [*STATES, *FOLLOWING])
def test_a_state_of_the_table_is_reached(rig, state):
    state(rig)
    assert rig.state is STATE_OF[state]


def test_the_table_has_every_state():
    assert set(STATE_OF.values()) == set(PowerState) - {OFFLINE}, "commands are heard once the buses are open"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("state", FOLLOWING)
def test_every_source_moves_a_robot_that_follows_within_its_speed(rig_for, state, source):
    rig = rig_for(source)
    state(rig)
    at, seen = rig.left.q[0], len(rig.trace)
    for k in range(3000):
        if source not in SENT_ONCE or k == 0:
            SOURCES[source](rig)
        rig.run(0.002)
        if abs(rig.left.q[0] - at) > FAR / 2:
            break
    assert abs(rig.left.q[0] - at) > FAR / 2, rig.driver.machine
    if "gains" not in source:  # these reach the drive at once and are bounded by their torque: another test
        assert np.abs(rig.speeds()[seen:]).max() < 3.0 * (1 + 1e-9)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("state", STATES)
def test_nothing_of_the_time_without_power_or_before_a_stop_moves_the_robot(rig_for, state, source):
    rig = rig_for(source)
    state(rig)
    began = rig.state
    for _ in range(5):
        if rig.state is began:
            SOURCES[source](rig)
            rig.run(0.002)
    assert rig.driver.commands.last == -np.inf and rig.sources.player.spline is None
    assert not rig.driver.gained.command.any
    rig.to_power()
    at = rig.hold_at
    rig.run(2.8 if "later" in source else 0.8)
    assert rig.state is HOLD and np.abs(rig.hold_at - at).max() < 1e-9


@pytest.mark.parametrize("end", [stopped, switched_off, emergency], ids=lambda f: f.__name__)
def test_a_trajectory_that_was_cut_never_goes_on(rig, end):
    rig.enabled()
    assert rig.trajectory(seconds=3.0)
    rig.to(RUN)
    rig.run(0.5)
    {stopped: rig.driver.stop, switched_off: rig.driver.disable}.get(
        end, lambda: rig.driver.emergency_stop("test", True)
    )()
    rig.to({stopped: HOLD, switched_off: MONITOR}.get(end, ESTOP))
    rig.to_power()
    at = rig.hold_at
    rig.run(2.5)
    assert rig.state is HOLD and np.abs(rig.hold_at - at).max() < 1e-9


def test_a_joint_that_was_commanded_without_power_stays_where_another_one_is_commanded_all_along(rig):
    rig.run(0.05)
    at = rig.driver.joints.q.copy()
    rig.single(0)
    other = JointCommand(np.array([np.nan, at[1] + 0.1]), NONE, NONE)
    for k in range(1500):
        rig.run(0.002)
        rig.sources.command(other, rig.clock.now, rig.clock.now)
        if k == 20:
            assert rig.driver.enable() == ""
    assert rig.state is RUN and rig.hold_at[1] == pytest.approx(at[1] + 0.1, abs=1e-3)
    assert rig.hold_at[0] == pytest.approx(at[0], abs=1e-6)


@pytest.mark.parametrize("state", STATES)
def test_a_trajectory_is_refused_with_the_state_of_the_robot(rig, state):
    state(rig)
    with pytest.raises(ConfigError, match=r"trajectory rejected: (state is|stop was requested)"):
        rig.sources.start(rig.names, [TrajectoryPoint(0.5, [1.0, 1.0])], 0.0, rig.clock.now)


def test_a_command_of_the_time_before_a_short_stop_is_forgotten(rig):
    rig.enabled()
    at = rig.hold_at
    for _ in range(20):
        rig.single(0)
        rig.run(0.004)
    rig.driver.stop()
    rig.to(HOLD)
    assert rig.driver.enable() == ""
    for _ in range(1000):
        rig.sources.command(JointCommand(np.array([np.nan, at[1]]), NONE, NONE), rig.clock.now, rig.clock.now)
        rig.run(0.002)
    assert rig.state is RUN and rig.hold_at[0] == pytest.approx(at[0], abs=1e-9)


def test_a_trajectory_begins_at_its_stamp_and_holds_its_joints_until_then(rig):
    rig.running()
    at = rig.hold_at
    assert rig.trajectory(age=-1.5)
    rig.run(1.45)
    assert rig.state is RUN and np.abs(rig.hold_at - at).max() < 1e-6
    assert rig.sources.running(rig.clock.now)
    rig.run(0.6)
    assert np.abs(rig.hold_at - at - FAR).max() < 0.02


@pytest.mark.parametrize(
    ("age", "says"), [(3600.0, "it ended 3599.50 s ago by its stamp"), (-3600.0, "3600.0 s ahead")]
)
def test_a_trajectory_out_of_date_is_refused_by_name(rig, age, says):
    rig.enabled()
    at = rig.hold_at
    with pytest.raises(ConfigError, match=says):
        rig.sources.start(rig.names, [TrajectoryPoint(0.5, [1.0, 1.0])], age, rig.clock.now)
    rig.run(1.0)
    assert np.abs(rig.hold_at - at).max() < 1e-9


def test_points_whose_time_has_passed_are_left_out():
    points = [TrajectoryPoint(t, [t]) for t in (0.5, 1.0, 2.0)]
    assert scheduled(points, 0.0) == (points, 0.0) and scheduled(points, LATE) == (points, 0.0)
    assert scheduled(points, 0.75) == ([TrajectoryPoint(0.25, [1.0]), TrajectoryPoint(1.25, [2.0])], 0.0)
    assert scheduled(points, 2.05) == ([TrajectoryPoint(0.0, [2.0])], 0.0)
    assert scheduled(points, -AHEAD) == (points, AHEAD)


def test_commands_take_over_from_a_trajectory_that_is_over(rig):
    rig.enabled()
    assert rig.trajectory(seconds=0.2)
    rig.to(RUN)
    rig.run(0.5)
    assert not rig.sources.running(rig.clock.now)
    rig.single(0, 1)
    assert rig.sources.player.spline is None
