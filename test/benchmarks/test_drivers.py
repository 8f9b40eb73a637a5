"""Frames of drivers beside the makers' own libraries, in one run."""

import pytest

pytest.importorskip("serial", reason="needs pyserial")
pytest.importorskip("dynamixel_sdk", reason="needs dynamixel-sdk")

from evidence.benchmarks.drivers import dynamixel


def test_frames_of_thirty_servos_take_a_small_share_of_the_makers_time():
    rows = {row["name"]: row["median"] for row in dynamixel.measure(rounds=120)}
    assert rows["dynamixel_write_30"] < rows["sdk_write_30"] / 4
    assert rows["dynamixel_parse_30"] < rows["sdk_parse_30"] / 20
