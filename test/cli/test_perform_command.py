"""`humanoid perform` and `humanoid retarget --feasible` as a user runs them."""

import json

import numpy as np
import pytest

from humanoid_control.cli.main import main
from humanoid_control.performing import DynamicMotion
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Two seconds of a person who walks, as a file."""
    from test.dance_library import write_library

    return next(write_library(tmp_path_factory.mktemp("clips") / "lib", 1, 200).rglob("*.trc"))


@pytest.mark.nightly
def test_a_robot_performs_a_clip_and_its_motion_is_written(clip, tmp_path, capsys):
    out = tmp_path / "motion.npz"
    code = main(["perform", str(clip), "--robot", "hrp2", "--no-noise", "--pace", "1", "-o", str(out), "--json"])
    told = json.loads(capsys.readouterr().out)
    (row,) = told["rows"]
    assert code == (0 if row["survived"] else 3) and row["robot"] == "hrp2" and row["engine"] == "multibody"
    assert {"steps", "made", "placed", "on_beat", "slip_mm", "tick_ms", "feasibility"} <= {*row}
    assert DynamicMotion.read(out).robot == "hrp2"


def test_a_robot_that_falls_is_exit_code_3_with_its_row(clip, capsys):
    """A push that nobody stands."""
    code = main(["perform", str(clip), "--robot", "hrp2", "--open-loop", "--push", "300", "--speed", "0.5", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert code == 3 and not row["survived"] and row["why"] and 3.0 < row["fell_s"] < 6.0
    assert row["seconds"] > 8.0, "two seconds of the clip last four, between two ends of 1.5 s and eased starts"


def test_feasible_files_hold_forces_and_the_table_says_what_was_changed(clip, tmp_path, capsys):
    out = tmp_path / "m.npz"
    line = ["retarget", str(clip), "--robot", "hrp2", "--whole-body", "--feasible", "--pace", "1", "-o", str(out)]
    assert main([*line, "--format", "dynamic"]) == 0
    words = capsys.readouterr().out
    assert "feasibility" in words and "written" in words
    motion = DynamicMotion.read(out)
    assert motion.forces.shape == (len(motion), 8, 3) and np.isfinite(motion.torque).all()
    assert main([*line, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["feasible"]["missing_percent"] < 20 and isinstance(row["changes"], list)
    with np.load(out) as file:
        assert file["root_position"].shape == (len(motion), 3)
    assert main([*line, "--format", "dynamic", "--lead-in"]) == 0
    led, neutral = DynamicMotion.read(out), load_robot("hrp2", "floating").q("neutral")
    assert np.abs(led.q[0, 7:] - neutral[7:]).max() < 0.01 and np.abs(led.v[:10]).max() < 0.01, "from standing at rest"
    lead = len(led) - len(motion)
    assert lead > 100 and np.allclose(led.q[lead + 1 :, 7:], motion.q[1:, 7:]), "then the motion as it is"
    assert np.abs(np.diff(led.q[:, 7:], axis=0)).max() * led.rate < 1.01 * load_robot("hrp2").velocity.max()


def test_a_clip_is_slowed_where_it_must_be_and_the_table_says_so(clip, tmp_path, capsys):
    """Four times as fast the walker is infeasible; as recorded, without a fast turn, the file is the same."""
    line = ["retarget", str(clip), "--robot", "hrp2", "--whole-body"]
    files = {}
    for words in ("", "--stretch none", "--stretch auto"):
        files[words] = tmp_path / f"{words or 'plain'}.csv"
        assert main([*line, *words.split(), "-o", str(files[words]), "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert ("stretch" in row) == (words == "--stretch auto")
    plain, same, auto = (f.read_bytes() for f in files.values())
    assert same == plain and (auto == plain) == (row["stretch"]["slowed_percent"] == 0)
    assert main([*line, "--speed", "4", "--stretch", "auto"]) == 0
    words = capsys.readouterr().out
    assert "local pace, and the clip before > after" in words and "least pace" in words
