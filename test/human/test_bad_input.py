"""Bad recordings through the whole analysis: rejected with the next step, or analysed as far as possible with
a warning.

Other files test, one by one: labels of left and right that are exchanged and setup files (test_marker_fit), models
(test_osim, test_model), tables of forces and absurd points (test_loads), channels at their limit (test_wrenches,
test_force_plates), clocks half a second apart and their offset (test_plate_assignment), and reaches
(test_optimal_reach, test_reach_command).
"""

import re
import resource
from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.human import AnalysisSettings, CoordinateTask, FitTasks, TrackingSettings, analyse, calibrate, fit
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.mocap import MarkerClip
from test.stick_person import stick_person, swaying

RATE = 100
UP, ORIGIN = np.array([0.0, 1.0, 0.0]), np.zeros(3)


@pytest.fixture(scope="module")
def standing():
    """Somebody who sways on two plates for 3 s, each with half of the weight: person, clip, wrenches."""
    person = stick_person()
    times = np.arange(3 * RATE) / RATE
    q = swaying(person, 3.0 + times, 0.3)
    q[:, person.index("pelvis_ty")] -= person.marker_positions(person.rest)[0][:, 1].min()
    markers = person.marker_positions(q) + np.random.default_rng(5).normal(0, 5e-4, (len(q), len(person.markers), 3))
    clip = MarkerClip("standing", tuple(m.name for m in person.markers), RATE, markers, "test")
    half = person.mass * 9.80665 / 2
    return person, clip, [plate(name, half, z) for name, z in (("right plate", 0.09), ("left plate", -0.09))]


def plate(name, force, z, x=0.05, duration=3.0):
    """A plate with a constant force at a place, unloaded for the last tenth of a second and before."""
    times = np.arange(-200, duration * 1000 + 200) / 1000
    loaded = (times >= 0) & (times < duration - 0.1)
    F = np.outer(np.where(loaded, force, 0.0), UP)
    return MeasuredWrench(name, times, F, np.cross([x, 0.0, z], F), UP, ORIGIN)


def test_what_is_right_has_moments(standing):
    a = analyse(*standing)
    assert a.explained.sum() > 250 and {c.feet for c in a.loads.contacts} == {("right",), ("left",)}
    assert not [w for w in a.warnings if "exchanged" in w or "ignored" in w]


def test_times_that_do_not_overlap_are_refused_with_both_ranges(standing):
    person, clip, wrenches = standing
    later = [replace(w, times=w.times + 100) for w in wrenches]
    with pytest.raises(ClipError, match=r"from 0\.00 to 2\.99 s, the forces from 99\.80 to .* no time in common"):
        analyse(person, clip, later)
    assert analyse(person, clip, later, settings=AnalysisSettings(offset=-100.0)).explained.sum() > 250


@pytest.mark.parametrize(
    ("asked", "said"), [((0.5, 2.0), True), ((50.0, 60.0), True), ((0.0, 2.99), False), (None, False)]
)
def test_a_time_range_of_a_task_set_that_leaves_frames_out_is_named(standing, asked, said):
    person, clip, _ = standing
    warnings = analyse(person, clip, tasks=FitTasks(time_range=asked)).warnings
    found = [w for w in warnings if "the task set asks for" in w]
    assert bool(found) == said
    assert not said or f"{asked[0]:g} to {asked[1]:g} s: all frames, 0 to 2.99 s, are analysed" in found[0]


@pytest.mark.parametrize("weight", [-1.0, 1e300, float("nan"), float("inf")])
def test_weights_that_leave_no_digits_to_others_are_refused_by_name(standing, weight):
    person, clip, _ = standing
    with pytest.raises(
        ConfigError, match=re.escape(f"the weight of '{clip.labels[0]}' must be from 0 to 1e+06, got {weight:g}")
    ):
        fit(person, clip.positions, clip.labels, FitTasks(markers={clip.labels[0]: weight}))


@pytest.mark.parametrize(("factor", "words"), [(1000, "1000 times too large"), (0.001, "1000 times too small")])
def test_millimetres_taken_as_metres_and_models_in_another_scale_are_refused(standing, factor, words):
    person, clip, wrenches = standing
    with pytest.raises(ClipError, match=f"{words}.*millimetres"):
        analyse(person, replace(clip, positions=clip.positions * factor), wrenches)


@pytest.mark.parametrize("factor", [0.4, 1.8])
def test_a_size_that_no_person_has_is_not_clamped(standing, factor):
    person, clip, _ = standing
    with pytest.raises(ClipError, match=r"beyond 0\.5 to 1\.6"):
        calibrate(person, factor * clip.positions, clip.labels)


def test_axes_that_differ_are_refused_and_both_are_named(standing):
    person, clip, wrenches = standing
    R = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    with pytest.raises(
        ClipError, match=r"up is \+y by the markers of standing and \+z by the mean force of right plate"
    ):
        analyse(person, clip, [w.rotated(R) for w in wrenches])


def test_two_markers_on_a_body_are_enough_where_joints_are_hinges(standing):
    person, clip, wrenches = standing
    few = [k for k, n in enumerate(clip.labels) if not n.endswith("tibia_r") or n[1] in "01"]
    a = analyse(person, clip.select([clip.labels[k] for k in few]), wrenches)
    knee = person.index("tibia_r_0")
    assert np.isfinite(a.fit.std[:, knee]).all() and np.abs(a.fit.q[:, knee]).max() < 0.05


def test_a_limb_that_nobody_sees_is_at_rest_and_said(standing):
    person, clip, wrenches = standing
    gone = ("humerus_l", "ulna_l", "hand_l")
    a = analyse(person, clip.select([n for n in clip.labels if not n.endswith(gone)]), wrenches)
    limb = [k for k, n in enumerate(person.names) if n.startswith(gone)]
    assert np.isinf(a.fit.std[:, limb]).all()
    np.testing.assert_allclose(a.fit.q[:, limb], np.tile(person.rest[limb], (clip.n_frames, 1)), atol=1e-6)
    assert any("without markers" in w and "held at rest" in w for w in a.warnings)


def test_a_locked_coordinate_that_a_task_pulls_is_named(standing):
    person, clip, _ = standing
    locked = tuple(replace(c, locked=c.name == "tibia_r_0") for c in person.all_coordinates)
    with pytest.raises(ConfigError, match=r"'tibia_r_0' is locked, but a task uses it: unlock it, or drop the task"):
        fit(
            replace(person, all_coordinates=locked), clip.positions, clip.labels,
            FitTasks(coordinates={"tibia_r_0": CoordinateTask(1.0, 0.2)}),
        )  # fmt: skip


def test_a_force_with_nobody_on_it_is_ignored_and_said(standing):
    person, clip, wrenches = standing
    a = analyse(person, clip, [*wrenches, plate("far plate", 60.0, 2.0)])
    assert any("far plate" in w and "without a foot on it" in w and "ignored" in w for w in a.warnings)
    assert a.explained.sum() > 250


@pytest.mark.parametrize("n", [2, 5])
def test_a_few_frames_give_angles_without_filter_and_no_moments(standing, n):
    person, clip, wrenches = standing
    settings = AnalysisSettings(tracking=TrackingSettings())
    a = analyse(person, replace(clip, positions=clip.positions[:n]), wrenches, settings=settings)
    assert a.fit.q.shape == (n, person.n) and np.isfinite(a.motion.values).all()
    assert np.isnan(a.tau).all() and a.tracking is None
    assert any("not filtered" in w for w in a.warnings) and any("moments need at least 6" in w for w in a.warnings)
    with pytest.raises(ClipError, match="contains 1 frame"):
        replace(clip, positions=clip.positions[:1])


def test_nothing_seen_is_refused_and_gaps_are_said(standing):
    person, clip, wrenches = standing
    with pytest.raises(ClipError, match="no frame shows three"):
        analyse(person, replace(clip, positions=np.full_like(clip.positions, np.nan)), wrenches)
    gap = clip.positions.copy()
    gap[100:140] = np.nan
    a = analyse(person, replace(clip, positions=gap), wrenches)
    assert np.isfinite(a.tau[50]).all() and np.isinf(a.fit.std[120]).all()


def test_a_hundred_thousand_frames_take_as_much_memory_a_frame_as_few(standing):
    """Two bodies, so that it does not take long: what is kept grows with frames, what is worked in does not."""
    from humanoid_control.warm_up.human import _two_bodies

    person = _two_bodies()
    q = np.zeros((100_000, person.n))
    q[:, -1] = 0.3 * np.sin(np.arange(len(q)) / 50)
    markers = person.marker_positions(q)
    labels = [m.name for m in person.markers]
    fit(person, markers[:100], labels)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = fit(person, markers, labels)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert np.abs(found.q - q).max() < 1e-4 and (found.reason == 0).all()
    assert grown < 40 * markers[0].nbytes * len(q), "bytes"


@pytest.mark.parametrize("cutoff", [-1.0, 0.0, 50.0, 1e9, float("nan")])
def test_a_cutoff_that_no_filter_has_is_refused_with_the_range(standing, cutoff):
    with pytest.raises(ConfigError, match="above 0 and below 50 Hz"):
        analyse(*standing, settings=AnalysisSettings(cutoff=cutoff))


def test_a_clip_that_shares_few_labels_with_the_model_is_refused_unless_they_are_named(standing):
    person, clip, _ = standing
    count = len(person.markers) // 2 - 1
    others = tuple(f"cluster {k}" for k in range(2 * count))
    far = np.random.default_rng(3).normal(size=(clip.n_frames, len(others), 3))
    positions = np.concatenate([clip.positions[:, :count], far], axis=1)
    mixed = replace(clip, labels=(*clip.labels[:count], *others), positions=positions)
    with pytest.raises(ClipError, match=f"{count} of its {3 * count} labels .*--setup"):
        analyse(person, mixed)
    tasks = FitTasks(markers=dict.fromkeys(clip.labels[:count], 1.0), others=0.0)
    assert any(f"{count} of {3 * count} labels are followed" in w for w in analyse(person, mixed, tasks=tasks).warnings)
    positions[1:, count:] = np.nan  # trajectories without a name, each seen for a moment
    assert np.isfinite(analyse(person, replace(mixed, positions=positions)).fit.q).all()
