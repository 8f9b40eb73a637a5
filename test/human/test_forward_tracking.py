"""Forward tracking: how errors decay and drift, constants that are found again, and OpenSim's residual reduction."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.human import (
    AnalysisSettings,
    FitSettings,
    acceleration_variance,
    analyse,
    fit,
    inverse_dynamics,
    read_ik_setup,
    read_osim,
)
from humanoid_control.human.derivatives import differentiate, low_pass
from humanoid_control.human.dynamics import noise_gain
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.forward_tracking import (
    ConstantSettings,
    TrackingSettings,
    find_constants,
    track,
    track_recording,
    trunk_of,
)
from humanoid_control.mocap import load_clip
from test.human.test_dynamics import FEET
from test.stick_person import stick_person, swaying

GAIT, WALK = "gait2354_walk", "rajagopal_walk"
PLAIN = TrackingSettings(find_start=False, plate_variance=1e12)


@pytest.fixture(scope="module")
def dancer():
    """Somebody who sways, with one load on a foot that explains all of it: q, q', q'' and loads of 150 frames."""
    person, t = stick_person(), np.arange(150) / 100
    motion = differentiate(t, swaying(person, 4 + t), None)
    parts = motion.values, motion.velocity, motion.acceleration
    free = inverse_dynamics(person, *parts).residual
    # The root's axes turn but little here: a wrench about the world's origin that leaves nothing, by least squares.
    columns = []
    for k in range(6):
        unit = np.zeros((150, 6))
        unit[:, k] = 1.0
        columns.append(free - inverse_dynamics(person, *parts, {"calcn_r": unit}).residual)
    wrench = np.linalg.solve(np.stack(columns, axis=2), free[..., None])[..., 0]
    assert np.abs(inverse_dynamics(person, *parts, {"calcn_r": wrench}).residual).max() < 1e-6
    return person, t, parts, {"calcn_r": wrench}


def variance_of(person, T):
    return np.ones((T, person.n)), np.tile(np.eye(6), (T, 1, 1))


def test_a_difference_decays_as_a_critically_damped_one(dancer):
    """x(t) = x0 (1 + c t) exp(-c t), with the signs that are not as printed."""
    person, c = dancer[0], 10.0
    t = np.concatenate([[0.0], 1e-6 + np.arange(60) / 100])
    q = np.tile(person.rest, (len(t), 1))
    k = person.index("humerus_r_1")
    q[0, k] += 0.1
    zero = np.zeros_like(q)
    found = track(person, t, (q, zero, zero), {}, variance_of(person, len(t)), replace(PLAIN, rate=c))
    known = 0.1 * (1 + c * t) * np.exp(-c * t)
    np.testing.assert_allclose(found.error[2:, k], known[2:], atol=2e-4)
    others = np.delete(np.arange(person.n), k)
    assert np.abs(found.error[:, others]).max() < 1e-6


def test_forces_that_explain_a_motion_leave_it_as_it_is(dancer):
    person, t, motion, loads = dancer
    for w in (1e-3, 1.0, 1e6):
        found = track(person, t, motion, loads, variance_of(person, len(t)), TrackingSettings(plate_variance=w))
        assert np.abs(found.error).max() < 2e-3 and np.abs(found.residual).max() < 1.5, w
    np.testing.assert_allclose(found.tau, inverse_dynamics(person, *motion, loads).tau, atol=1.5)


def test_trust_in_the_plates_trades_the_residual_for_a_drift(dancer):
    person, t, motion, loads = dancer
    t, motion, loads = t[:60], tuple(m[:60] for m in motion), {b: w[:60] for b, w in loads.items()}
    biased = {"calcn_r": loads["calcn_r"] + [8.0, 10.0, -4.0, 2.0, 0.0, 3.0]}
    found = [
        track(person, t, motion, biased, variance_of(person, len(t)), replace(PLAIN, plate_variance=w))
        for w in (1e10, 1e5, 1e3, 1.0)
    ]
    residual = [np.sqrt((f.residual**2).mean()) for f in found]
    drift = [np.sqrt((f.error**2).mean()) for f in found]
    assert (np.diff(residual) < 0).all() and (np.diff(drift) > 0).all()
    assert residual[-1] < 0.1 * residual[0] and drift[0] < 1e-4
    started = track(
        person, t, motion, biased, variance_of(person, len(t)), replace(PLAIN, plate_variance=1.0, find_start=True)
    )
    place = [k for k in range(6) if not person.rotational[k]]
    assert np.sqrt((started.error[:, place] ** 2).mean()) < 0.6 * np.sqrt((found[-1].error[:, place] ** 2).mean())


def test_constants_that_were_wrong_are_found(dancer):
    """Another mass, another centre of mass of the trunk, a plate that is not zeroed: one at a time."""
    person, _, motion, loads = dancer
    assert trunk_of(person) == "torso"
    sure = ConstantSettings(residual=0.1, independent=1.0)
    heavier = person.with_mass(1.02 * person.mass)
    found = find_constants(heavier, motion, loads, replace(sure, force=1e-6, moment=1e-6, com=1e-6))
    assert found.mass == pytest.approx(1 / 1.02, abs=1e-4) and found.person.mass == pytest.approx(person.mass, rel=1e-4)
    moved = [replace(b, com=b.com + [0.02, 0, -0.01]) if b.name == "torso" else b for b in person.bodies]
    found = find_constants(
        replace(person, bodies=tuple(moved)), motion, loads, replace(sure, mass=1e-6, force=1e-6, moment=1e-6)
    )
    np.testing.assert_allclose(found.moved[[0, 2]], [-0.02, 0.01], atol=1e-3)
    assert (found.after < 0.1 * found.before + 0.1).all()
    zero = np.array([3.0, -2.0, 1.0, 0.0, 0.0, 0.0])
    shifted = {"calcn_r": loads["calcn_r"] + zero}
    found = find_constants(person, motion, shifted, replace(sure, mass=1e-6, com=1e-6))
    np.testing.assert_allclose(found.zeros["calcn_r"][:3], zero[:3], atol=0.2)
    nothing = find_constants(person, motion, loads)
    assert nothing.mass == pytest.approx(1, abs=1e-3) and np.abs(nothing.moved).max() < 1e-3


def test_residuals_and_errors_are_below_those_of_opensims_residual_reduction(human_motion, tables):
    """Gait2354, 0.75 to 1.25 s: the published residual actuators and tracking errors of RRA, each of its numbers."""
    person = read_osim(human_motion(f"{GAIT}/reference/subject01_simbody.osim"))
    motion = tables.read(human_motion(f"{GAIT}/reference/subject01_walk1_ik.mot"))
    times = np.linspace(motion["time"][0], motion["time"][-1], len(motion["time"]))
    smooth = differentiate(times, tables.q(person, motion), 6.0)
    raw = tables.read(human_motion(f"{GAIT}/subject01_walk1_grf.mot"))
    loads = {}
    for body, names in FEET.items():
        F, p, M = (np.stack([raw[f"{n}{k}"] for k in "xyz"], axis=1) for n in names)
        wrench = low_pass(raw["time"], np.hstack([F, M + np.cross(p, F)]), 6.0)
        loads[body] = np.stack([np.interp(times, raw["time"], column) for column in wrench.T], axis=1)
    clip = load_clip(human_motion(f"{GAIT}/subject01_walk1.trc"))
    tasks = read_ik_setup(human_motion(f"{GAIT}/subject01_Setup_IK.xml"), person)
    found = fit(person, clip.positions, clip.labels, tasks, FitSettings(root=True))
    rows = [int(np.argmin(np.abs(clip.timestamps - t))) for t in times]
    variance = acceleration_variance(found.std[rows], 60.0, 6.0), found.root_covariance[rows] * noise_gain(60.0, 6.0)
    known = (times > 0.7499) & (times < 1.2501)
    parts = smooth.values, smooth.velocity, smooth.acceleration
    tracked = track_recording(person, times, parts, loads, variance, known, TrackingSettings())

    def rms(x):
        return np.sqrt((x[known] ** 2).mean(axis=0))

    actuators = tables.read(human_motion(f"{GAIT}/reference/RRA_Actuation_force.sto"))
    errors = tables.read(human_motion(f"{GAIT}/reference/RRA_pErr.sto"))
    theirs = {name: np.sqrt((actuators[name] ** 2).mean()) for name in ("FX", "FY", "FZ", "MX", "MY", "MZ")}
    residual = dict(zip(person.names[:6], rms(tracked.motion.residual), strict=True))
    ours = {f"F{k.upper()}": residual[f"pelvis_t{k}"] for k in "xyz"}
    ours |= {"MX": residual["pelvis_list"], "MY": residual["pelvis_rotation"], "MZ": residual["pelvis_tilt"]}
    off = rms(tracked.motion.error)
    angles = [k for k in range(person.n) if person.rotational[k]]
    print({k: (round(float(ours[k]), 2), round(float(theirs[k]), 2)) for k in theirs})
    print("mm", 1e3 * off[3:6], "deg", np.degrees(np.sqrt((off[angles] ** 2).mean())), tracked.constants.mass)
    for name, value in theirs.items():
        assert ours[name] <= value, name
    for k in "xyz":
        assert off[person.index(f"pelvis_t{k}")] <= np.sqrt((errors[f"pelvis_t{k}"] ** 2).mean()), k
    assert np.degrees(np.sqrt((off[angles] ** 2).mean())) <= 0.05
    assert 0.97 < tracked.constants.mass < 1.03 and np.abs(tracked.constants.moved).max() < 0.1


def test_a_recording_is_tracked_where_its_forces_are_known_whatever_its_heading(walker, human_motion):
    clip = load_clip(human_motion(f"{WALK}/motion_capture_walk.trc"))
    tasks = read_ik_setup(human_motion(f"{WALK}/ik_setup_walk.xml"), walker)
    wrenches = read_loads(human_motion(f"{WALK}/grf_walk.xml"))
    settings = AnalysisSettings(tracking=TrackingSettings())
    a = analyse(walker, clip, wrenches, tasks, settings)
    m = a.tracking.motion
    np.testing.assert_array_equal(np.isfinite(m.tau).all(axis=1), a.explained)
    before, after = (np.sqrt(np.nanmean(r[:, 3:] ** 2)) for r in (a.residual_before, m.residual))
    assert after < 0.1 * before and np.degrees(np.nanmax(np.abs(m.error[:, 6:]))) < 3
    c, s = np.cos(2.1), np.sin(2.1)
    R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    b = analyse(
        walker, replace(clip, positions=clip.positions @ R.T), [w.rotated(R) for w in wrenches], tasks, settings
    )
    e, inner = a.explained, [k for k in range(walker.n) if k not in a.root]
    # Not to rounding: the filter takes angles of the root, and the zeros of plates are small numbers in space.
    assert np.abs(b.tau[e][:, inner] - a.tau[e][:, inner]).max() < 0.5
    assert np.abs(b.tracking.motion.tau[e][:, inner] - m.tau[e][:, inner]).max() < 1.5
    assert b.tracking.constants.mass == pytest.approx(a.tracking.constants.mass, abs=2e-3)


def test_bad_settings_and_motions_are_told(dancer):
    person, t, motion, loads = dancer
    for bad, words in (
        ({"rate": 0.0}, "rate of tracking"),
        ({"plate_variance": -1.0}, "variance"),
        ({"sway": 0.0}, "sway"),
    ):
        with pytest.raises(ConfigError, match=words):
            TrackingSettings(**bad)
    with pytest.raises(SizeError, match="two frames"):
        track(person, t[:1], tuple(m[:1] for m in motion), {}, variance_of(person, 1))
    with pytest.raises(SizeError, match="increasing times"):
        track(person, t[::-1], motion, loads, variance_of(person, len(t)))
    T = len(t)
    assert (
        track_recording(person, t, motion, loads, variance_of(person, T), np.zeros(T, bool), TrackingSettings()) is None
    )


def test_the_trunk_is_the_heaviest_body_but_for_the_root():
    person = stick_person()
    root, *others = person.bodies
    heavy = replace(person, bodies=(replace(root, mass=99.0), *others))
    assert heavy.bodies[0].name == "pelvis" and trunk_of(heavy) == "torso"
    first = replace(person, bodies=(root, replace(others[-1], mass=50.0), *others[:-1]))
    assert trunk_of(first) == others[-1].name, "also where it is the first after the root"
