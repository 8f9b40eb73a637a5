"""`humanoid bench driver`: each part on a small size, what is missing or fails said in its row, and what is counted."""

import json

import numpy as np
import pytest

from evidence.benchmarks import driver as bench
from evidence.benchmarks import load_bench
from evidence.benchmarks.drivers import cycle, scheduling
from humanoid_control.cli.main import main
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import HardwareError
from test.places import domain


def measured(capsys, *words):
    """Rows by name, and the notes, of the command."""
    assert main(["bench", "driver", *words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    return {r["name"]: r for r in said["rows"]}, said["notes"]


def test_the_cycle_of_thirty_joints_follows_commands_while_it_is_timed(capsys):
    rows, notes = measured(capsys, "--only", "cycle_compute", "--seconds", "0.4")
    row = rows["cycle_compute_30"]
    assert row["unit"] == "us" and row["n"] == 200 and 0 < row["median"] <= row["p99"] and row["aim"] == "<= 25 us"
    assert rows["cycle_compute_30 blend"]["n"] == 200
    assert any(line.startswith("cycle_compute") for line in notes) and "Load" in notes[0]
    assert not any(line.startswith("unitree") for line in notes)


def test_what_is_timed_is_a_driver_that_moves_its_joints():
    rig = cycle.Rig()
    rig.follow(PowerState.RUN)
    before = rig.driver.reference.q.copy()
    assert len(rig.time(100)) == 100 and rig.driver.machine.state is PowerState.RUN
    assert (np.abs(rig.driver.reference.q - before) > 1e-3).all() and not rig.driver.findings
    rig.driver.stop()
    with pytest.raises(HardwareError, match="not in RUN"):
        rig.follow(PowerState.RUN)


@pytest.mark.timed
def test_a_cycle_of_thirty_joints_is_a_small_share_of_its_period():
    rows = {r["name"]: r["median"] for r in cycle.compute(1000)}
    assert rows["cycle_compute_30"] < 100.0, "measured: 16 us; numpy took 120"


def test_frames_stand_beside_those_of_others(capsys):
    for package in ("cyclonedds", "can", "canopen", "serial"):
        pytest.importorskip(package)
    rows, _ = measured(capsys, "--only", "unitree,dynamixel,canopen", "--seconds", "0.1")
    assert {"unitree_write_29", "unitree_read_29", "objects_write_29", "canopen_write_30", "dynamixel_parse_30"} <= set(
        rows
    )
    assert "objects" in rows["unitree_read_29"]["beside"]
    assert "vendor_29" in rows or "vendor_read_29" in rows, "measured, or said not to be installed"


def test_a_part_that_needs_what_is_not_installed_says_so_and_the_others_go_on(capsys, monkeypatch):
    def broken(name):
        if name.endswith("can_frames"):
            raise ModuleNotFoundError("No module named 'can'", name="can")
        return cycle

    monkeypatch.setattr(bench, "import_module", broken)
    rows, _ = measured(capsys, "--only", "canopen,cycle_compute", "--seconds", "0.1")
    assert rows["canopen"]["unit"] == "not installed" and rows["canopen"]["median"] is None
    assert rows["cycle_compute_30"]["median"] > 0


def test_a_part_that_fails_says_why_and_the_others_go_on(capsys, monkeypatch):
    def fails(cycles):
        raise HardwareError("no such bus")

    monkeypatch.setattr(cycle, "compute", fails)
    rows, _ = measured(capsys, "--only", "cycle_compute")
    assert rows["cycle_compute"]["unit"] == "failed" and rows["cycle_compute"]["beside"] == "no such bus"


def test_a_part_that_is_none_is_refused(capsys):
    assert main(["bench", "driver", "--only", "cycl"]) == 2
    assert "did you mean cycle" in capsys.readouterr().err


def test_the_guardian_of_a_killed_driver_is_timed(capsys):
    rows, _ = measured(capsys, "--only", "guardian", "--trials", "2")
    row = rows["guardian_ms"]
    assert row["n"] == 2 and 5.0 < row["median"] <= row["p99"], "its limit is 10 ms since the last beat"


def test_marks_tell_commands_apart_also_when_they_begin_anew():
    round_trip = pytest.importorskip("evidence.benchmarks.drivers.round_trip")
    published = {k: 1000 * k for k in range(1500)}
    seen = [5, 6, 6, 8, 999, 1000, 1001, 1499]
    times = np.array([1000 * k + 250 * (i != 2) + 300 * (i == 2) for i, k in enumerate(seen)])
    tau = round_trip.MARK * (np.array(seen) % round_trip.MARKS)
    assert round_trip.arrivals(published, times, tau) == [0.25] * 7


@pytest.mark.nightly
@pytest.mark.ros
@pytest.mark.stack
@pytest.mark.patient
def test_commands_and_stops_travel_through_the_node_to_a_robot(capsys, monkeypatch):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    pytest.importorskip("cyclonedds")
    round_trip = pytest.importorskip("evidence.benchmarks.drivers.round_trip")
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("commands"))
    rows, _ = measured(capsys, "--only", "round_trip,command_to_bus,estop", "--seconds", "1", "--trials", "10")
    assert rows["robot_round_trip"]["n"] > 50 and rows["robot_round_trip"]["median"] < 2000
    bus, period = rows["command_to_bus"], 1e6 / round_trip.RATE
    assert bus["n"] > 30 and rows["driver_cpu"]["median"] > 0
    assert 0.1 * period < bus["median"] < 3 * period, "a command waits for its cycle, half of one on average"
    assert rows["estop_ms"]["n"] == 1 and rows["estop_ms"]["median"] > 0


@pytest.mark.nightly
@pytest.mark.ros
@pytest.mark.stack
@pytest.mark.patient
def test_lateness_is_that_of_a_driver_with_power(monkeypatch):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("commands"))
    monkeypatch.setattr(cycle, "BUSY", 1)
    late, missed = cycle.lateness(0.5, (100.0,))
    assert late["name"] == "cycle_100" and late["n"] + 1 >= 20 and late["median"] > 0 and late["max"] >= late["p99"]
    assert missed["unit"] == "%" and 0 <= missed["median"] <= 100


def test_busy_processes_end_with_the_measurement():
    with scheduling.busy(1):
        pass
    with scheduling.scheduled() as granted:
        assert granted in ("normal", "fifo 50")
        import gc

        assert not gc.isenabled()
    assert gc.isenabled() and load_bench("driver") is bench
