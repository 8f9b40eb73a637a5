"""`humanoid analyse`: files that OpenSim's readers and ours read again, a page that needs nothing else, or one line."""

import json
import re

import numpy as np
import pytest

from humanoid_control.human import read_osim
from humanoid_control.human.forces.loads import read_loads, read_storage

WALK = "human_motion/rajagopal_walk"


@pytest.fixture(scope="module")
def words(model_file):
    """Words of the command for an overground walk."""
    files = {
        "--model": "computed_opensim46/subject_scaled_walk.osim",
        "--forces": "grf_walk.xml",
        "--setup": "ik_setup_walk.xml",
    }
    options = [w for option, name in files.items() for w in (option, str(model_file(f"{WALK}/{name}")))]
    return ["analyse", str(model_file(f"{WALK}/motion_capture_walk.trc")), *options]


@pytest.fixture(scope="module")
def analysed(words, humanoid_once):
    result = humanoid_once(*words, "--json", "-o", "walk")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), humanoid_once.folder / "walk", humanoid_once


@pytest.mark.nightly
def test_every_file_is_there_and_is_read_again(analysed, words):
    told, folder, _ = analysed
    person = read_osim(words[words.index("--model") + 1])
    assert told == json.loads((folder / "report.json").read_text())
    angles, moments = read_storage(folder / "angles.mot"), read_storage(folder / "torques.sto")
    arrays = np.load(folder / "motion.npz")
    assert angles.in_degrees and len(angles.times) == told["frames"] == 238
    k = person.index("knee_angle_r")
    np.testing.assert_allclose(
        angles.values[:, angles.labels.index("knee_angle_r")], np.rad2deg(arrays["q"][:, k]), atol=1e-6
    )
    beta = angles.values[:, angles.labels.index("knee_angle_r_beta")]  # follows the knee
    np.testing.assert_allclose(beta, np.rad2deg(arrays["q"][:, k]), atol=1e-6)
    known = np.isfinite(arrays["tau"]).all(axis=1)
    assert known.sum() == told["frames_with_moments"] == len(moments.times)
    column = moments.values[:, moments.labels.index("knee_angle_r_moment")]
    np.testing.assert_allclose(column, arrays["tau"][known, k], atol=1e-6)
    again = {w.name: w for w in read_loads(folder / "forces.mot")}
    assert len(again) == 2
    before = {w.name: w for w in read_loads(words[words.index("--forces") + 1])}
    ours = max(float(w.normal_force.max()) for w in again.values())
    assert ours == pytest.approx(max(float(w.normal_force.max()) for w in before.values()), rel=1e-3)
    rows = (folder / "motion.csv").read_text().splitlines()
    assert len(rows) == 239 and rows[0].startswith("time_s,pelvis_tilt_deg")


def test_the_page_needs_nothing_else_and_says_how_it_was_made(analysed):
    _, folder, _ = analysed
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == 5
    assert not re.search(r'(src|href)="https?:', page) and "humanoid analyse" in page
    assert "of the weight as measured" in page and "have no moments" in page


@pytest.mark.nightly
def test_a_motion_is_tracked_forward_by_its_forces(words, humanoid):
    result = humanoid(*words, "--track", "--json", "-o", "tracked")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)["tracking"]
    folder = humanoid.folder / "tracked"
    angles, moments = read_storage(folder / "tracked_angles.mot"), read_storage(folder / "tracked_torques.sto")
    assert len(angles.times) == len(moments.times) > 150 and np.isfinite(moments.values).all()
    for name in ("pelvis_tx", "pelvis_ty", "pelvis_tz"):
        assert told["residual"][name]["after"] < 0.1 * told["residual"][name]["before"], name
    assert told["error_deg"] < 0.5 and told["error_m"] < 0.01 and 0.95 < told["mass_factor"] < 1.05
    measured = read_storage(folder / "angles.mot")
    knee = measured.labels.index("knee_angle_r")
    at = np.interp(angles.times, measured.times, measured.values[:, knee])
    assert np.abs(angles.values[:, knee] - at).max() < 2.0
    page = (folder / "report.html").read_text()
    assert "Forward tracking with the measured forces" in page
    assert f">{round(told['residual']['pelvis_ty']['after'], 3):g}<" in page, "the number itself"
    off = angles.values[:, angles.labels.index("pelvis_tilt")]
    off = off - np.interp(angles.times, measured.times, measured.values[:, measured.labels.index("pelvis_tilt")])
    assert told["root_off"]["pelvis_tilt"] == pytest.approx(np.sqrt((off**2).mean()), rel=0.01)
    result = humanoid(*words, "--track")
    assert result.returncode == 0 and "forward tracking with the measured forces" in result.stdout


@pytest.mark.nightly
def test_plug_in_gait_beside_us_is_printed_and_on_the_page(model_file, humanoid):
    clip = str(model_file("mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d"))
    result = humanoid("analyse", clip, "--plug-in-gait", "--json", "-o", "beside")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["mass_kg"] == pytest.approx(66.5), "what the file states, not what plates say"
    knee = next(r for r in told["plug_in_gait"] if (r["quantity"], r["side"]) == ("knee flexion", "right"))
    assert knee["rms"] < 5.0 == knee["asked"]
    page = (humanoid.folder / "beside/report.html").read_text()
    assert "Compared with Plug-in Gait" in page and f">{knee['rms']:g}<" in page
    result = humanoid("analyse", clip, "--plug-in-gait")
    assert result.returncode == 0 and "compared with Plug-in Gait" in result.stdout


@pytest.mark.nightly
def test_a_folder_with_files_is_not_written_into_unless_asked(analysed, words):
    _, folder, humanoid = analysed
    (folder / "report.html").write_text("mine")
    result = humanoid(*words[:4], "-o", "walk")
    assert result.returncode == 2 and "is not empty" in result.stderr
    assert (folder / "report.html").read_text() == "mine"
    result = humanoid(*words[:4], "-o", "walk", "--force")
    assert result.returncode == 0 and (folder / "report.html").read_text() != "mine"
    assert "no forces given" in result.stderr


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        (["--mass", "0.1"], "mass"),
        (["--cutoff", "70"], "between 0 and 50|below 50"),
        (["--offset", "99"], "no time in common"),
    ],
)
def test_what_makes_no_sense_is_one_line(words, humanoid, more, answer):
    result = humanoid(*words, *more, "-o", "out")
    assert result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1
    assert re.search(answer, result.stderr)
    assert not list(humanoid.folder.glob("out/*"))


@pytest.fixture(scope="module")
def by_our_person(model_file, humanoid_once):
    """A walk without a model, and the same markers on two robots."""
    trc, grf = (str(model_file(f"{WALK}/{name}")) for name in ("motion_capture_walk.trc", "grf_walk.xml"))
    result = humanoid_once("analyse", trc, "--forces", grf, "--robots", "lola,armar3", "--json", "-o", "own")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), humanoid_once.folder / "own"


def test_without_a_model_it_is_a_person_of_our_own(by_our_person):
    told, folder = by_our_person
    assert told["coordinates"] == 47 and told["marker_rms_mm"] < 6
    assert told["mass_kg"] == pytest.approx(85.07, rel=0.02) and told["frames_with_moments"] > 100
    assert any("opensim_walk" in w for w in told["warnings"]) and told["guesses"] == []
    person = read_osim(folder / "model.osim")
    angles, arrays = read_storage(folder / "angles.mot"), np.load(folder / "motion.npz")
    assert set(person.names) == set(arrays["coordinates"]) and person.mass == pytest.approx(told["mass_kg"])
    k = list(arrays["coordinates"]).index("knee_angle_r")
    np.testing.assert_allclose(
        angles.values[:, angles.labels.index("knee_angle_r")], np.rad2deg(arrays["q"][:, k]), atol=1e-6
    )
    assert "<mimic" in (folder / "model.urdf").read_text() and any("hinge" in w for w in told["urdf"])


def test_the_same_markers_on_robots_stand_beside(by_our_person):
    told, folder = by_our_person
    assert [row["name"] for row in told["robots"]] == ["person", "lola", "armar3"]
    rows = (folder / "robot_lola.csv").read_text().splitlines()
    assert len(rows) == 239 and rows[0].startswith("time,") and "l_knee_flexion" in rows[0]
    page = (folder / "report.html").read_text()
    assert "The same markers on robots" in page and 'class="guess"' not in page


@pytest.mark.nightly
def test_a_mass_that_nobody_measured_is_in_red_on_the_page(humanoid):
    result = humanoid("analyse", "dance", "--json", "-o", "dance")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["mass_kg"] == pytest.approx(75.0) and "75 kg is assumed" in told["guesses"][0]
    page = (humanoid.folder / "dance" / "report.html").read_text()
    assert 'class="guess">The mass is unknown' in page


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        (["--markers", "ior"], "0 of its labels"),
        (["--stature", "170"], "0.4 to 2.6 m"),
        (["--model", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_our_person_cannot_be_is_one_line(humanoid, more, answer):
    result = humanoid("analyse", "dance", *more, "-o", "out")
    assert result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1
    assert re.search(answer, result.stderr) and not list(humanoid.folder.glob("out/*"))


def test_options_of_our_person_beside_an_opensim_model_are_refused(words, humanoid):
    result = humanoid(*words, "--sex", "women")
    assert result.returncode == 2 and "--sex applies to the built-in person model" in result.stderr
