"""`humanoid bench walk`: its rows, from walks that are made up and from real ones that are kept. A second in all."""

import json

import numpy as np
import pytest

from evidence.benchmarks import walk
from evidence.benchmarks.page import markdown_page
from evidence.studies.walking.trial import WalkOutcome
from humanoid_control.cli.main import main

NAMES = [
    "tick_ms", "real_time_factor", "lola_speed", "hrp2_speed", "wabian2_speed", "suralp_speed", "lola_steps_500",
    "lola_push_worst_ns", "hrp2_push_worst_ns", "slope_deg", "stair_m", "odometry_percent",
    "foot_torque_reduction_percent",
]  # fmt: skip


@pytest.fixture
def walks(monkeypatch):
    """Walks that end in no time: robots fall above 0.55 m/s, after 15 N s to the left, 10 deg down, on 0.1 m stairs."""
    done = []

    def made_up(case, steps, seed, pushes=(), watch=None):
        done.append((case.robot, case.velocity[0], steps))
        left = max((p.force[1] * p.duration for p in pushes), default=0.0)
        steep = case.ground in ("plane:slope=-10", "stairs:rise=0.1,run=0.35,start=0.6")
        fell = case.velocity[0] > 0.55 or left > 14.9 or steep
        return WalkOutcome(
            "tilted" if fell else "", steps, 20.0, velocity=np.array([0.9 * case.velocity[0], 0.0, 0.0]), odometry=0.01,
            real_time_factor=3.0, tick=(5e-4, 1e-3),
        )  # fmt: skip

    monkeypatch.setattr(walk, "walk_once", made_up)
    return done


def test_rows_are_the_last_that_was_walked_and_say_what_was_left_out(walks, tmp_path):
    keep = str(tmp_path / "trials")
    rows = {r["name"]: r for r in walk.measure(quick=True, keep=keep)}
    assert list(rows) == NAMES
    assert rows["tick_ms"]["median"] == 0.5 and rows["tick_ms"]["p99"] == 1.0
    assert rows["lola_speed"]["median"] == 0.45 and rows["lola_speed"]["n"] == 2, "0.5 m/s, and the fall at 0.667"
    assert rows["suralp_speed"]["median"] == 0.36, "the whole ladder"
    assert rows["lola_push_worst_ns"]["median"] == 10.0, "a fall in one direction of four is one"
    assert (rows["slope_deg"]["median"], rows["stair_m"]["median"]) == (8.0, 0.08), "not the one where one way fails"
    assert rows["lola_steps_500"]["median"] == "not tried"
    assert rows["odometry_percent"]["median"] == 1.0
    count = len(walks)
    again = walk.measure(quick=True, keep=keep)
    assert len(walks) == count, "what is kept is not walked again"
    assert [r["median"] for r in again[:-1]] == [r["median"] for r in rows.values()][:-1]
    notes = walk.notes(again)
    result = {"bench": "walk", "rows": again, "notes": notes, "date": "", "machine": {
        "cpu": "", "cores": 1, "system": "", "versions": {}, "python": ""}}  # fmt: skip
    page = markdown_page([json.loads(json.dumps(result))])
    assert "| lola_steps_500 |  | not tried |" in page


def test_the_torque_about_the_vertical_is_that_at_the_centre_of_pressure():
    """A force at p gives p x f about the middle of the sole; what is left about the normal is the torque there."""
    rng = np.random.default_rng(3)
    f, p = np.array([20.0, -10.0, 500.0]), np.array([*rng.uniform(-0.05, 0.05, 2), 0.0])
    wrench = np.concatenate([f, np.cross(p, f) + [0.0, 0.0, 7.0]])
    assert walk.turning_torque({"l_foot": wrench, "r_foot": np.zeros(6)}) == pytest.approx(7.0, abs=1e-9)


def test_a_folder_that_cannot_be_is_one_line(capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert main(["bench", "walk", "--quick", "--keep", str(file)]) == 2
    assert "folder of trials" in capsys.readouterr().err
