"""The calibration file: written whole, the one before kept; who may not get power, and by which name."""

from pathlib import Path

import pytest

from humanoid_control.errors import HumanoidError, RobotError
from humanoid_control.hardware.calibration import (
    Zero,
    calibration_path,
    check_change,
    missing_calibration,
    read_calibration,
    write_calibration,
)

NAMES = ["l_knee", "r_knee", "l_ankle.1"]


def test_what_is_written_is_read_and_the_file_before_is_kept(tmp_path):
    path = calibration_path(tmp_path / "lola.hardware.yaml")
    assert path.name == "lola.calibration.yaml" and read_calibration(path, NAMES) == {}
    first = {"l_knee": Zero(0.1234567890123, "jig", "2025-01-02T03:04:05", 0.001, "A17")}
    write_calibration(path, first)
    assert read_calibration(path, NAMES) == first
    second = {**first, "l_ankle.1": Zero(-1e-7)}
    write_calibration(path, second)
    assert read_calibration(path, NAMES) == second
    assert read_calibration(Path(f"{path}.1"), NAMES) == first


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("l_knee", "l_kne", "did you mean l_knee"),
        ("zero: 0.5", "zer: 0.5", "did you mean zero"),
        ("zero: 0.5", "zero: much", "zero"),
        ("jig", "jog", "did you mean jig"),
        ("humanoid_calibration/1", "other", "schema"),
    ],
)
def test_a_mistake_in_it_is_named(tmp_path, right, wrong, says):
    path = tmp_path / "c.yaml"
    write_calibration(path, {"l_knee": Zero(0.5, "jig")})
    path.write_text(path.read_text().replace(right, wrong))
    with pytest.raises(HumanoidError, match=says):
        read_calibration(path, NAMES)


def test_who_needs_calibration_is_named():
    zeros = {"l_knee": Zero(0.1, serial="A17"), "r_knee": Zero(0.2, serial="B2")}
    serials = {"l_knee": "A17", "r_knee": "B3"}
    assert missing_calibration(zeros, serials, ["l_knee"]) == [
        "r_knee needs calibration: its drive is B3, but B2 was calibrated"
    ]
    assert missing_calibration(zeros, {}, ["l_knee", "l_ankle.1"]) == ["l_ankle.1 not calibrated"]


def test_a_zero_moves_far_only_where_that_is_meant():
    before = {"l_knee": Zero(0.1)}
    check_change(before, {"l_knee": Zero(0.29), "r_knee": Zero(3.0)}, allow_large=False)
    with pytest.raises(RobotError, match=r"l_knee would change by 0\.21 rad"):
        check_change(before, {"l_knee": Zero(0.31)}, allow_large=False)
    check_change(before, {"l_knee": Zero(0.31)}, allow_large=True)
