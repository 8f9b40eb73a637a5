"""The study of human motion: verdicts by their rules, recordings that are missing, outcomes that are kept."""

import json

import pytest

from evidence.studies.report import FAILS, HOLDS, OPEN
from evidence.studies.simonidis2011 import report
from evidence.studies.simonidis2011.controllers import CASES, swing_arm
from evidence.studies.simonidis2011.recordings import RECORDINGS, fewer_joints, map_markers
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.human import read_osim
from test.conftest import DATA


def arm_rows(**errors):
    """Outcomes of the controllers, with other errors [deg] of some cases with 2 kg."""
    rows = []
    for case in CASES:
        for payload in (0.0, 2.0):
            own = errors.get(case, 0.01 if payload == 0 else 0.015) if payload else 0.01
            radius, limit = (1.7, 1.0) if (case, payload) == ("heavy", 0.0) else (0.6, 0.0)
            rows.append({"case": case, "payload_kg": payload, "error_deg": own, "at_limit": limit, "radius": radius})
    return {"R5": rows}


def plate_rows(drift=1.0, last=0.0):
    rows = []
    for k, w in enumerate((1e5, 1e4, 1.0)):
        off = drift if w == 1.0 else 1.0
        falls = {"corrected_n": 30.0 / (k + 1), "corrected_nm": 9.0 / (k + 1) + (last if w == 1.0 else 0.0)}
        rows.append({"variance": w, "weight_n": 700.0, "error_mm": off, "error_deg": off, **falls})
    return {"R4": [{"clip": "walk", "rows": rows}]}


def test_verdicts_follow_their_rules():
    parts = {"R5"}
    good = report.judge(arm_rows(computed=9.0, whole=3.0, encoders=9.0), parts)
    assert good == {"R5": HOLDS, "R5 radius": HOLDS, "R5 sensing": FAILS, "R5 relaxed": HOLDS, "H5": HOLDS}
    assert report.judge(arm_rows(computed=0.1), parts)["R5"] == FAILS
    assert report.judge(arm_rows(computed=9.0, recursive=0.06), parts)["R5"] == FAILS
    assert report.judge(arm_rows(computed=9.0, recursive=0.03), parts)["H5"] == FAILS
    assert report.judge(arm_rows(relaxed=0.3), parts)["R5 relaxed"] == FAILS
    assert report.judge(plate_rows(), {"R4"}) == {"R4": HOLDS, "R4 drift": HOLDS}
    assert report.judge(plate_rows(drift=2.5), {"R4"}) == {"R4": HOLDS, "R4 drift": FAILS}
    assert report.judge(plate_rows(last=5.0), {"R4"})["R4"] == FAILS
    rows = [{"clip": "walk", "free": 24, "converged": 1.0, "rms_mm": 7.0}]
    assert report.judge({"R1": rows}, {"R1"})["R1"] == HOLDS
    rows.append({**rows[0], "converged": 0.99})
    assert report.judge({"R1": rows}, {"R1"})["R1"] == FAILS


def test_what_lacks_its_recordings_is_left_open_and_the_rest_is_tried(tmp_path):
    verdicts = report.judge({}, {"R1", "R4", "R6", "R7"})
    assert set(verdicts.values()) == {OPEN}
    assert report.list_jobs(tmp_path, {"R1", "R4", "R6", "R7"}) == []
    assert len(report.list_jobs(tmp_path, set(report.PARTS))) == 2 * len(CASES)
    with pytest.raises(UnknownNameError, match="R5"):
        report.run_study(only=["R55"])
    with pytest.raises(ConfigError, match="folder not found"):
        report.run_study(data=tmp_path / "nowhere")


def test_what_is_kept_is_not_tried_again(tmp_path):
    kept = tmp_path / "kept.jsonl"
    rows = [
        {"job": json.dumps(["R5", r["case"], r["payload_kg"]]), "outcome": r}
        for r in arm_rows(computed=9.0, whole=3.0, encoders=9.0)["R5"]
    ]
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = report.run_study(data=tmp_path, only=["R5"], workers=1, resume=kept)
    assert found.data["outcomes"]["R5"][0]["error_deg"] == 0.01 and found.data["verdicts"]["R5"] == HOLDS
    found.write(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "human.json").read_text())["verdicts"]["H5"] == HOLDS


@pytest.mark.nightly
def test_an_arm_with_a_payload_is_tracked_by_the_recursive_controller():
    """Numbers of test/simulation/test_torque_control.py, by the study."""
    computed, recursive = swing_arm("computed", 2.0), swing_arm("recursive", 2.0)
    assert recursive["error_deg"] <= 0.05 < computed["error_deg"] / 50 and recursive["at_limit"] == 0
    assert 0.5 < recursive["radius"] < 0.7


@pytest.mark.nightly
def test_one_marker_set_fits_a_model_with_fewer_joints():
    data, clip = DATA / "human_motion", RECORDINGS["walk"]
    if not (data / clip.clip).is_file():
        pytest.skip(f"needs {data / clip.clip}: set HUMANOID_TEST_DATA to the folder that holds human_motion/")
    person = read_osim(data / clip.model)
    simple = fewer_joints(person, 24)
    assert sum(not c.locked for c in simple.coordinates) <= 24 < sum(not c.locked for c in person.coordinates)
    found = map_markers(str(data), "walk", True)
    assert found["converged"] == 1 and found["rms_mm"] < 20 and found["free"] <= 24
