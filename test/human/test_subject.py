"""Who was recorded: template by the labels, size by the markers, mass by the plates; of made and of real recordings."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.human import AnalysisSettings
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.human.models import (
    TEMPLATES,
    SubjectSettings,
    analyse_subject,
    find_subject,
    find_template,
    own_person,
    read_template,
)
from humanoid_control.human.models.marker_template import load_template
from humanoid_control.human.models.person_file import find_person_file
from humanoid_control.human.models.subject import centre_of_mass, mass_by_forces
from humanoid_control.mocap import MarkerClip, load_clip

G = 9.80665
RATE = 100.0


def sway(person, seconds=3.0, seed=3):
    """q (T, n) of somebody who moves all joints smoothly on the spot."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    q = np.tile(person.rest, (len(t), 1))
    for k, c in enumerate(person.coordinates):
        size = 0.02 if not c.rotational else min(0.3, 0.3 * (c.upper - c.lower)) if np.isfinite(c.upper) else 0.1
        q[:, k] += size * np.sin(2 * np.pi * rng.uniform(0.3, 0.9) * t + rng.uniform(0, 6))
        q[:, k] = np.clip(q[:, k], c.lower, c.upper)
    return q


def clip_of(person, q, noise=0.0, name="made"):
    x = person.marker_positions(q) + noise * np.random.default_rng(5).standard_normal((len(q), len(person.markers), 3))
    return MarkerClip(name, tuple(m.name for m in person.markers), RATE, x, "made")


def plate_under(person, q, mass):
    """A plate that carries the whole person: m (g + a) along y, by finite differences of the centre of mass."""
    com = centre_of_mass(person, q)
    a = np.gradient(np.gradient(com, 1 / RATE, axis=0), 1 / RATE, axis=0)
    force = mass * (a + [0, G, 0])
    times = np.arange(len(q)) / RATE
    return MeasuredWrench("plate", times, force, np.cross(com, force), np.array([0, 1.0, 0]), np.zeros(3))


# -------- Templates


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_sits_on_the_person_and_is_found_by_its_own_labels(name):
    template = load_template(name)
    labels = [row.label for row in template.rows]
    clip = MarkerClip("c", tuple(labels), RATE, np.zeros((2, len(labels), 3)), "made")
    found = find_template(clip)
    assert found.template.name == name and not found.unknown and len(found.found) == len(labels)
    person = own_person(markers=name).person
    x = dict(zip(labels, person.marker_positions(person.rest)[0], strict=True))
    pairs = [(r, x[r.label]) for r in template.rows if (r.landmark or r.body).endswith("_r")]
    for row, place in pairs:
        assert place[2] > 0, f"{row.label} of {name} is on the right"
    assert len(person.markers) == len(labels)


def test_labels_of_real_files_are_told_apart(model_file):
    expected = {
        "mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d": ("plug_in_gait", 35, 0),
        "mocap/vicon_c3d/shd01.c3d": ("plug_in_gait", 27, 0),
        "mocap/dance_markers/btk_T_pose.trc": ("cmu41", 41, 0),
        "mocap/dance_markers/walk1.trc": ("dance28", 28, 0),
        "human_motion/rajagopal_walk/motion_capture_walk.trc": ("opensim_walk", 41, 0),
        "human_motion/rajagopal_run/motion_capture_run.trc": ("rajagopal", 42, 0),
        "human_motion/gait2354_walk/subject01_walk1.trc": ("opensim_gait2354", 41, 0),
        "human_motion/addbiomechanics_subject4/walking2.trc": ("opencap", 49, 0),
    }
    for path, told in expected.items():
        match = find_template(load_clip(model_file(path)))
        assert (match.template.name, len(match.found), len(match.unknown)) == told, path
    assert "78 computed points" in find_template(load_clip(model_file(next(iter(expected))))).sentence()


def test_what_is_not_known_is_said():
    def clip(*labels):
        return MarkerClip("c", labels, RATE, np.zeros((2, len(labels), 3)), "made")

    pig = ("RASI", "LASI", "RPSI", "LPSI", "RKNE", "LKNE", "RANK")
    match = find_template(clip(*pig, "HELMET"))
    assert match.unknown == ("HELMET",) and "ignored: HELMET" in match.sentence()
    with pytest.raises(HumanoidError, match=r"no known marker set .*--model"):
        find_template(clip("a", "b", "c"))
    with pytest.raises(HumanoidError, match="two subjects"):
        find_template(clip(*(f"{s}:{n}" for s in ("Anna", "Otto") for n in pig)))
    with pytest.raises(HumanoidError, match="did you mean cmu41"):
        find_template(clip(*pig), "cmu_41")
    with pytest.raises(HumanoidError, match="0 of its labels"):
        find_template(clip(*pig), "ior")


def test_a_set_that_knows_few_of_the_labels_must_be_named(model_file):
    """Names such as L.Knee mean a place of their own in another lab: 16 of 37, or 8 of 26, tell no marker set."""
    for path, name, share in (
        ("human_motion/force_plates/type4_upside_down.c3d", "opensim", "16 of 37"),
        ("mocap/c3d_encodings/Eb015pi.c3d", "rajagopal", "8 of 26"),
    ):
        clip = load_clip(model_file(path))
        with pytest.raises(HumanoidError, match=rf"{name}\w* knows {share} .*--markers {name}"):
            find_template(clip)
        assert find_template(clip, "rajagopal" if name == "rajagopal" else "opensim_walk").unknown
    pig = [row.label for row in load_template("plug_in_gait").rows]
    ghosts = [f"*{k}" for k in range(100)]
    x = np.zeros((200, len(pig) + len(ghosts), 3))
    x[10:, len(pig) :] = np.nan
    clip = MarkerClip("c", (*pig, *ghosts), RATE, x, "made")
    assert find_template(clip).template.name == "plug_in_gait", "unnamed trajectories that are seen for a moment"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("markers: [[asis, A, B]]", "lacks the key 'about'"),
        ("about: mine\nmarkers: [[asis]]", "a marker is"),
        ("about: mine\nmarkers: [[asis, A, A]]", "occurs more than once"),
        ("about: mine\nmarkers: [{body: femur}]", "lacks the key 'labels'"),
        ("about: mine\nmarkers: [{body: femur, labels: [a, b, c]}]", "one, or a right and a left"),
        ("about: mine\nmarkers: []", "lists no markers"),
    ],
)
def test_a_template_that_is_wrong_is_told(text, told, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"schema: humanoid_markers/1\n{text}\n")
    with pytest.raises(HumanoidError, match=told):
        read_template(path)


def test_a_template_of_a_place_that_the_model_lacks(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("schema: humanoid_markers/1\nabout: mine\nmarkers: [[asiss, A, B]]\n")
    with pytest.raises(HumanoidError, match="did you mean asis_r"):
        read_template(path).markers(find_person_file("person"))


# -------- Size and mass


@pytest.mark.parametrize(("stature", "axes"), [(1.55, "y"), (1.95, "z")])
def test_size_and_mass_of_a_made_person_are_found_again(stature, axes):
    truth = own_person(stature, 60.0, markers="rajagopal")
    q = sway(truth.person)
    clip, plate = clip_of(truth.person, q, 0.002), plate_under(truth.person, q, 60.0)
    if axes == "z":
        R = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
        clip, plate = replace(clip, positions=clip.positions @ R.T), plate.rotated(R)
    found = find_subject(clip, [plate])
    assert found.match.template.name == "rajagopal" and not found.guesses
    assert found.stature == pytest.approx(stature, abs=0.01)
    assert found.person.mass == pytest.approx(60.0, rel=0.01)
    assert np.sqrt(np.mean(found.calibration.after.rms**2)) < 0.004
    a = analyse_subject(found, clip)
    knee = a.fit.q[:, a.person.index("knee_angle_r")]
    assert np.sqrt(np.mean((knee - q[:, truth.person.index("knee_angle_r")]) ** 2)) < np.deg2rad(1.5)


def test_without_forces_the_mass_is_a_guess_that_is_told():
    person = own_person(1.7, markers="dance28").person
    clip = clip_of(person, sway(person, 1.0))
    found = find_subject(clip)
    assert found.person.mass == pytest.approx(75.0) and "75 kg is assumed" in found.guesses[0]
    a = analyse_subject(found, clip, settings=AnalysisSettings())
    assert a.guesses == found.guesses and any("dance28" in w for w in a.warnings)
    assert find_subject(clip, settings=SubjectSettings(mass=60.0)).guesses == ()
    with pytest.raises(HumanoidError, match="is implausible"):
        find_subject(clip, settings=SubjectSettings(stature=170.0))


def test_mass_where_a_foot_often_stands_beside_the_plate():
    t = np.arange(0, 4, 1 / RATE)
    gravity = G + 2.0 * np.sin(2 * np.pi * 1.8 * t)
    share = np.where((t > 1.0) & (t < 1.8), 1.0, 0.55 + 0.1 * np.sin(2 * np.pi * t))
    mass, frames = mass_by_forces(70.0 * share * gravity, gravity, RATE)
    assert mass == pytest.approx(70.0, rel=1e-3) and frames == pytest.approx(80, abs=2)
    assert mass_by_forces(np.zeros(100), np.full(100, G), RATE) == (None, 0)
    assert mass_by_forces(np.where(np.arange(100) < 10, 700.0, 0.0), np.full(100, G), RATE) == (None, 0)


def test_a_bad_marker_in_some_frames_does_not_shape_the_person():
    truth = own_person(1.7, markers="rajagopal").person
    q = sway(truth)
    clip = clip_of(truth, q)
    x = clip.positions.copy()
    k = clip.index("RMFC")
    x[100:140, k] += [0.0, 0.1, 0.1]
    found = find_subject(replace(clip, positions=x))
    places = {m.name: m.place for m in found.person.markers}
    home = {m.name: m.place for m in truth.markers}
    assert np.linalg.norm(places["RMFC"] - home["RMFC"]) < 0.006


@pytest.mark.parametrize(
    ("clip", "forces", "mass", "rms"),
    [
        ("rajagopal_walk/motion_capture_walk.trc", "rajagopal_walk/grf_walk.xml", 85.07, 6.0),
        ("gait2354_walk/subject01_walk1.trc", "gait2354_walk/subject01_walk1_grf.xml", 72.6, 6.0),
        ("rajagopal_run/motion_capture_run.trc", "rajagopal_run/grf_run.xml", 72.6, 6.5),
    ],
)
def test_real_people_weigh_what_their_models_say(clip, forces, mass, rms, human_motion):
    """Masses of the subjects by OpenSim's models: within 2.5 %; markers to millimetres without these."""
    recorded, wrenches = load_clip(human_motion(clip)), read_loads(human_motion(forces))
    found = find_subject(recorded, wrenches)
    assert found.person.mass == pytest.approx(mass, rel=0.025)
    a = analyse_subject(found, recorded, wrenches)
    assert 1e3 * np.sqrt(np.nanmean(a.fit.rms**2)) < rms
    e = a.explained
    assert e.mean() > 0.5
    tilt = a.residual_before[e][:, a.root.index(a.person.index("pelvis_tilt"))].mean()
    assert abs(tilt) < 10.0, "the centre of mass lies where the plates want it"


def test_a_static_trial_of_somebody_else_is_refused(model_file):
    clip, static = (
        load_clip(model_file(f"mocap/vicon_c3d/PiG_{n}.c3d"))
        for n in ("Motion-FlatFoot-One", "Calibration-FlatFoot-Full")
    )
    with pytest.raises(HumanoidError, match=r"different people: one is 1\.\d+ times as large"):
        find_subject(clip, (), static)


def test_a_static_trial_may_have_more_markers(human_motion):
    recorded = load_clip(human_motion("rajagopal_walk/motion_capture_walk.trc"))
    static = load_clip(human_motion("rajagopal_walk/static_walk_1.trc"))
    found = find_subject(recorded, (), static, SubjectSettings(mass=85.0))
    assert {"R.MKnee", "L.MAnkle"} <= {m.name for m in found.person.markers}
    assert found.stature == pytest.approx(1.83, abs=0.05)
