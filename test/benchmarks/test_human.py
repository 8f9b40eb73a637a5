"""The rows of the person's benchmark, on public recordings."""

import pytest

from humanoid_control.benchmarks.motion.person import measure
from humanoid_control.errors import EnvironmentProblem


def test_rows_are_what_a_reader_compares(model_file, monkeypatch):
    folder = model_file("human_motion/rajagopal_walk/motion_capture_walk.trc").parents[2]
    monkeypatch.setenv("HUMANOID_TEST_DATA", str(folder))
    rows = {row["name"]: row for row in measure(rounds=1)}
    peers = [rows.pop(name) for name in list(rows) if name.startswith("opensim")]
    assert all(row["ours_not_dearer_percent"] == 100 for row in peers)
    names = {"fit_walk_fps", "fit_run_fps", "calibrate_s", "inverse_dynamics_us", "weighted_us"}
    assert set(rows) == names | {"fit_46_fps", "analyse_s"}
    assert all(row["median"] > 0 and row["n"] == 1 for row in rows.values())
    assert rows["inverse_dynamics_us"]["median"] < rows["weighted_us"]["median"] < 1000


def test_without_the_recordings_it_says_so(monkeypatch):
    monkeypatch.delenv("HUMANOID_TEST_DATA", raising=False)
    with pytest.raises(EnvironmentProblem, match="HUMANOID_TEST_DATA"):
        measure()
