"""Imperfect sensors: statistics of what they add, and the same bytes from the same seed."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import make_engine
from humanoid_control.simulation.sensors.sensor_model import Imperfection, Sensor

N = 20000


def imu_values(rng):
    q = pin.Quaternion(*rng.normal(size=4)).normalized()
    return q.coeffs(), rng.normal(size=3), rng.normal(size=3)


def test_a_perfect_sensor_reads_the_truth():
    values = imu_values(np.random.default_rng(0))
    read = Sensor("imu", (4, 3, 3), Imperfection.from_texts(), 1).read(0.0, *values)
    assert all(np.array_equal(a, b) for a, b in zip(read, values, strict=True))


def test_noise_and_bias_have_the_spread_asked_for():
    model = Imperfection.from_texts(noise="position=0.02,velocity=0.5", bias="effort=2")
    sensor, zero = Sensor("joint_states", (400, 400, 400), model, 7), np.zeros(400)
    rows = [sensor.read(0.001 * k, zero, zero, zero) for k in range(100)]
    position, velocity, effort = (np.array(x) for x in zip(*rows, strict=True))
    assert position.std() == pytest.approx(0.02, rel=0.02) and abs(position.mean()) < 4 * 0.02 / 200
    assert velocity.std() == pytest.approx(0.5, rel=0.02)
    assert (effort == effort[0]).all() and effort[0].std() == pytest.approx(2.0, rel=0.15), "a bias does not change"
    assert abs(np.corrcoef(position[:-1].ravel(), position[1:].ravel())[0, 1]) < 0.02, "white"


def test_noise_of_an_orientation_is_a_small_turn():
    model = Imperfection.from_texts(noise="orientation=0.05")
    sensor, (q, w, a) = Sensor("imu", (4, 3, 3), model, 3), imu_values(np.random.default_rng(1))
    turns = []
    for k in range(3000):
        read = sensor.read(k, q, w, a)[0]
        assert np.linalg.norm(read) == pytest.approx(1.0)
        R = pin.Quaternion(q).toRotationMatrix().T @ pin.Quaternion(read).toRotationMatrix()
        turns.append(pin.log3(R))
    assert np.std(turns, axis=0) == pytest.approx([0.05] * 3, rel=0.06)


def test_readings_are_steps_of_the_resolution():
    model = Imperfection.from_texts(resolution="position=0.01")
    values = np.random.default_rng(2).normal(size=N)
    read = Sensor("joint_states", (N, 1, 1), model, 0).read(0.0, values, np.zeros(1), np.zeros(1))[0]
    assert np.abs(read / 0.01 - np.round(read / 0.01)).max() < 1e-9
    assert (read - values).std() == pytest.approx(0.01 / np.sqrt(12), rel=0.03), "error of rounding"


@pytest.mark.parametrize(("delay", "old"), [(0.005, 5), (0.0047, 5), (0.0053, 6), (0.0, 0)])
def test_a_delayed_reading_is_the_newest_that_is_old_enough(delay, old):
    sensor = Sensor("wrench", (3, 3), Imperfection.from_texts(delay=str(delay)), 0)
    for k in range(40):
        read = sensor.read(0.001 * k, np.full(3, float(k)), np.zeros(3))
        assert read is None if k < old else read[0][0] == k - old


def test_a_sample_between_two_readings_is_what_a_late_one_gives():
    """Only readings draw errors: a sample more changes what is read, not how wrong it is."""
    model = Imperfection.from_texts(delay="0.002", noise="force=1")
    often, seldom = Sensor("wrench", (3, 3), model, 0), Sensor("wrench", (3, 3), model, 0)
    for k in range(100):
        t, value = 0.004 * k, np.full(3, 10.0 * k)
        if k:
            often.sample(t - 0.002, value - 5.0, value)
        a, b = often.read(t, value, value), seldom.read(t, value, value)
        if k:
            np.testing.assert_allclose(a[0] - (value - 5.0), b[0] - (value - 10.0), atol=1e-9)


def test_so_many_samples_are_lost():
    sensor = Sensor("wrench", (3, 3), Imperfection.from_texts(dropout="wrench=0.3"), 0)
    lost = sum(sensor.read(k, np.zeros(3), np.zeros(3)) is None for k in range(N))
    assert lost / N == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / N))


def test_the_same_seed_and_commands_give_the_same_bytes():
    """A whole robot, pushed and commanded, read through bad sensors: twice, and with another seed."""
    robot = load_robot("suralp", "floating")
    model = Imperfection.from_texts("position=0.001,gyro=0.01,orientation=0.01", "accel=0.1", "", "0.004", "0.2")

    def run(seed):
        world, out = make_engine(robot), b""
        joints = Sensor("joint_states", (robot.n,) * 3, model, seed)
        imu = Sensor("imu", (4, 3, 3), model, seed)
        left, right = (Sensor("wrench", (3, 3), model, seed, label) for label in ("l_foot", "r_foot"))
        for k in range(50):
            world.command(robot.postures["neutral"] + 0.02 * np.sin(k + np.arange(robot.n)))
            world.step(2)
            truth = world.imu()
            feet = world.foot_wrenches()
            for sensor, values in (
                (joints, (world.joints, world.joint_velocity, world.torque)),
                (imu, (truth.orientation, truth.angular_velocity, truth.linear_acceleration)),
                (left, np.split(feet["l_foot"], 2)),
                (right, np.split(feet["r_foot"], 2)),
            ):
                read = sensor.read(world.time, *values)
                out += b"-" if read is None else b"".join(x.tobytes() for x in read)
        return out

    first = run(5)
    assert first == run(5) and first != run(6)


def test_two_sensors_of_a_kind_differ_and_reset_repeats():
    model = Imperfection.from_texts(noise="force=1")
    left, right = (Sensor("wrench", (3, 3), model, 5, label) for label in "lr")
    a, b = (s.read(0.0, np.zeros(3), np.zeros(3))[0] for s in (left, right))
    assert not np.array_equal(a, b)
    left.reset()
    assert np.array_equal(left.read(0.0, np.zeros(3), np.zeros(3))[0], a)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"noise": "postion=0.1"}, "did you mean position"),
        ({"delay": "imus=0.1"}, "did you mean imu"),
        ({"noise": "0.1"}, "name=number"),
        ({"bias": "gyro=some"}, "must be a number, got 'some'"),
        ({"noise": "gyro=-1"}, "0 or more"),
        ({"resolution": "gyro=nan"}, "0 or more"),
        ({"resolution": "orientation=0.01"}, "unknown name in resolution"),
        ({"dropout": "1.5"}, "at most 1"),
    ],
    ids=str,
)
def test_a_mistake_is_said(texts, words):
    with pytest.raises((ConfigError, UnknownNameError), match=words):
        Imperfection.from_texts(**texts)
