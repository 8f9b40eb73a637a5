"""A person live: beside the fit of a whole clip, with markers that come and go, and moments beside the analysis."""

import numpy as np
import pytest
from scipy.signal import lfilter

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.human import FitTasks, analyse, fit, inverse_dynamics, read_ik_setup, read_osim
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.live.body_points import NEEDED, PersonPoints
from humanoid_control.human.live.live_fit import LiveFit, LiveRecorder
from humanoid_control.human.live.live_forces import (
    SOLE_BANDWIDTH,
    DelayedFilter,
    LiveContacts,
    LiveDynamics,
    PlateWrench,
)
from humanoid_control.human.marker_solver import root_covariances
from humanoid_control.mocap import load_clip
from test.stick_person import stick_person, swaying, write_osim

WALK = "rajagopal_walk"
TIMES = 3.0 + np.arange(600) / 240
TURNED = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # y up to z up


@pytest.fixture(scope="module")
def sticks():
    person = stick_person()
    return person, swaying(person, TIMES)


def play(live, markers, labels=None):
    labels = tuple(labels or live.labels)
    return [live.fit(live.arranged(labels, frame)) for frame in markers]


def test_the_model_of_sticks_is_read_as_it_was_written(tmp_path, sticks):
    person, q = sticks
    read = read_osim(write_osim(person, tmp_path / "sticks.osim"))
    assert read.names == person.names and read.mass == pytest.approx(person.mass)
    np.testing.assert_allclose(read.marker_positions(q[::100]), person.marker_positions(q[::100]), atol=1e-12)


def test_angles_are_those_that_moved_the_markers_with_z_or_y_upwards(sticks):
    person, q = sticks
    x = person.marker_positions(q)
    for markers in (x, x @ TURNED.T, x @ TURNED):  # y up, z up, and z down
        live = LiveFit(person)
        found = play(live, markers)
        assert all(f is None for f in found[:9]) and all(f is not None for f in found[9:])
        inner = [k for k in range(person.n) if not person.names[k].startswith("pelvis")]
        error = np.array([np.abs(f.q[inner] - q[t][inner]).max() for t, f in enumerate(found) if f])
        assert error.max() < 1e-5 and max(f.rms for f in found[9:]) < 1e-6
        np.testing.assert_allclose(found[-1].fitted @ live.turn, markers[-1], atol=1e-5)


def test_each_frame_is_that_of_the_fit_of_the_whole_clip(walker, human_motion):
    clip = load_clip(human_motion(f"{WALK}/motion_capture_walk.trc"))
    tasks = read_ik_setup(human_motion(f"{WALK}/ik_setup_walk.xml"), walker)
    whole = fit(walker, clip.positions, clip.labels, tasks)
    found = play(LiveFit(walker, tasks, np.eye(3)[1]), clip.positions, clip.labels)
    error = np.degrees([np.abs(f.q - whole.q[t])[walker.rotational].max() for t, f in enumerate(found)])
    assert np.median(error) < 1e-3 and np.quantile(error, 0.95) < 0.5
    rms = np.array([f.rms for f in found])
    np.testing.assert_allclose(rms, whole.rms, rtol=0.1)


def test_markers_may_go_come_back_and_lie(sticks):
    person, q = sticks
    markers = person.marker_positions(q) + np.random.default_rng(0).normal(0, 1e-3, (len(q), len(person.markers), 3))
    hand = [k for k, m in enumerate(person.markers) if m.body == "hand_r"]
    markers[100:160, hand] = np.nan
    markers[200, 3] += [0.3, 0.0, 0.0]
    markers[300, 5] = 0.0  # as some systems send what they do not see
    live = LiveFit(person, up=np.eye(3)[1])
    found = play(live, markers)
    wrist = person.index("hand_r_0")
    assert found[99].std[wrist] < 0.1 and found[150].unknown[wrist] and not found[170].unknown[wrist]
    assert abs(found[150].q[wrist] - found[99].q[wrist]) < 0.05, "held where it was"
    assert found[200].outliers == (live.labels[3],)
    error = [np.abs(f.q - q[t])[person.rotational].max() for t, f in enumerate(found)]
    assert error[200] < 3 * np.median(error), "a marker that lies moves nothing"
    assert np.isnan(found[300].residuals[5]) and np.isfinite(found[301].residuals[5])


def test_the_covariance_of_a_live_frame_is_that_of_its_equations_built_anew(sticks):
    """Live it comes out of the factor that the fit leaves behind, also where a marker lies."""
    person, q = sticks
    markers = person.marker_positions(q[:40]) + np.random.default_rng(2).normal(0, 2e-3, (40, len(person.markers), 3))
    markers[30, 3] += 0.3
    live, anew = LiveFit(person, up=np.eye(3)[1]), np.full((1, 6, 6), np.nan)
    for k, x in enumerate(markers):
        found = live.fit(live.arranged(live.labels, x))
        root_covariances(Packed(live._record.record.fit).table, anew)
        np.testing.assert_allclose(found.root_covariance, anew[0], atol=1e-9 * np.abs(anew).max())
        root = [person.index(name) for name in person.names if name.startswith("pelvis")]
        np.testing.assert_allclose(np.sqrt(np.diag(found.root_covariance)), found.std[root], rtol=1e-6)
        assert bool(found.outliers) == (k == 30)


def test_labels_may_change_their_order_their_case_and_their_subject(sticks):
    person, q = sticks
    live, at = LiveFit(person, up=np.eye(3)[1]), person.marker_positions(q[:1])[0]
    order = np.random.default_rng(1).permutation(len(at))
    labels = tuple(f"Someone:{live.labels[k].upper()}" for k in order)
    np.testing.assert_array_equal(live.arranged(labels, at[order]), at)
    twice = (*live.labels, live.labels[4], "lamp")
    got = live.arranged(twice, np.vstack([at, at[:2]]))
    assert np.isnan(got[4]).all() and np.isfinite(np.delete(got, 4, axis=0)).all()


def test_angles_do_not_jump_where_somebody_turns_round(sticks):
    person, _ = sticks
    q = np.tile(person.rest, (480, 1))
    q[:, person.index("pelvis_rotation")] = np.linspace(0, 4 * np.pi, len(q))
    found = play(LiveFit(person, up=np.eye(3)[1]), person.marker_positions(q))
    heading = np.array([f.q[person.index("pelvis_rotation")] for f in found])
    np.testing.assert_allclose(heading - heading[0], q[:, person.index("pelvis_rotation")], atol=1e-4)


def test_what_cannot_be_fitted_is_refused_or_waited_for(sticks):
    person, q = sticks
    x = person.marker_positions(q[:30])
    with pytest.raises(ClipError, match="100 times too large"):
        play(LiveFit(person), 100 * x)
    few = np.full_like(x, np.nan)
    few[:, :2] = x[:, :2]
    assert play(LiveFit(person), few) == [None] * 30
    with pytest.raises(ConfigError, match="has 0 markers"):
        LiveFit(person.with_markers(()))


def test_a_few_seconds_of_motion_calibrate_a_person(sticks):
    person, q = sticks
    larger = person.scaled(dict.fromkeys(person.body_names, 1.1))
    recorder, live = LiveRecorder(2.0), LiveFit(person, up=np.eye(3)[2])
    markers = larger.marker_positions(q) @ TURNED.T
    done = [recorder.add(m, t) for m, t in zip(markers, TIMES, strict=True)]
    assert done.index(True) == pytest.approx(480, abs=1)
    found = recorder.calibrate(live.person, live.turn, live.labels)
    assert np.sqrt(np.mean(found.after.rms**2)) < 0.1 * np.sqrt(np.mean(found.before.rms**2))
    assert np.median(list(found.factors.values())) == pytest.approx(1.1, abs=0.02)


# -------- forces


def test_filtered_value_and_rate_are_equally_late_and_are_what_scipy_says():
    """A chain of two poles at r, and the backward difference of its output."""
    dt, bandwidth = 1 / 240, 6.0
    t = np.arange(600) * dt
    x = np.sin(7 * t) + 0.3 * t
    f, out = DelayedFilter(1, bandwidth), []
    for k, v in enumerate(x):
        f.update(dt if k else 0.0, np.array([v]))
        out.append((f.value[0], f.rate[0]))
    value, rate = np.array(out).T
    r = np.exp(-2 * np.pi * bandwidth * dt)
    known = lfilter([(1 - r) ** 2], [1, -2 * r, r * r], x)
    np.testing.assert_allclose(value[200:], known[200:], atol=1e-9)
    np.testing.assert_allclose(rate[200:], np.diff(known)[199:] / dt, atol=1e-9)
    assert f.delay == pytest.approx(2 / (2 * np.pi * bandwidth), rel=0.1)


def feed(dynamics, found, times, plates=None, heard=True):
    return [
        dynamics.step(f.q, t, (f.std, f.root_covariance), plates(k) if plates else {}, heard)
        for k, (f, t) in enumerate(zip(found, times, strict=True))
    ]


def test_moments_in_the_air_need_no_plate_and_those_on_the_ground_do(sticks):
    person, _ = sticks
    t = np.arange(240) / 240
    q = swaying(person, 4.0 + t)
    q[:, person.index("pelvis_ty")] += 3 * t - 0.5 * 9.80665 * t**2
    live = LiveFit(person, up=np.eye(3)[1])
    flown = feed(LiveDynamics(live.person, 12.0), play(live, person.marker_positions(q)), t)
    assert not flown[5].explained and np.isnan(flown[5].tau).all(), "the filters know nothing yet"
    assert all(f.explained and np.isfinite(f.tau).all() for f in flown[60:])
    qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    known = inverse_dynamics(person, q, qd, qdd).tau
    k = person.index("humerus_r_0")
    late = [round(f.delay * 240) for f in flown]
    ours, theirs = np.array([[f.tau[k], known[i - late[i], k]] for i, f in enumerate(flown)][80:-5]).T
    assert np.corrcoef(ours, theirs)[0, 1] > 0.99 and np.abs(ours - theirs).max() < 0.1 * np.ptp(theirs) + 0.3
    stands = feed(LiveDynamics(live.person, 12.0), play(live, person.marker_positions(q[:1].repeat(240, 0))), t)
    assert all(np.isnan(f.tau).all() for f in stands)
    assert stands[-1].residual[1] == pytest.approx(person.mass * 9.80665, rel=1e-3), "the weight that nobody carries"


def plate_under(person, share=1.0, x=0.1, z=0.09):
    """A plate at the height of the soles that carries a share of the weight at a place."""
    force = np.array([0.0, share * person.mass * 9.80665, 0.0])
    at = np.array([x, 0.0, z])
    return PlateWrench(np.concatenate([force, np.cross(at, force)]), np.eye(3)[1], np.zeros(3))


def standing(person):
    lowest = person.marker_positions(person.rest)[0][:, 1].min()
    q = person.rest.copy()
    q[person.index("pelvis_ty")] -= lowest
    return q


def test_a_plate_goes_to_the_foot_that_stands_on_it_two_feet_share_and_nobody_is_told(sticks):
    person, _ = sticks
    q, weight = standing(person), person.mass * 9.80665

    def settle(plates):
        contacts = LiveContacts(person)
        for k in range(60):
            loads = contacts.step(q, k / 240, plates)
        return contacts, loads[:, 1] / weight

    contacts, share = settle({"a": plate_under(person, 1.0, 0.1, 0.09)})
    assert contacts.feet == ("right", "left") and share == pytest.approx([1, 0])
    assert contacts.standing("a") == ("right",) and contacts.carriers["right"] == "calcn_r"
    contacts, share = settle({"a": plate_under(person, 0.6), "b": plate_under(person, 0.4, 0.1, -0.09)})
    assert share == pytest.approx([0.6, 0.4]) and not contacts.shared
    contacts, share = settle({"a": plate_under(person, 1.0, 0.17, 0.0)})
    assert share == pytest.approx([0.5, 0.5], abs=0.05) and contacts.shared
    contacts, share = settle({"a": plate_under(person, 1.0, 2.0, 0.0)})
    assert share == pytest.approx([0, 0]) and "no foot on it" in contacts.problems["a"]
    contacts, share = settle({"a": plate_under(person, -1.0)})
    assert share == pytest.approx([0, 0]) and "points down" in contacts.problems["a"]


def test_soles_move_by_the_filter_and_rest_when_a_recording_begins_anew(sticks):
    """Each point goes through the filter of the other quantities; the slowest of a foot counts."""
    person, _ = sticks
    contacts, q = LiveContacts(person), standing(person)
    speed, fore = contacts._soles.record.speed, person.index("pelvis_tx")
    known, dt = DelayedFilter(1, SOLE_BANDWIDTH), 1 / 240

    def move(x, time):
        q[fore] = x
        contacts.step(q, time, {})
        return speed.tolist()

    assert move(5.0, 0.0) == [0.0, 0.0], "the first frame, wherever it is"
    known.update(0.0, np.array([5.0]))
    for k in range(1, 60):
        x = 5.0 + 0.7 * k * dt
        known.update(dt, np.array([x]))
        assert move(x, k * dt) == pytest.approx(2 * known.rate.tolist(), rel=1e-6)
    assert speed == pytest.approx([0.7, 0.7], rel=1e-3)
    assert move(9.0, 59 * dt) == [0.0, 0.0], "the clock stands: begun anew"
    move(float("nan"), 60 * dt)
    contacts.restart()
    assert move(9.0, 61 * dt) == [0.0, 0.0], "a frame without posture is forgotten"
    assert move(9.0, 62 * dt) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_who_stands_on_a_plate_has_moments_until_the_plate_falls_silent(sticks):
    person, _ = sticks
    t = np.arange(240) / 240
    live = LiveFit(person, up=np.eye(3)[1])
    found = play(live, person.marker_positions(standing(person)[None].repeat(240, 0)))
    both = {"a": plate_under(person, 0.5, 0.0, 0.09), "b": plate_under(person, 0.5, 0.0, -0.09)}
    dynamics = LiveDynamics(live.person, 6.0)
    stands = feed(dynamics, found, t, lambda _: both)
    assert stands[-1].explained and np.abs(stands[-1].residual[:3]).max() < 1.0
    knee = stands[-1].tau[person.index("tibia_r_0")]
    static = inverse_dynamics(person, standing(person), 0 * person.rest, 0 * person.rest, {
        "calcn_r": both["a"].wrench[None], "calcn_l": both["b"].wrench[None]})  # fmt: skip
    assert knee == pytest.approx(static.tau[0, person.index("tibia_r_0")], abs=0.5)
    silent = dynamics.step(found[-1].q, t[-1] + 1 / 240, (found[-1].std, found[-1].root_covariance), {}, False)
    assert np.isnan(silent.tau).all() and not silent.explained


def test_live_moments_are_late_but_those_of_the_analysis(walker, human_motion):
    clip = load_clip(human_motion(f"{WALK}/motion_capture_walk.trc"))
    tasks = read_ik_setup(human_motion(f"{WALK}/ik_setup_walk.xml"), walker)
    wrenches = read_loads(human_motion(f"{WALK}/grf_walk.xml"))
    whole = analyse(walker, clip, wrenches, tasks)
    live = LiveFit(walker, tasks, np.eye(3)[1])
    found = play(live, clip.positions, clip.labels)
    at = [w.zeroed().resampled(clip.timestamps) for w in wrenches]

    def plates(k):
        return {
            w.name: PlateWrench(np.nan_to_num(np.concatenate([w.force[k], w.moment[k]])), w.normal, w.surface)
            for w in at
        }

    out = feed(LiveDynamics(live.person, 6.0), found, clip.timestamps, plates)
    known = np.array([f.explained for f in out])
    assert known.sum() > 0.9 * whole.explained.sum()
    when = clip.timestamps - np.array([f.delay for f in out])
    for name, least in (("hip_flexion_r", 0.96), ("knee_angle_r", 0.88), ("ankle_angle_l", 0.98)):
        k = walker.index(name)
        theirs = np.interp(when, clip.timestamps, whole.tau[:, k])
        ours = np.array([f.tau[k] for f in out])
        both = np.isfinite(ours) & np.isfinite(theirs)
        assert np.corrcoef(ours[both], theirs[both])[0, 1] > least, name


def test_points_of_the_body_are_its_joints(walker, sticks):
    for person in (walker, sticks[0]):
        points = PersonPoints(person)
        assert points.missing == () and set(NEEDED) <= set(points.names)
        R, p = person.body_poses(person.rest)
        at = dict(zip(points.names, points.points(points.joints(R[0], p[0])), strict=True))
        assert at["l_shoulder"][1] > at["l_hip"][1] > at["l_knee"][1] > at["l_ankle"][1]
        assert at["r_hip"][2] > at["l_hip"][2], "z is to the right"
        b = person.body_index("femur_r")
        np.testing.assert_allclose(at["r_hip"], p[0, b] + R[0, b] @ person.joints[b].C.p)
        assert points.segments(points.joints(R[0], p[0])).shape == (2 * len(points.bones), 3)
    legs = sticks[0].with_markers(())
    assert FitTasks() is not None and PersonPoints(legs).missing == ()
