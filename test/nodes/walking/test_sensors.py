"""Sensors of the walker: faulty messages change nothing, silence is counted, and every instant gets its tick."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import pinocchio as pin
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from sensor_msgs.msg import Imu, JointState

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.health import Health
from humanoid_control.nodes.base.messages import stamp_of
from humanoid_control.nodes.walking.requests import VelocityRequest, read_footsteps
from humanoid_control.nodes.walking.sensors import Sensors, TickClock
from humanoid_control.robots import load_robot
from humanoid_control.walking import StepTimes

DT = 0.004


def imu(robot, stamp, w=1.0, frame=None):
    m = Imu()
    m.header.stamp, m.header.frame_id = stamp_of(stamp), robot.root_link if frame is None else frame
    m.orientation.w, m.linear_acceleration.z = w, 9.81
    return m


def wrench(stamp, force=300.0):
    m = WrenchStamped()
    m.header.stamp, m.wrench.force.z = stamp_of(stamp), force
    return m


def joints(robot, stamp, value=0.1):
    m = JointState(name=list(reversed(robot.joint_names)), position=[value] * robot.n, velocity=[0.0] * robot.n)
    m.header.stamp = stamp_of(stamp)
    return m


@pytest.fixture
def sensed():
    robot, said = load_robot("hrp2", "floating"), []
    health = Health(lambda level, text: said.append(text))
    sensors = Sensors(robot, ("l_foot", "r_foot"), health)
    return robot, sensors, health


def test_a_measurement_is_complete_when_all_have_one_stamp(sensed):
    robot, s, _ = sensed
    assert s.on_joints(joints(robot, 10)) and s.instant is None and "imu" in s.missing
    assert s.on_imu(imu(robot, 10)) and s.on_wrench("l_foot", wrench(10)) and s.instant is None
    assert s.on_wrench("r_foot", wrench(10)) and s.instant == 10 and not s.missing
    m = s.measurement()
    assert (m.joints.q == 0.1).all() and m.foot_wrenches["r_foot"][2] == 300.0
    assert s.on_imu(imu(robot, 20)) and s.instant is None


def test_faulty_messages_are_named_and_change_nothing(sensed):
    robot, s, health = sensed
    for take in (lambda: s.on_joints(joints(robot, 1)), lambda: s.on_imu(imu(robot, 1))):
        assert take()
    bad = joints(robot, 2)
    bad.position[0] = float("nan")
    short = JointState(name=list(robot.joint_names), position=[0.0])
    spoilt = wrench(2, float("inf"))
    for take, words in (
        (lambda: s.on_joints(bad), f"{robot.joint_names[-1]} is non-numeric"),
        (lambda: s.on_joints(short), "without a position for each name"),
        (lambda: s.on_imu(imu(robot, 2, w=0.5)), "length 0.50"),
        (lambda: s.on_imu(imu(robot, 2, w=float("nan"))), "not a number"),
        (lambda: s.on_imu(imu(robot, 2, frame="camera")), "in frame 'camera'"),
        (lambda: s.on_wrench("l_foot", spoilt), "wrench/l_foot"),
    ):
        assert not take()
        assert any(words in text for _, text in health.open.values()), words
        assert s.silence["joint_states"] == 0.0 and s.joint_instant == 1
    assert (s._q == 0.1).all()


def test_silence_counts_while_the_node_listens_and_a_message_sent_again_is_no_news(sensed):
    robot, s, _ = sensed
    s.on_joints(joints(robot, 1))
    begin = time.monotonic()
    s.advance(begin, 0.0)  # from here on the time is the test's
    for k in range(1, 7):
        s.advance(begin + k * DT, 1.5 * DT)
        s.on_joints(joints(robot, 1))
    assert s.silence["joint_states"] == pytest.approx(6 * DT) and s.quiet(0.02)[0] == "joint_states"
    s.on_joints(joints(robot, 2))
    s.advance(begin + 1000.0, 1.5 * DT)  # the process did not run
    assert s.silence["joint_states"] == pytest.approx(1.5 * DT)


def moving(robot, t):
    """Smooth motion of a floating robot: q, v and a, by differences of a path."""
    rng = np.random.default_rng(3)
    rates, sizes = rng.uniform(2.0, 6.0, robot.nv), rng.uniform(0.02, 0.1, robot.nv)
    start = robot.q("neutral")

    def q_at(time):
        return pin.integrate(robot.model, start, sizes * np.sin(rates * time))

    h = 1e-4
    q = q_at(t)
    v = pin.difference(robot.model, q_at(t - h), q_at(t + h)) / (2 * h)
    v_before, v_after = (pin.difference(robot.model, q_at(x - h), q_at(x + h)) / (2 * h) for x in (t - h, t + h))
    return q, v, (v_after - v_before) / (2 * h)


def imu_of(robot, link, q, v, a, stamp):
    """What an ideal IMU in a link reads, by pinocchio."""
    data, k = robot.model.createData(), robot.model.getFrameId(link, pin.FrameType.BODY)
    pin.forwardKinematics(robot.model, data, q, v, a)
    X = pin.updateFramePlacement(robot.model, data, k)
    w = pin.getFrameVelocity(robot.model, data, k, pin.ReferenceFrame.LOCAL).angular
    f = pin.getFrameClassicalAcceleration(robot.model, data, k, pin.ReferenceFrame.LOCAL).linear
    f = f + X.rotation.T @ (0.0, 0.0, 9.81)
    m = imu(robot, stamp, frame=link)
    o = pin.Quaternion(X.rotation).coeffs()
    m.orientation.x, m.orientation.y, m.orientation.z, m.orientation.w = map(float, o)
    m.angular_velocity.x, m.angular_velocity.y, m.angular_velocity.z = map(float, w)
    m.linear_acceleration.x, m.linear_acceleration.y, m.linear_acceleration.z = map(float, f)
    return m


@pytest.mark.parametrize("link", ["chest", "l_foot"])
def test_an_imu_of_another_link_is_carried_to_the_root(sensed, link):
    """Beside an IMU in the root itself: orientation and angular velocity exactly, acceleration with a short delay."""
    robot, s, health = sensed
    assert not s.on_imu(imu(robot, 1, frame=link)) and "not measured yet" in str(health.open["imu"])
    errors = []
    for k in range(1, 200):
        q, v, a = moving(robot, k * DT)
        m = joints(robot, int(1e9 * k * DT))
        m.position, m.velocity = list(q[robot.iq :][::-1]), list(v[robot.iv :][::-1])
        assert s.on_joints(m), health.open
        assert s.on_imu(imu_of(robot, link, q, v, a, int(1e9 * k * DT))), health.open
        root = imu_of(robot, robot.root_link, q, v, a, 0)
        o, w, f = root.orientation, root.angular_velocity, root.linear_acceleration
        found = s._imu
        assert abs(abs(found.orientation @ [o.x, o.y, o.z, o.w]) - 1) < 1e-9
        assert found.angular_velocity == pytest.approx([w.x, w.y, w.z], abs=1e-6)
        errors.append(found.linear_acceleration - [f.x, f.y, f.z])
    plain = imu_of(robot, link, q, v, a, 0).linear_acceleration
    assert np.abs(errors[20:]).mean() < 0.25 * np.linalg.norm([plain.x - f.x, plain.y - f.y, plain.z - f.z])


def test_an_imu_in_g_or_without_gravity_is_refused_at_its_first_reading(sensed):
    robot, s, health = sensed
    for k, pull in enumerate((1.0, 0.0)):
        m = imu(robot, 1 + k)
        m.linear_acceleration.z = pull
        assert not s.on_imu(m) and "is it in g, or without gravity?" in str(health.open["imu"])
    assert s.on_imu(imu(robot, 9))
    m = imu(robot, 10)
    m.linear_acceleration.z = 1.0
    assert s.on_imu(m), "a robot may fall for a moment later"


@pytest.mark.parametrize("factor", [1.0, np.degrees(1.0)])
def test_an_angular_velocity_in_degrees_is_refused_once_the_robot_sways(sensed, factor):
    robot, s, health = sensed
    taken = []
    for k in range(250):
        t = k * DT
        angle, rate = 0.05 * np.sin(6 * t), 0.3 * np.cos(6 * t)
        noise = 0.02 * np.sin(700 * t)
        taken.append(s.on_imu(turned_imu(robot, int(1e9 * t) + 1, angle, factor * (rate + noise), 9.81)))
    assert all(taken) if factor == 1.0 else not taken[-1]
    assert factor == 1.0 or "is it in deg/s?" in str(health.open["imu"])


def test_encoders_that_begin_again_are_unwrapped_where_a_joint_has_no_ends_and_refused_elsewhere():
    robot, said = load_robot("hrp2", "floating"), []
    endless = robot.joint_names[0]
    robot.lower[0], robot.upper[0] = -np.inf, np.inf
    s = Sensors(robot, ("l_foot", "r_foot"), Health(lambda level, text: said.append(text)))
    wrapped = joints(robot, 2)
    assert s.on_joints(joints(robot, 1))
    for k in range(3):
        wrapped = joints(robot, 2 + k)
        wrapped.position[-1] = 0.1 - 2 * np.pi + 0.01 * k
        assert wrapped.name[-1] == endless and s.on_joints(wrapped) and not s.elsewhere
        assert s._q[0] == pytest.approx(0.1 + 0.01 * k)
    bad = joints(robot, 9)
    bad.position[0] = 0.1 - 2 * np.pi
    assert not s.on_joints(bad) and not s.elsewhere
    assert s._q[-1] == 0.1 and any("its encoder restarted" in text for text in said)
    assert s.on_joints(joints(robot, 10))


def run(clock, arrivals, stamps, until, every=0.001):
    """Times of the ticks that a clock makes, looked at every millisecond."""
    ticks, newest = [], None
    for k in range(int(until / every)):
        now = k * every
        while arrivals and arrivals[0] <= now + 1e-9:
            arrivals.pop(0)
            newest = stamps.pop(0)
        if clock.step(newest, now + 100.0):
            ticks.append(now)
    return ticks


def test_every_instant_gets_one_tick_and_a_lost_one_gets_it_a_little_later():
    n = 500
    stamps = [round(1e9 * DT) * (k + 1) for k in range(n)]
    arrivals = [DT * (k + 1) for k in range(n)]
    clock = TickClock(DT)
    assert len(run(clock, list(arrivals), list(stamps), DT * n + 0.002)) == n and clock.held == 0
    kept = np.random.default_rng(1).random(n) > 0.2
    kept[[0, -1]] = True
    clock = TickClock(DT)
    ticks = run(clock, [a for a, k in zip(arrivals, kept, strict=True) if k],
                [s for s, k in zip(stamps, kept, strict=True) if k], DT * n + 0.002)  # fmt: skip
    assert abs(len(ticks) - n) <= 8 and clock.held == pytest.approx((~kept).sum(), abs=8)
    assert np.mean(np.diff(ticks) > 2 * DT + 1e-9) < 0.02, "but where three were lost at once"


@pytest.mark.parametrize("factor", [0.3, 0.5, 1.0])
def test_where_time_passes_slowly_ticks_are_as_slow(factor):
    n = 500
    clock = TickClock(DT)
    arrivals = [DT / factor * (k + 1) for k in range(n)]
    ticks = run(clock, arrivals, [round(1e9 * DT) * (k + 1) for k in range(n)], DT / factor * n)
    assert len(ticks) == pytest.approx(n, abs=2), "as much time for the walk as for the robot"


def test_sensors_that_come_faster_are_passed_over_and_slower_ones_are_not_waited_for():
    clock = TickClock(DT)
    fast = run(clock, [0.5 * DT * k for k in range(1000)], [round(5e8 * DT) * (k + 1) for k in range(1000)], 500 * DT)
    assert len(fast) == pytest.approx(500, abs=2)
    clock, counts = TickClock(DT), 0
    for k in range(1000):  # joints at each tick, all sensors together at every fifth
        now, stamp = 100.0 + k * DT, round(1e9 * DT) * (k + 1)
        common = round(1e9 * DT) * (k // 5 * 5 + 1)
        counts += clock.step(clock.choose(common if k % 5 == 0 else None, stamp, now), now)
    assert counts > 900


def test_a_clock_that_jumps_is_noticed():
    clock = TickClock(DT)
    clock.step(10**9, 100.0)
    assert not clock.jumped(10**9 + 10**7, 0.5) and not clock.jumped(None, 0.5)
    assert clock.jumped(9 * 10**8, 0.5) and clock.jumped(2 * 10**9, 0.5)
    older = 10**9 - round(1e9 * DT)
    assert not clock.jumped(older, 0.5) and not clock.step(older, 100.001), "the others are a tick behind the joints"


def test_a_value_that_was_not_measured_or_has_other_axes_is_refused_by_name(sensed):
    robot, s, health = sensed
    good = [s.on_joints(joints(robot, 1)), s.on_imu(imu(robot, 1)), s.on_wrench("l_foot", wrench(1))]
    assert all(good)
    without = joints(robot, 2, value=0.2)
    without.velocity = []
    assert not s.on_joints(without) and "without velocities" in health.open["joint_states"][1]
    for field, words in (
        ("orientation_covariance", "orientation not measured"),
        ("angular_velocity_covariance", "angular velocity not measured"),
        ("linear_acceleration_covariance", "linear acceleration not measured"),
    ):
        for variance in (-1.0, -0.5, float("nan")):
            m = imu(robot, 2)
            getattr(m, field)[0] = variance
            assert not s.on_imu(m) and words in health.open["imu"][1]
    for row, taken in ((0, False), (4, False), (8, True)):  # a heading that is not known harms nobody
        m = imu(robot, 1)
        m.orientation_covariance[row] = 1e6
        assert s.on_imu(m) == taken
        assert taken or "variance of 1e+06 rad^2" in health.open["imu"][1]
    for frame, words in (
        ("odom", "not 'l_foot_sole' or a link of this robot"),
        ("l_ft_sensor_upside_down", "not 'l_foot_sole' or a link of this robot"),
        ("r_foot_sole", "that link does not belong to this foot"),
        (robot.feet[1].link, "that link does not belong to this foot"),
    ):
        turned = wrench(2, 100.0)
        turned.header.frame_id = frame
        assert not s.on_wrench("l_foot", turned)
        text = health.open["wrench/l_foot"][1]
        assert f"in frame '{frame}'" in text and words in text
    assert s.joint_instant == 1 and (s._q == 0.1).all() and s._wrenches["l_foot"][2] == 300.0
    right = wrench(2, 100.0)
    right.header.frame_id = "l_foot_sole"
    assert s.on_wrench("l_foot", right) and s.on_imu(imu(robot, 2)) and s.on_joints(joints(robot, 2))
    assert not {"joint_states", "imu", "wrench/l_foot"} & health.open.keys()


def test_a_velocity_of_another_frame_or_time_is_refused_by_name():
    health = Health(lambda level, text: None)
    asked = VelocityRequest(health, "pelvis", 0.5)

    def stamped(frame="", age=0.0):
        m = TwistStamped()
        m.header.frame_id, m.twist.linear.x = frame, 0.3
        m.header.stamp = stamp_of(int(1e9 * (1000.0 - age)))
        return m

    for frame, age, words in (("odom", 0.0, "in frame 'odom'"), ("", 0.6, "0.60 s old by its stamp")):
        asked.take(stamped(frame, age), 1000.0)
        assert any(words in text for _, text in health.open.values())
        assert not asked.now(time.monotonic(), 0.5).any()
    for frame in ("", "base_footprint", "pelvis"):
        asked.reset()
        asked.take(stamped(frame, 0.4), 1000.0)
        assert asked.now(time.monotonic(), 0.5)[0] == 0.3 and not health.open


def test_each_pose_of_a_path_may_have_a_frame_of_its_own():
    path = Path(poses=[PoseStamped(), PoseStamped()])
    path.header.frame_id = "odom"
    for k, p in enumerate(path.poses):
        p.pose.orientation.w, p.pose.position.y = 1.0, 0.1 * (-1) ** k
    path.poses[1].header.frame_id = "base_footprint"
    aside = pin.SE3(np.eye(3), np.array([5.0, 0.0, 0.0]))
    steps, _ = read_footsteps(path, StepTimes(), aside, "odom")
    assert steps[0].X.translation[0] == 0.0 and steps[1].X.translation[0] == 5.0
    path.poses[0].header.frame_id = "camera"
    with pytest.raises(ConfigError, match="footstep 0: frame 'camera'"):
        read_footsteps(path, StepTimes(), aside, "odom")


def test_a_joint_far_faster_than_its_limit_is_refused_by_name(sensed):
    robot, s, health = sensed
    assert s.on_joints(joints(robot, 1))
    m = joints(robot, 2)
    m.velocity[0] = 3.1 * robot.velocity[-1]
    assert not s.on_joints(m) and "more than 3 times its limit" in health.open["joint_states"][1]
    m.velocity[0] = 2.9 * robot.velocity[-1]
    assert s.on_joints(m)


def test_a_wrench_in_the_frame_of_a_link_of_the_leg_is_carried_to_the_sole(sensed):
    """The same force and moment about the same point of the world, whichever link's axes they were measured in."""
    robot, s, health = sensed
    rng, foot = np.random.default_rng(3), robot.feet[0]
    q = robot.postures["neutral"] + rng.uniform(0.0, 0.1, robot.n)
    m = JointState(name=list(robot.joint_names), position=q.tolist(), velocity=[0.0] * robot.n)
    sole = robot.link_poses(robot.q(q))[foot.link].copy() * pin.SE3(np.eye(3), foot.corners().mean(axis=0))
    leg = robot.model.supports[robot.model.frames[robot.model.getFrameId(foot.link)].parentJoint]
    links = [f.name for f in robot.model.frames if f.type == pin.FrameType.BODY and f.parentJoint in leg]
    assert len(links) > 5 and foot.link in links and robot.root_link in links
    away, far = wrench(1), links[0] if links[0] != foot.link else links[1]
    away.header.frame_id = far
    assert not s.on_wrench("l_foot", away) and "joints in between are not measured" in health.open["wrench/l_foot"][1]
    assert s.on_joints(m)
    for k, link in enumerate(links):
        X, f, t = robot.link_poses(robot.q(q))[link].copy(), *rng.normal(size=(2, 3))
        sent = WrenchStamped()
        sent.header.stamp, sent.header.frame_id = stamp_of(k + 1), link
        sent.wrench.force.x, sent.wrench.force.y, sent.wrench.force.z = f
        sent.wrench.torque.x, sent.wrench.torque.y, sent.wrench.torque.z = t
        assert s.on_wrench("l_foot", sent)
        force, torque = np.split(s._wrenches["l_foot"], 2)
        np.testing.assert_allclose(sole.rotation @ force, X.rotation @ f, atol=1e-12)
        moment = X.rotation @ t + np.cross(X.translation - sole.translation, X.rotation @ f)
        np.testing.assert_allclose(sole.rotation @ torque, moment, atol=1e-12)


def turned_imu(robot, stamp, angle=0.0, rate=0.0, force=9.81):
    m = imu(robot, stamp, w=float(np.cos(angle / 2)))
    m.orientation.z, m.angular_velocity.z, m.linear_acceleration.z = float(np.sin(angle / 2)), rate, force
    return m


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"angle": 1.5}, "orientation jumped by 86 deg"),
        ({"rate": 20.0}, "jumped by 20 rad/s"),
        ({"rate": 36.0}, "implausible"),
        ({"force": 250.0}, "implausible"),
    ],
)
def test_an_odd_reading_of_the_imu_is_passed_over_by_name(sensed, odd, words):
    robot, s, health = sensed
    assert s.on_imu(turned_imu(robot, 4_000_000))
    assert not s.on_imu(turned_imu(robot, 8_000_000, **odd)) and words in health.open["imu"][1]
    assert s._stamps["imu"] == 4_000_000 and not s._imu.angular_velocity.any() and s._imu.orientation[3] == 1.0
    assert s.on_imu(turned_imu(robot, 12_000_000)) and "imu" not in health.open and not s.elsewhere
    for k in range(4):  # never two odd ones in a row: none is believed
        assert not s.on_imu(turned_imu(robot, (16 + 8 * k) * 10**6, **odd))
        assert s.on_imu(turned_imu(robot, (20 + 8 * k) * 10**6))


def test_an_imu_that_really_was_put_elsewhere_is_believed_after_three_readings(sensed):
    robot, s, _ = sensed
    assert s.on_imu(turned_imu(robot, 4_000_000))
    good = [s.on_imu(turned_imu(robot, (8 + 4 * k) * 10**6, angle=1.5)) for k in range(5)]
    assert good == [False, False, True, True, True] and "orientation jumped by 86 deg" in s.elsewhere


def test_a_robot_that_falls_is_not_doubted(sensed):
    """Tumbling at 8 rad/s, and an impact of 15 g that takes 4 rad/s in one period."""
    robot, s, _ = sensed
    for k in range(100):
        assert s.on_imu(turned_imu(robot, 4_000_000 * (k + 1), 8.0 * 0.004 * k, 8.0, 2.0))
    assert s.on_imu(turned_imu(robot, 4_000_000 * 101, 8.0 * 0.004 * 100, 4.0, 147.0)) and not s.elsewhere
