"""The rows of the person's benchmark, on public recordings."""

import numpy as np
import pytest

from evidence.benchmarks.motion import reaching
from evidence.benchmarks.motion.person import COLUMNS, REACHES, measure, notes
from evidence.benchmarks.motion.reaching import tasks as reaching_tasks
from humanoid_control.errors import EnvironmentProblem


@pytest.mark.nightly
def test_rows_are_what_a_reader_compares(model_file, monkeypatch):
    folder = model_file("human_motion/rajagopal_walk/motion_capture_walk.trc").parents[2]
    monkeypatch.setenv("HUMANOID_TEST_DATA", str(folder))
    monkeypatch.setattr(reaching, "tasks", lambda: dict.fromkeys(REACHES[:3], reaching_tasks()["swing_2_ms"]))
    found = measure(rounds=1)
    rows = {row["name"]: row for row in found}
    assert all(set(COLUMNS) <= set(row) for row in found)
    assert any("best of ten starts" in note for note in notes(found))
    peers = [rows.pop(name) for name in list(rows) if name.startswith("opensim")]
    rows.pop(REACHES[3], None)  # of a peer that need not be there
    assert all(row["ours_not_dearer_percent"] == 100 for row in peers)
    names = {"fit_walk_fps", "fit_run_fps", "fit_gait2354_fps", "calibrate_s", "inverse_dynamics_us", "weighted_us"}
    assert set(rows) == names | {"fit_46_fps", "analyse_s", "reach_5_ms", "reach_7_ms", "mtc_4_ms"}
    assert all(np.isfinite(rows[name]["gap_percent"]) for name in REACHES[:3])
    assert all(row["median"] > 0 and row["n"] == 1 for row in rows.values())
    assert rows["inverse_dynamics_us"]["median"] < rows["weighted_us"]["median"] < 1000


def test_without_the_recordings_it_says_so(monkeypatch):
    monkeypatch.delenv("HUMANOID_TEST_DATA", raising=False)
    with pytest.raises(EnvironmentProblem, match="HUMANOID_TEST_DATA"):
        measure()
