"""The whole analysis of a recording: beside OpenSim's moments, in other axes, without a plate, with clocks apart."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.human import AnalysisSettings, analyse, read_ik_setup, read_osim
from humanoid_control.human.analysis import feet_of, root_force
from humanoid_control.human.elements import Marker
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.mocap import MarkerClip, load_clip

WALK = "rajagopal_walk"


@pytest.fixture(scope="module")
def recording(human_motion, walker):
    """Clip, forces and weights of an overground walk."""
    clip = load_clip(human_motion(f"{WALK}/motion_capture_walk.trc"))
    tasks = read_ik_setup(human_motion(f"{WALK}/ik_setup_walk.xml"), walker)
    return clip, read_loads(human_motion(f"{WALK}/grf_walk.xml")), tasks


@pytest.fixture(scope="module")
def analysis(recording, walker):
    clip, wrenches, tasks = recording
    return analyse(walker, clip, wrenches, tasks)


def test_moments_are_those_of_opensim(recording, walker, human_motion, tables):
    """OpenSim's own fit, filter and tool: its plates are not filtered, so peaks of the feet's impact differ."""
    clip, wrenches, tasks = recording
    a = analyse(walker, clip, wrenches, tasks, AnalysisSettings(plate_variance=np.inf))
    table = tables.read(human_motion(f"{WALK}/computed_opensim46/id_6hz.sto"))
    common = a.explained & (a.times >= table["time"][0]) & (a.times <= table["time"][-1])
    rows = [int(np.argmin(np.abs(table["time"] - t))) for t in a.times[common]]
    assert len(rows) == len(table["time"])
    np.testing.assert_allclose(table["time"][rows], a.times[common], atol=1e-6)
    for joint, most in (("hip_flexion", 6.0), ("hip_adduction", 3.0), ("knee_angle", 4.0), ("ankle_angle", 2.0)):
        for side in "rl":
            name = f"{joint}_{side}"
            theirs = table[f"{name}_moment"][rows]
            theirs = theirs + sum(v[rows] for n, v in table.items() if n.startswith(f"{name}_beta"))  # the patella's
            ours = a.tau[common, walker.index(name)]
            assert np.sqrt(((ours - theirs) ** 2).mean()) < most, name
            assert np.corrcoef(ours, theirs)[0, 1] > 0.99, name


def test_plates_take_the_residual_of_a_recorded_walk_the_more_they_are_trusted(recording, walker, analysis):
    """The recorded forces, by the whole path from files: no variance leaves the residual, the default half of it."""
    clip, wrenches, tasks = recording
    rms, tau = [], []
    for variance in (np.inf, 1e5, analysis.settings.plate_variance, 10.0):
        a = analyse(walker, clip, wrenches, tasks, AnalysisSettings(plate_variance=variance))
        rms.append(np.sqrt((a.residual[a.explained] ** 2).mean(axis=0)))
        tau.append(
            a.tau[a.explained][:, [walker.index(f"{j}_{s}") for j in ("hip_flexion", "knee_angle") for s in "rl"]]
        )
        np.testing.assert_allclose(a.residual_before[a.explained], analysis.residual_before[analysis.explained])
    assert all((after < before).all() for before, after in pairwise(rms))
    assert (rms[2] < 0.7 * rms[0]).all() and (rms[3] < 0.05 * rms[0]).all()
    assert np.sqrt(((tau[2] - tau[0]) ** 2).mean(axis=0)).max() < 15.0, "moments of the legs stay those of the walk"


def test_contacts_and_what_they_explain(analysis):
    found = {(c.plate, c.feet) for c in analysis.loads.contacts}
    assert found == {("Right_GRF", ("right",)), ("Left_GRF", ("left",))}
    # Before the first foot is on a plate, and after the last has left it, the other stands where nobody measures.
    known = analysis.times[analysis.explained]
    assert 0.3 < known[0] < 0.5 and 1.9 < known[-1] < 2.2
    assert any("have no moments" in w for w in analysis.warnings)
    before, after = (np.abs(r[analysis.explained]).mean() for r in (analysis.residual_before, analysis.residual))
    assert after < 0.05 * before


def test_axes_of_the_recording_do_not_matter(recording, walker):
    clip, wrenches, tasks = recording
    plain = AnalysisSettings(plate_variance=np.inf)  # variances are of the root's angles, which change with its heading
    analysis = analyse(walker, clip, wrenches, tasks, plain)
    R = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # z up
    turned = analyse(
        walker, replace(clip, positions=clip.positions @ R.T), [w.rotated(R) for w in wrenches], tasks, plain
    )
    assert any("up is +z in the clip" in w for w in turned.warnings)
    np.testing.assert_array_equal(turned.explained, analysis.explained)
    inner = [k for k in range(walker.n) if k not in analysis.root]
    e = analysis.explained
    # Not to rounding: the filter takes the angles of the root, which are others with another heading.
    np.testing.assert_allclose(turned.tau[e][:, inner], analysis.tau[e][:, inner], atol=1.0)
    np.testing.assert_allclose(turned.motion.values[:, inner], analysis.motion.values[:, inner], atol=1e-3)


def test_a_plate_that_is_missing_leaves_frames_without_moments(analysis, recording, walker):
    clip, wrenches, tasks = recording
    one = analyse(walker, clip, [w for w in wrenches if w.name == "Right_GRF"], tasks)
    lost = analysis.explained & ~one.explained
    assert lost.sum() > 40 and not (one.explained & ~analysis.explained).any()
    left = analysis.loads.wrenches["left"].resampled(analysis.times).normal_force
    assert np.median(left[lost]) > 300


def test_without_forces_there_are_angles_alone(analysis, recording, walker):
    clip, _, tasks = recording
    a = analyse(walker, clip, (), tasks)
    np.testing.assert_array_equal(a.motion.values, analysis.motion.values)
    assert np.isnan(a.tau).all() and a.loads is None and any("no forces given" in w for w in a.warnings)


def test_clocks_that_are_apart_are_brought_together_by_an_offset(analysis, recording, walker):
    clip, wrenches, tasks = recording
    late = [replace(w, times=w.times - 0.25) for w in wrenches]
    a = analyse(walker, clip, late, tasks, AnalysisSettings(offset=0.25))
    np.testing.assert_allclose(a.tau[a.explained], analysis.tau[analysis.explained], atol=1e-6)
    with pytest.raises(ClipError, match="no time in common"):
        analyse(walker, clip, wrenches, tasks, AnalysisSettings(offset=100.0))


def test_axes_of_forces_that_are_not_the_markers_are_refused(recording, walker):
    clip, wrenches, tasks = recording
    R = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    with pytest.raises(ClipError, match=r"up is \+y by the markers .* and \+z"):
        analyse(walker, clip, [w.rotated(R) for w in wrenches], tasks)


def test_a_cutoff_beyond_half_the_rate_is_refused(recording, walker):
    with pytest.raises(ConfigError, match="50"):
        analyse(walker, recording[0], (), None, AnalysisSettings(cutoff=60.0))


def test_feet_and_the_force_of_the_root(walker, small_person):
    feet, carriers = feet_of(walker)
    assert feet["right"] == ("talus_r", "calcn_r", "toes_r") and carriers == {"right": "calcn_r", "left": "calcn_l"}
    with pytest.raises(ClipError, match="no body named as a foot"):
        feet_of(small_person())
    residual = np.zeros((1, 6))
    residual[0, walker.index("pelvis_ty")] = 3.0
    np.testing.assert_allclose(root_force(walker, walker.rest[None], residual), [[0, 3.0, 0]])


def test_a_generic_model_is_brought_to_the_size_of_the_clip(human_motion):
    """A model that nobody scaled, and a file that hangs both plates on one foot."""
    folder = "addbiomechanics_subject4"
    person = read_osim(human_motion(f"{folder}/unscaled_generic.osim"))
    clip = load_clip(human_motion(f"{folder}/walking2.trc"))
    wrenches = read_loads(human_motion(f"{folder}/walking2_external_forces.xml"))
    raw = analyse(person, clip, ())
    a = analyse(person, clip, wrenches, calibrate_by=[clip])
    rms = [np.sqrt(np.nanmean(x.fit.rms**2)) for x in (raw, a)]
    assert rms[1] < 0.008 < 0.03 < rms[0]
    assert any("calibrated: segments" in w for w in a.warnings)
    assert any("left stands there" in w for w in a.warnings) and a.explained.sum() > 100
    assert a.person.mass == pytest.approx(person.mass)


def test_frames_without_markers_have_no_moments(analysis, recording, walker):
    """They are filled in for the angles: moments of made-up postures were thousands of N m."""
    clip, wrenches, tasks = recording
    positions = clip.positions.copy()
    middle = int(np.flatnonzero(analysis.explained)[analysis.explained.sum() // 2])
    hidden = slice(middle - 5, middle + 5)
    positions[hidden] = np.nan
    a = analyse(walker, replace(clip, positions=positions), wrenches, tasks)
    assert np.isnan(a.tau[hidden]).all() and a.explained.sum() > 0
    assert any(f"10 of {clip.n_frames} frames show fewer than" in w for w in a.warnings)


def test_the_share_of_the_clip_that_is_followed_is_said(recording, walker):
    clip, _, tasks = recording
    extra = replace(
        clip,
        labels=(*clip.labels, "camera_rod"),
        positions=np.concatenate([clip.positions, clip.positions[:, :1]], axis=1),
    )
    said = [w for w in analyse(walker, extra, (), tasks).warnings if "labels are followed" in w]
    assert len(said) == 1 and "camera_rod" in said[0] and f"of {len(extra.labels)} labels" in said[0]


def test_markers_that_the_task_set_does_not_name_are_not_followed(small_person, tmp_path):
    path = tmp_path / "setup.xml"
    path.write_text(
        '<OpenSimDocument Version="30000"><InverseKinematicsTool><IKTaskSet><objects><IKMarkerTask name="m"><weight>2'
        "</weight></IKMarkerTask></objects></IKTaskSet></InverseKinematicsTool></OpenSimDocument>"
    )
    tasks = read_ik_setup(path, small_person())
    assert tasks.others == 0.0 and tasks.markers == {"m": 2.0}


def test_a_root_that_cannot_move_freely_gives_angles_alone(small_person):
    """A planar root: its residual is no force and moment."""
    whole = small_person()
    root = whole.joints[0]
    planar = replace(root, rotations=root.rotations[:1], translations=root.translations[:2])
    kept = {a.coordinate for a in (*planar.rotations, *planar.translations)} | {"k", "l"}
    places = [
        ("trunk", (0.1, 0.3, 0.0)),
        ("trunk", (-0.1, 0.3, 0.1)),
        ("trunk", (0, -0.2, 0.1)),
        ("shank", (0, -0.4, 0)),
    ]
    person = small_person(
        joints=(planar, whole.joints[1]),
        all_coordinates=tuple(c for c in whole.all_coordinates if c.name in kept),
        markers=tuple(Marker(f"m{k}", body, np.array(p)) for k, (body, p) in enumerate(places)),
    )
    q = np.tile(person.rest, (60, 1))
    R, p = person.body_poses(q)
    at = [(person.body_index(m.body), np.asarray(m.place)) for m in person.markers]
    positions = np.stack([p[:, b] + R[:, b] @ place for b, place in at], axis=1)
    clip = MarkerClip("planar", tuple(m.name for m in person.markers), 100.0, positions, "test")
    zeros = np.zeros((60, 3))
    wrench = MeasuredWrench("plate", clip.times, zeros, zeros, np.array([0.0, 1, 0]), np.zeros(3))
    a = analyse(person, clip, [wrench])
    assert np.isnan(a.tau).all()
    assert any("has 3 coordinates: moments need 6, so only angles are computed" in w for w in a.warnings)
