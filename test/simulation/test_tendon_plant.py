"""Tendons of a simulated robot: they give the drives' torques, stretch, and fail as real ones do (TE-18, TE-19)."""

import copy
import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import lsq_linear

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import make_engine
from humanoid_control.simulation.drives import tendon_plant
from humanoid_control.simulation.drives.tendon_plant import TendonPlant, TendonStates
from humanoid_control.simulation.sensors.sensor_model import Imperfection
from humanoid_control.simulation.sensors.tendon_sensor import LOOSE, REELED, TendonSensor, parse_faults
from humanoid_control.tendons.tendon import TendonSet

PERFECT = Imperfection.from_texts()


@pytest.fixture(scope="module")
def robot():
    return load_robot("kengoro_upper", "fixed")


@pytest.fixture(scope="module")
def plant(robot):
    return TendonPlant(robot)


def postures(plant, count, share=0.6, seed=2):
    low, high = plant.robot.lower, plant.robot.upper
    at = np.random.default_rng(seed).uniform(-share, share, (count, len(low)))
    return (low + high) / 2 + at * (high - low) / 2


def arms_by_differences(plant, joints, h=1e-6):
    """(M, n) moment arms from lengths alone."""
    torque = np.zeros_like(joints)
    columns = []
    for k in range(len(joints)):
        step = np.eye(len(joints))[k] * h
        columns.append(plant.states(joints + step, torque).lengths - plant.states(joints - step, torque).lengths)
    return np.array(columns).T / (2 * h)


def test_tensions_do_the_work_of_the_drives(plant):
    """Virtual work: a small motion changes the lengths so that the tensions give -t . dl = tau . dq."""
    rng = np.random.default_rng(0)
    for joints in postures(plant, 4):
        G = arms_by_differences(plant, joints)
        torque = -G.T @ (plant.least + rng.uniform(0, 60, len(plant.least)))  # so that some tensions can give it
        states = plant.states(joints, torque)
        assert -G.T @ states.tensions == pytest.approx(torque, abs=1e-3 * np.abs(torque).max())
        assert (states.tensions >= plant.least).all() and (states.tensions <= plant.most).all()


def test_where_no_tensions_do_they_come_as_near_as_any(plant):
    """Least squares in a box, against scipy's; torques that far too strong muscles would need."""
    rng = np.random.default_rng(1)
    for joints in postures(plant, 4):
        G = arms_by_differences(plant, joints)
        torque = rng.normal(0, 40, plant.robot.n)
        tensions = plant.states(joints, torque).tensions
        best = lsq_linear(-G.T, torque, (plant.least, plant.most))
        ours, theirs = (float(np.sum((G.T @ t + torque) ** 2)) for t in (tensions, best.x))
        assert ours <= theirs * (1 + 1e-4) + 1e-6
        assert theirs > 1.0, "these torques are out of reach, else this says nothing"


def test_tensions_without_a_solution_stay_as_they_were(robot):
    plant = TendonPlant(robot)
    joints, torque = robot.postures["neutral"], np.full(robot.n, 2.0)
    bad = np.full(robot.n, np.nan)
    assert np.array_equal(plant.states(joints, bad).tensions, plant.least) and plant.unsolved == 1
    held = plant.states(joints, torque).tensions
    assert (held > plant.least + 1.0).any() and plant.unsolved == 1
    assert np.array_equal(plant.states(joints, bad).tensions, held) and plant.unsolved == 2
    assert plant.states(joints, 0.5 * torque).tensions.max() < held.max()


def test_tendons_keep_the_least_tension_of_their_file_or_else_one_that_they_can_bear(robot, monkeypatch):
    geometry = copy.copy(tendon_plant.tendon_geometry(robot))
    limits = {0: (0.0, 500.0), 1: (0.0, 4.0), 2: (3.0, 500.0), 3: (30.0, 400.0)}  # [N]
    changed = {k: {"min_tension": least, "max_tension": most} for k, (least, most) in limits.items()}
    tendons = [dataclasses.replace(t, **changed.get(k, {})) for k, t in enumerate(geometry.tendons)]
    geometry.tendons = TendonSet(tuple(tendons))
    monkeypatch.setattr(tendon_plant, "tendon_geometry", lambda robot: geometry)
    plant = TendonPlant(robot)
    assert plant.least[:4].tolist() == [tendon_plant.PRETENSION, 4.0, 3.0, 30.0]
    assert plant.most[:4].tolist() == [500.0, 4.0, 500.0, 400.0] and (plant.least <= plant.most).all()


def test_at_rest_the_tendons_carry_the_weight(robot):
    engine = make_engine(robot)
    engine.step(800)
    states, G = engine.tendon_states(), arms_by_differences(TendonPlant(robot), engine.joints)
    weight = pin.computeGeneralizedGravity(engine.model, engine.data, engine.q)
    assert np.abs(weight).max() > 1.0
    assert -G.T @ states.tensions == pytest.approx(weight, abs=0.02 * np.abs(weight).max())
    assert states.tensions.min() >= 10.0 - 1e-9 and states.lengths.min() > 0.02
    assert make_engine(load_robot("recommended", "fixed")).tendon_states() is None


def states_of(plant, tension=50.0):
    m = len(plant.names)
    return TendonStates(plant.names, np.linspace(0.1, 0.4, m), np.full(m, tension))


def test_a_pulled_wire_is_shorter_than_its_way(plant):
    true = states_of(plant)
    read = TendonSensor(plant.names, PERFECT, stiffness=1e5).read(0.0, true)
    assert read.lengths == pytest.approx(true.lengths - 50.0 / 1e5, abs=1e-15)
    assert np.array_equal(TendonSensor(plant.names, PERFECT).read(0.0, true).lengths, true.lengths)


def test_tendons_fail_as_they_are_told(plant):
    sensor = TendonSensor(plant.names, Imperfection.from_texts(noise="length=0.0001"), 3)
    a, b, c, d = plant.names[3:7]
    sensor.faults = parse_faults(f"{a}=slack, {b}=broken,{c}=stuck,{d}=missing", plant.names)
    first = states_of(plant)
    later = TendonStates(plant.names, first.lengths + 0.02, first.tensions)
    before, now = sensor.read(0.0, first), sensor.read(0.004, later)
    assert d not in now.names and len(now.names) == len(plant.names) - 1
    at = {name: k for k, name in enumerate(now.names)}
    error = dict(zip(now.names, now.lengths - later.lengths[[plant.names.index(n) for n in now.names]], strict=True))
    assert error.pop(a) == pytest.approx(LOOSE, abs=1e-3) and now.tensions[at[a]] == 0
    assert error.pop(b) == pytest.approx(-REELED, abs=1e-3) and now.tensions[at[b]] == 0
    assert now.lengths[at[c]] == before.lengths[at[c]] and error.pop(c) == pytest.approx(-0.02, abs=1e-3)
    assert max(map(abs, error.values())) < 6e-4, "the others have their noise alone"
    sensor.faults = {}
    for k in range(2, 30):
        healed = sensor.read(0.004 * k, later).lengths
    assert healed == pytest.approx(later.lengths, abs=6e-4)


def test_no_encoder_jumps_where_a_tendon_fails_while_it_is_read(plant):
    """A motor winds at 0.5 m/s: 2 mm in a sample of 4 ms; a fault that is there from the start is complete."""
    true = states_of(plant)
    a, b = plant.names[3:5]
    faults = parse_faults(f"{a}=slack,{b}=broken", plant.names)
    sensor = TendonSensor(plant.names, PERFECT)
    read = [sensor.read(0.0, true).lengths]
    for k in range(1, 60):
        sensor.faults = faults if k < 30 else {}
        read.append(sensor.read(0.004 * k, true).lengths)
    assert np.abs(np.diff(read, axis=0)).max() == pytest.approx(0.002)
    assert (read[29] - read[0])[[3, 4]] == pytest.approx([LOOSE, -REELED]) and np.array_equal(read[-1], read[0])


def test_drift_grows_with_the_root_of_time_and_the_seed_repeats_it():
    names = tuple(f"t{k}" for k in range(400))
    true = TendonStates(names, np.full(400, 0.3), np.full(400, 20.0))
    sensor = TendonSensor(names, PERFECT, 5, drift=1e-3, period=0.01)
    rows = [sensor.read(0.01 * k, true).lengths for k in range(400)]
    assert np.std(rows[99]) == pytest.approx(1e-3, rel=0.15) and np.std(rows[399]) == pytest.approx(2e-3, rel=0.15)
    sensor.reset()
    assert all(np.array_equal(sensor.read(0.01 * k, true).lengths, rows[k]) for k in range(20))


def test_faults_are_checked(plant):
    with pytest.raises(UnknownNameError, match="l_biceps"):
        parse_faults("l_bicep=slack", plant.names)
    with pytest.raises(UnknownNameError, match="slack"):
        parse_faults("l_biceps=slak", plant.names)
    with pytest.raises(ConfigError, match="tendon=fault"):
        parse_faults("l_biceps", plant.names)
    with pytest.raises(ConfigError, match="stiffness"):
        TendonSensor(plant.names, PERFECT, stiffness=-1.0)
