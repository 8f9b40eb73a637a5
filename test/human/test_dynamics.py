"""Inverse dynamics against OpenSim's, the change of momentum, and the plates' correction against least squares."""

import json

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline
from scipy.signal import butter, filtfilt

from humanoid_control.errors import ConfigError, NotANumberError, SizeError, UnknownNameError
from humanoid_control.human import (
    FitSettings,
    acceleration_variance,
    fit,
    inverse_dynamics,
    read_osim,
    weighted_inverse_dynamics,
)
from humanoid_control.human.analysis import with_free_root
from humanoid_control.human.dynamics import noise_gain
from humanoid_control.mocap import load_clip

GAIT, TESTS = "gait2354_walk", "opensim_core_tests/id"


def padded(values):
    """Half of the length more at both ends, reflected in the end points."""
    n = len(values) // 2
    return np.concatenate([2 * values[0] - values[n:0:-1], values, 2 * values[-1] - values[-2 : -n - 2 : -1]]), n


def smoothed(times, values, cutoff):
    """Values and two derivatives as OpenSim has them: filter forward and backward, quintic spline."""
    x, n = padded(values)
    step = (times[-1] - times[0]) / (len(times) - 1)
    if cutoff > 0:
        b, a = butter(3, 2 * step * cutoff)
        x = filtfilt(b, a, x, axis=0, padlen=0)
    t = times[0] + step * (np.arange(len(x)) - n)
    spline = make_interp_spline(t, x, k=5)
    return [spline.derivative(k)(times) if k else spline(times) for k in range(3)]


def plates(human_motion, tables, file, times, columns):
    """Wrenches (T, 6) about the origin by body, at times; formed before they are interpolated."""
    table, out = tables.read(human_motion(file)), {}
    for body, (force, point, torque) in columns.items():
        F, p, M = (np.stack([table[f"{name}{k}"] for k in "xyz"], axis=1) for name in (force, point, torque))
        wrench = np.hstack([F, M + np.cross(p, F)])
        out[body] = make_interp_spline(table["time"], wrench, k=1)(times)
    return out


FEET = {
    "calcn_r": ("ground_force_v", "ground_force_p", "ground_torque_"),
    "calcn_l": ("1_ground_force_v", "1_ground_force_p", "1_ground_torque_"),
}
OTHER_FEET = {
    "calcn_r": FEET["calcn_r"],
    "calcn_l": ("l_ground_force_v", "l_ground_force_p", "l_ground_torque_"),
}


def differences(person, tau, table):
    """Largest difference of forces [N] and of moments [N m] from a table of OpenSim's."""
    out = {"force": 0.0, "moment": 0.0}
    for k, name in enumerate(person.names):
        kind = "moment" if person.rotational[k] else "force"
        out[kind] = max(out[kind], float(np.abs(tau[:, k] - table[f"{name}_{kind}"]).max()))
    return out["force"], out["moment"]


def test_published_inverse_dynamics_of_gait2354(human_motion, tables):
    person = read_osim(human_motion(f"{GAIT}/reference/subject01_simbody.osim"))
    theirs = tables.read(human_motion(f"{GAIT}/reference/inverse_dynamics.sto"))
    motion = tables.read(human_motion(f"{GAIT}/reference/subject01_walk1_ik.mot"))
    times = np.linspace(motion["time"][0], motion["time"][-1], len(motion["time"]))
    q, qd, qdd = smoothed(times, tables.q(person, motion), 6.0)
    loads = plates(human_motion, tables, f"{GAIT}/subject01_walk1_grf.mot", times, FEET)
    tau = inverse_dynamics(person, q, qd, qdd, loads).tau
    force, moment = differences(person, tau, theirs)
    assert force <= 0.05 and moment <= 0.03


def test_opensims_own_test(human_motion, tables):
    person = read_osim(human_motion(f"{TESTS}/subject01_converted_40600.osim"))
    theirs = tables.read(human_motion(f"{TESTS}/std_subject01_InverseDynamics.sto"))
    motion = tables.read(human_motion(f"{TESTS}/subject01_walk1_ik.mot"))
    times = np.linspace(motion["time"][0], motion["time"][-1], len(motion["time"]))
    q, qd, qdd = smoothed(times, tables.q(person, motion), 6.0)
    loads = plates(human_motion, tables, f"{TESTS}/subject01_walk1_grf.mot", times, OTHER_FEET)
    tau = inverse_dynamics(person, q, qd, qdd, loads).tau
    both = times <= theirs["time"][-1]
    theirs = {name: np.interp(times[both], theirs["time"], values) for name, values in theirs.items()}
    force, moment = differences(person, tau[both], theirs)
    assert max(force, moment) <= 2.0


@pytest.fixture(scope="module")
def random_states(walker, human_motion):
    """q, qd, qdd and the generalised forces of OpenSim, whose dependent knees' are added to those they follow."""
    states = json.loads(human_motion("rajagopal_walk/computed_opensim46/random_states.json").read_text())
    keys = ("coordinates", "speeds", "accelerations")
    q, qd, qdd = (np.array([[s[key][n] for n in walker.names] for s in states]) for key in keys)
    tau = np.array([[s["generalised_forces"][n] for n in walker.names] for s in states])
    for side in "rl":
        own = walker.index(f"knee_angle_{side}")
        tau[:, own] += [s["generalised_forces"][f"knee_angle_{side}_beta"] for s in states]
    return q, qd, qdd, tau


def test_generalised_forces_of_random_states(walker, random_states):
    q, qd, qdd, theirs = random_states
    difference = inverse_dynamics(walker, q, qd, qdd).tau - theirs
    # OpenSim's are beside the change of its own momentum by so much where knees are splines.
    assert np.sqrt((difference**2).mean()) <= 0.5 and np.abs(difference).max() <= 2.0


def momentum(person, q, qd):
    """Linear momentum, and angular momentum about the origin, (T, 3) each."""
    R, p = person.body_poses(q)
    omega, v = person.body_twists(q, qd)
    P, L = np.zeros((len(R), 3)), np.zeros((len(R), 3))
    for b, body in enumerate(person.bodies):
        c = R[:, b] @ body.com
        u = body.mass * (v[:, b] + np.cross(omega[:, b], c))
        P += u
        spin = np.einsum("tij,jk,tlk,tl->ti", R[:, b], body.inertia, R[:, b], omega[:, b])
        L += np.cross(p[:, b] + c, u) + spin
    return P, L


def test_root_forces_are_the_change_of_momentum(walker, random_states):
    q, qd, qdd, _ = random_states
    tau, h = inverse_dynamics(walker, q, qd, qdd).tau, 1e-5
    ends = [momentum(walker, q + s * qd + 0.5 * s * s * qdd, qd + s * qdd) for s in (-h, h)]
    change = (ends[1][0] - ends[0][0]) / (2 * h) - walker.mass * walker.gravity
    assert np.allclose(tau[:, [walker.index(f"pelvis_t{k}") for k in "xyz"]], change, rtol=0, atol=1e-3)
    # Moments: the work on a turning pelvis is that of the change of angular momentum about its origin.
    R, p = walker.body_poses(q)
    com = sum(b.mass * (p[:, k] + R[:, k] @ b.com) for k, b in enumerate(walker.bodies)) / walker.mass
    spin = (ends[1][1] - ends[0][1]) / (2 * h) - np.cross(com, walker.mass * walker.gravity)
    origin = p[:, walker.body_index("pelvis")]
    about = spin - np.cross(origin, change)
    turned = [walker.index(f"pelvis_{k}") for k in ("tilt", "list", "rotation")]
    for c in turned:
        unit = np.zeros_like(q)
        unit[:, c] = 1.0
        axis = walker.body_twists(q, unit)[0][:, walker.body_index("pelvis")]
        assert np.allclose(tau[:, c], (axis * about).sum(1), rtol=0, atol=1e-3)


def mass_matrix(person, q):
    """(T, n, n) of unit accelerations."""
    zero = np.zeros_like(q)
    h = inverse_dynamics(person, q, zero, zero).tau
    columns = []
    for c in range(person.n):
        unit = zero.copy()
        unit[:, c] = 1.0
        columns.append(inverse_dynamics(person, q, zero, unit).tau - h)
    return np.stack(columns, axis=2)


def test_a_load_is_its_work_on_the_body(walker, random_states):
    q, qd, qdd, _ = random_states
    rng = np.random.default_rng(11)
    wrench = rng.normal(0, 100, (len(q), 6))
    without, loaded = (inverse_dynamics(walker, q, qd, qdd, f).tau for f in (None, {"calcn_l": wrench}))
    b = walker.body_index("calcn_l")
    origin = walker.body_poses(q)[1][:, b]
    for c in (0, 3, walker.index("knee_angle_l"), walker.index("hip_flexion_r")):
        unit = np.zeros_like(q)
        unit[:, c] = 1.0
        omega, v = (x[:, b] for x in walker.body_twists(q, unit))
        power = ((v - np.cross(omega, origin)) * wrench[:, :3]).sum(1) + (omega * wrench[:, 3:]).sum(1)
        assert np.allclose(without[:, c] - loaded[:, c], power, atol=1e-8)


def test_the_closed_form_is_the_weighted_least_squares(walker, random_states):
    q, qd, qdd, _ = random_states
    rng, n = np.random.default_rng(12), walker.n
    loads = {"calcn_l": rng.normal(0, 100, (len(q), 6)), "hand_r": rng.normal(0, 10, (len(q), 6))}
    W_a, W_c = rng.uniform(0.1, 3.0, n), rng.uniform(10.0, 100.0, 6)
    result = weighted_inverse_dynamics(walker, (q, qd, qdd), loads, W_a, W_c)
    plain = inverse_dynamics(walker, q, qd, qdd, loads)
    T0 = inverse_dynamics(walker, q, qd, qdd).tau
    M, I_c = mass_matrix(walker, q), np.eye(6, n)
    assert np.allclose(M, M.swapaxes(1, 2), atol=1e-9) and (np.linalg.eigvalsh(M) > 0).all()
    for t in range(len(q)):
        f = T0[t] - plain.tau[t]
        A = np.vstack([I_c, np.linalg.inv(M[t])])
        b = np.concatenate([I_c @ f, np.linalg.solve(M[t], T0[t])])
        root = np.sqrt(1 / np.concatenate([W_c, W_a]))
        T = np.linalg.lstsq(root[:, None] * A, root * b, rcond=None)[0]
        scale = np.abs(T).max()
        assert np.allclose(result.tau[t] + f, T, rtol=0, atol=1e-8 * scale)
        assert np.allclose(M[t] @ (result.qdd[t] - qdd[t]), T - T0[t], rtol=0, atol=1e-8 * scale)
    assert np.allclose(result.residual_before, plain.residual)
    assert np.allclose(result.tau, inverse_dynamics(walker, q, qd, result.qdd, loads).tau, atol=1e-6)


def test_the_residual_goes_from_all_to_nothing_with_the_trust_in_the_plates(walker, random_states):
    q, qd, qdd, _ = random_states
    loads = {"calcn_l": np.tile([0.0, 800.0, 0.0, 0.0, 0.0, 0.0], (len(q), 1))}
    before = np.abs(inverse_dynamics(walker, q, qd, qdd, loads).residual).max()
    W_a = np.ones(walker.n)
    left = [
        np.abs(weighted_inverse_dynamics(walker, (q, qd, qdd), loads, W_a, w).residual).max()
        for w in (1e12, 1e4, 1e2, 1e-6)
    ]
    assert left[0] == pytest.approx(before, rel=1e-3) and (np.diff(left) < 0).all()
    assert left[-1] < 1e-4 * before
    held = W_a.copy()
    held[6:] = 0.0
    qdd_held = weighted_inverse_dynamics(walker, (q, qd, qdd), loads, held).qdd
    assert np.array_equal(qdd_held[:, 6:], qdd[:, 6:]) and np.abs(qdd_held[:, :6] - qdd[:, :6]).max() > 0.1


def test_corrected_moments_do_not_change_with_the_heading(walker, human_motion):
    """The same frames, turned about the vertical: exact, for nothing is filtered. Variances of angles alone would not
    do it."""
    clip = load_clip(human_motion("rajagopal_walk/motion_capture_walk.trc"))
    markers, still = clip.positions[100:110], np.zeros((10, walker.n))
    load = np.tile([30.0, 820.0, -20.0, 5.0, 3.0, -8.0], (10, 1))
    settings, found, walker = FitSettings(root=True), [], with_free_root(walker)
    for heading in (0.0, np.pi / 2, 2.5):
        c, s = np.cos(heading), np.sin(heading)
        R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        f = fit(walker, markers @ R.T, clip.labels, None, settings)
        turned = np.hstack([load[:, :3] @ R.T, load[:, 3:] @ R.T])
        W_a, W_root = acceleration_variance(f.std, 100, 6), f.root_covariance * noise_gain(100, 6)
        motion, loads = (f.q, still, still), {"calcn_r": turned}
        whole = weighted_inverse_dynamics(walker, motion, loads, W_a, 1e4, W_root).tau[:, 6:]
        found.append((whole, weighted_inverse_dynamics(walker, motion, loads, W_a, 1e4).tau[:, 6:]))
    for whole, angles_alone in found[1:]:
        assert np.abs(whole - found[0][0]).max() < 1e-4
        assert np.abs(angles_alone - found[0][1]).max() > 1.0


def test_variance_of_filtered_accelerations_is_that_of_noise():
    rate, cutoff, std = 100.0, 6.0, 0.01
    noise = np.random.default_rng(13).normal(0, std, 100_000)
    spectrum = np.fft.rfft(noise)
    f = np.fft.rfftfreq(len(noise), 1 / rate)
    second = np.fft.irfft(np.where(f <= cutoff, -((2 * np.pi * f) ** 2), 0.0) * spectrum)
    assert acceleration_variance(np.array([std]), rate, cutoff)[0] == pytest.approx(second.var(), rel=0.05)
    known = acceleration_variance(np.array([1.0, 2.0, 2.0]), rate, 6.0)
    assert np.array_equal(acceleration_variance(np.array([1.0, np.inf, 2.0]), rate, 6.0), known), "as the largest"
    for wrong in (0.0, -1.0, 50.0, np.nan):
        with pytest.raises(ConfigError, match="below 50 Hz"):
            acceleration_variance(np.array([1.0]), rate, wrong)


def test_bad_input_is_told(walker, random_states):
    q, qd, qdd, _ = random_states
    with pytest.raises(SizeError, match="give equal numbers"):
        inverse_dynamics(walker, q, qd[:2], qdd)
    broken = qd.copy()
    broken[1, 3] = np.nan
    with pytest.raises(NotANumberError, match="qd of 'pelvis_tx' in frame 1"):
        inverse_dynamics(walker, q, broken, qdd)
    with pytest.raises(UnknownNameError, match="calcn_r"):
        inverse_dynamics(walker, q, qd, qdd, {"calcn": np.zeros((len(q), 6))})
    with pytest.raises(SizeError, match="load of 'calcn_r'"):
        inverse_dynamics(walker, q, qd, qdd, {"calcn_r": np.zeros((len(q), 3))})
    with pytest.raises(NotANumberError, match="load of 'calcn_r' in frame 0"):
        inverse_dynamics(walker, q, qd, qdd, {"calcn_r": np.full((len(q), 6), np.nan)})
    with pytest.raises(ConfigError, match="more than 0"):
        weighted_inverse_dynamics(walker, (q, qd, qdd), {}, np.ones(walker.n), 0.0)
    with pytest.raises(ConfigError, match="0 or more"):
        weighted_inverse_dynamics(walker, (q, qd, qdd), {}, -np.ones(walker.n))
