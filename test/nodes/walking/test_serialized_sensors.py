"""Sensors that take waiting messages in one pass end as sensors that take each as it arrives."""

import copy

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState

from humanoid_control.nodes.base.health import Health
from humanoid_control.nodes.base.messages import stamp_of
from humanoid_control.nodes.walking.sensors import IMU, JOINTS, Sensors
from humanoid_control.nodes.walking.serialized_sensors import SerializedSensors
from humanoid_control.robots import load_robot

STEP = 4_000_000  # [ns]


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


def both(robot):
    return Sensors(robot, (), Health(lambda *_: None)), SerializedSensors(robot, Health(lambda *_: None))


def joints(robot, stamp, q):
    m = JointState(name=list(robot.joint_names), position=q.tolist(), velocity=[0.3] * robot.n)
    m.header.stamp, m.header.frame_id = stamp_of(stamp), "base"
    return m


def imu(robot, stamp, tilt):
    m = Imu()
    m.header.stamp, m.header.frame_id = stamp_of(stamp), robot.root_link
    m.orientation.w, m.orientation.x = float(np.cos(tilt)), float(np.sin(tilt))
    m.angular_velocity.x, m.linear_acceleration.z = 0.2, 9.81
    return m


def renamed(m, rng):
    order = rng.permutation(len(m.name))[: len(m.name) // 2 + 3]
    m.name = [m.name[k] for k in order]
    m.position, m.velocity = np.array(m.position)[order].tolist(), np.array(m.velocity)[order].tolist()


def put(field, value):
    def change(m, rng):
        getattr(m, field)[int(rng.integers(len(m.name)))] = value

    return change


def moved(by):
    def change(m, rng):
        m.position[int(rng.integers(len(m.name)))] += by

    return change


def assigned(path, value):
    def change(m, _):
        *owners, last = path.split(".")
        for name in owners:
            m = getattr(m, name)
        setattr(m, last, value)

    return change


def covariance(field, place, value):
    return lambda m, _: getattr(m, f"{field}_covariance").__setitem__(place, value)


def turned(m, _):
    m.orientation.x, m.orientation.w = 0.8, 0.6


FAULTS = {
    JOINTS: {
        "position NaN": put("position", float("nan")),
        "velocity NaN": put("velocity", float("nan")),
        "velocity infinite": put("velocity", float("inf")),
        "position large": put("position", 2e6),
        "too fast": put("velocity", 200.0),
        "moved": moved(0.45),
        "whole turn": moved(2 * np.pi),
        "half turn": moved(3.3),
        "no velocities": lambda m, _: setattr(m, "velocity", []),
        "few positions": lambda m, _: m.position.pop(),
        "named twice": lambda m, _: m.name.__setitem__(0, m.name[1]),
        "other names": renamed,
        "strangers": lambda m, _: setattr(m, "name", [f"x{name}" for name in m.name]),
        "old": lambda m, _: setattr(m.header, "stamp", stamp_of(5 * STEP)),
        "other frame": lambda m, _: setattr(m.header, "frame_id", "elsewhere"),
    },
    IMU: {
        "orientation NaN": assigned("orientation.y", float("nan")),
        "rate NaN": assigned("angular_velocity.z", float("nan")),
        "force infinite": assigned("linear_acceleration.x", float("inf")),
        "not a unit": assigned("orientation.w", 1.2),
        "fast": assigned("angular_velocity.x", 36.0),
        "hard": assigned("linear_acceleration.z", 201.0),
        "turned": turned,
        "rate jumps": assigned("angular_velocity.x", 12.0),
        "no orientation": covariance("orientation", 0, -1.0),
        "no rate": covariance("angular_velocity", 0, -1.0),
        "no force": covariance("linear_acceleration", 0, -1.0),
        "vague x": covariance("orientation", 0, 3.0),
        "vague y": covariance("orientation", 4, 3.0),
        "unnamed frame": assigned("header.frame_id", ""),
        "no such frame": assigned("header.frame_id", "camera"),
        "old": lambda m, _: setattr(m.header, "stamp", stamp_of(5 * STEP)),
    },
}


def compare(one, queued):
    assert np.array_equal(one._q, queued._q, equal_nan=True) and np.array_equal(one._v, queued._v)
    assert one.instant == queued.instant and one.joint_instant == queued.joint_instant
    assert one.silence == queued.silence and one.missing == queued.missing and one.elsewhere == queued.elsewhere
    assert one._health.open == queued._health.open and one._health.seen == queued._health.seen
    assert (one._imu is None) == (queued._imu is None) and (one._odd is None) == (queued._odd is None)
    for a, b in zip(one._imu or (), queued._imu or (), strict=True):
        assert np.array_equal(a, b)


def play(robot, messages, batch):
    """Give messages to both kinds of sensors, which are compared after each batch; return one-by-one readings."""
    one, queued = both(robot)
    alone = {JOINTS: 0, IMU: 0}
    for key, take in ((JOINTS, "on_joints"), (IMU, "on_imu")):
        original = getattr(queued, take)

        def counted(m, key=key, original=original):
            alone[key] += 1
            return original(m)

        setattr(queued, take, counted)
    for k in range(0, len(messages), batch):
        for sensors in (one, queued):
            sensors.silence = {key: s + 0.02 for key, s in sensors.silence.items()}
        for key, m in messages[k : k + batch]:
            (one.on_joints if key == JOINTS else one.on_imu)(copy.deepcopy(m))
            queued.add(key, serialize_message(m))
        queued.take()
        compare(one, queued)
    return alone


def standing(robot, pairs):
    q = robot.postures["neutral"]
    out = []
    for k in range(pairs):
        stamp = (k + 1) * STEP
        out += [(JOINTS, joints(robot, stamp, q + 0.01 * np.sin(0.1 * k))), (IMU, imu(robot, stamp, 0.0005 * k))]
    return out


@pytest.mark.parametrize("batch", [1, 2, 5, 10, 37])
def test_faultless_messages_are_taken_in_one_pass(robot, batch):
    alone = play(robot, standing(robot, 60), batch)
    first = -(-batch // 2)  # the first batch has nothing to be compared with
    assert alone[JOINTS] <= max(first, 2) and alone[IMU] <= max(first, 2), alone


@pytest.mark.parametrize("batch", [1, 10])
@pytest.mark.parametrize(("key", "fault"), [(key, fault) for key, faults in FAULTS.items() for fault in faults])
def test_a_fault_has_the_same_outcome_as_with_messages_taken_one_by_one(robot, key, fault, batch):
    """One such message, then five in a row, then valid ones."""
    messages, rng = standing(robot, 60), np.random.default_rng(len(fault))
    for k in (15, *range(30, 35)):
        at = next(i for i in range(2 * k, 2 * k + 2) if messages[i][0] == key)
        FAULTS[key][fault](messages[at][1], rng)
    play(robot, messages, batch)


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_faults_losses_and_repetitions_has_the_same_outcome(robot, seed):
    rng, messages = np.random.default_rng(seed), []
    for key, m in standing(robot, 300):
        kinds = list(FAULTS[key].values())
        if rng.random() < 0.1:
            kinds[int(rng.integers(len(kinds)))](m, rng)
        messages += [(key, m)] * int(rng.choice([0, 1, 1, 1, 1, 2]))
    play(robot, messages, int(rng.integers(2, 12)))


def test_the_instant_of_waiting_messages_is_known_before_they_are_taken(robot):
    _, s = both(robot)
    (_, first), (_, second) = standing(robot, 1)
    s.add(JOINTS, serialize_message(first))
    assert s.waiting_instant is None
    s.add(IMU, serialize_message(second))
    assert s.waiting_instant == STEP and s.instant is None
    s.take()
    assert s.instant == STEP
    s.reset()
    assert s.waiting_instant is None and s.instant is None
