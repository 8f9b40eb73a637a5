"""Commands that need no running nodes, and what they answer to mistakes."""

import csv
import json
import subprocess
from argparse import Namespace

import numpy as np
import pytest

from humanoid_control import __version__
from humanoid_control.cli import doctor
from humanoid_control.cli.main import COMMANDS
from humanoid_control.robots import CATALOGUE, MODELS, REFERENCES, load_robot
from humanoid_control.session.machine_checks import MachineCheck


def one_line(result):
    """The complaint of a refused command: exactly one line, exit code 2, no traceback."""
    assert result.returncode == 2, f"code {result.returncode}\n{result.stdout}\n{result.stderr}"
    lines = [line for line in result.stderr.strip().splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    return lines[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(humanoid, name):
    result = humanoid(name, "--help")
    assert result.returncode == 0
    assert "examples:" in result.stdout and f"humanoid {name}" in result.stdout


def test_help_lists_all_commands(humanoid):
    result = humanoid()
    assert result.returncode == 0
    assert all(name in result.stdout for name in COMMANDS)
    assert humanoid.fresh("--version").stdout == f"humanoid_control {__version__}\n"


def test_robots_table_and_json(humanoid):
    table = humanoid("robots")
    assert table.returncode == 0
    assert all(name in table.stdout for name in CATALOGUE)
    rows = {r["name"]: r for r in json.loads(humanoid("robots", "--json").stdout)["robots"]}
    assert set(rows) == set(CATALOGUE)
    assert [r["name"] for r in json.loads(humanoid("robots", "--json").stdout)["models"]] == list(MODELS)
    assert [r["name"] for r in json.loads(humanoid("robots", "--json").stdout)["references"]] == list(REFERENCES)
    assert "(study" in table.stdout, "cells wrap"
    assert max(len(line) for line in table.stdout.splitlines() if line[:1] in "┏┃│└") <= 100
    assert rows["hrp2"]["mass_kg"] == 58.0 and rows["hrp2"]["published"] > 200
    shown = json.loads(humanoid("robots", "show", "lola", "--json").stdout)
    assert len(shown["joints"]) == load_robot("lola").n


def test_retarget_writes_csv_npz_and_mcap(humanoid):
    for kind in ("csv", "npz", "mcap"):
        result = humanoid("retarget", "dance", "--robot", "we4rii", "-o", f"out.{kind}", "--json")
        assert result.returncode == 0, result.stderr
        row = json.loads(result.stdout)["rows"][0]
        assert row["robot"] == "we4rii" and 0 < row["mean"] < 20
    robot = load_robot("we4rii", "fixed")
    with (humanoid.folder / "out.csv").open() as f:
        rows = list(csv.reader(f))
    assert rows[0] == ["time", *robot.joint_names]
    table = np.array(rows[1:], float)
    saved = np.load(humanoid.folder / "out.npz")
    assert table[:, 1:] == pytest.approx(saved["positions"], abs=1e-6)
    assert np.diff(table[:, 0]) == pytest.approx(1 / float(saved["rate"]), abs=1e-5)
    reader = pytest.importorskip("mcap_ros2.reader")
    messages = list(reader.read_ros2_messages(str(humanoid.folder / "out.mcap")))
    assert len(messages) == len(table)
    assert list(messages[0].ros_msg.name) == list(robot.joint_names)
    assert np.array(messages[-1].ros_msg.position) == pytest.approx(table[-1, 1:], abs=1e-6)
    assert not list(humanoid.folder.glob(".writing_*")), "nothing half-written stays"


def test_retarget_whole_body_tells_contact_with_the_ground(humanoid):
    result = humanoid("retarget", "dance", "--robot", "hrp2", "--whole-body", "-o", "out.npz", "--json", timeout=600)
    assert result.returncode == 0, result.stderr
    row = json.loads(result.stdout)["rows"][0]
    assert row["contacts"] > 20 and row["slip_mm"] < 2 and row["penetration_mm"] < 1 and row["colliding_percent"] == 0
    saved = np.load(humanoid.folder / "out.npz")
    assert saved["root_quaternion"].shape == (row["frames"], 4) and saved["contacts"].shape == (row["frames"], 4)


def test_retarget_whole_body_to_a_robot_without_feet_moves_the_upper_body(humanoid):
    result = humanoid("retarget", "dance", "--robot", "we4rii", "--whole-body", "-o", "arms.npz")
    assert result.returncode == 0 and "we4rii: no legs with soles: only the upper body" in result.stdout
    assert "root_quaternion" not in np.load(humanoid.folder / "arms.npz")
    mixed = humanoid("retarget", "dance", "--robot", "we4rii,hrp2", "--whole-body", "-o", "out/")
    assert "retarget the others separately" in one_line(mixed) and not (humanoid.folder / "out").exists()


def test_retarget_whole_body_of_a_clip_without_legs_moves_the_upper_body(humanoid, mocap):
    result = humanoid("retarget", mocap("vicon_c3d/shd01.c3d"), "--robot", "hrp2", "--whole-body", "-o", "arms.csv")
    assert result.returncode == 0 and "contains no legs" in result.stdout
    assert "root_x" not in (humanoid.folder / "arms.csv").read_text().splitlines()[0]


def test_retarget_all_robots_into_a_folder(humanoid):
    result = humanoid("retarget", "dance", "--robot", "all", "-o", "out", "--format", "npz")
    assert result.returncode == 0
    assert {p.stem for p in (humanoid.folder / "out").glob("*.npz")} == set(CATALOGUE)


def test_a_slower_clip_is_followed_better(humanoid):
    mean = {}
    for speed in (1.0, 0.3):
        result = humanoid("retarget", "dance", "--robot", "armar3", "--speed", speed, "--json")
        mean[speed] = json.loads(result.stdout)["rows"][0]["mean"]
    assert mean[0.3] < 0.6 * mean[1.0], "ARMAR-III's joints allow 1 rad/s"


MISTAKES = [
    (["score", "dance", "--acceleration", "20,soon"], "'20,soon' is not a number or a list of numbers"),
    (["score", "dance", "--acceleration", "20,0"], "between 0.1 and"),
    (["demoo"], "did you mean demo"),
    (["demo", "--robot", "hpr2"], "did you mean hrp2"),
    (["demo", "--robbot", "hrp2"], "did you mean --robot"),
    (["demo", "--robot", "nowhere.urdf"], "URDF file not found: nowhere.urdf"),
    (["demo", "--motion", "dnace"], "did you mean dance"),
    (["demo", "--motion", "missing.trc"], "missing.trc"),
    (["demo", "--motion", "."], "folder|directory"),
    (["demo", "--seconds", "soon"], "invalid float value: 'soon'"),
    (["demo", "--seconds", "0"], "between 1 and"),
    (["demo", "--speed", "99"], "between 0.05 and 4"),
    (["demo", "--port", "99999"], "between 1 and 65535"),
    (["demo", "--set", "whole_body_ik.rat=3"], "did you mean rate"),
    (["demo", "--set", "rate=3"], "node.parameter=value"),
    (["demo", "raech"], "did you mean reach"),
    (["up", "imitatoin"], "did you mean imitation"),
    (["up", "reach", "--robot", "lolla"], "did you mean lola"),
    (["up", "reach", "--set", "whole_body_ki.rate=3"], "did you mean whole_body_ik"),
    (["up", "reach", "--namespace", "a b"], "letters, digits"),
    (["up", "tendons", "--seconds", "-5"], "--seconds must be above 0, got -5"),
    (["up", "tendons", "--seconds", "nan"], "--seconds must be above 0, got nan"),
    (["up", "tendons", "--set", "state_estimator.mode=absolut"], "did you mean absolute"),
    (["robots", "shwo"], "unknown action 'shwo': did you mean show"),
    (["robots", "show", "hrp"], "did you mean hrp2"),
    (["retarget"], "required: clip"),
    (["retarget", "dance", "-o", "x.xls"], "unknown format '.xls'"),
    (["retarget", "dance", "-o", "nowhere/x.csv"], "does not exist"),
    (["retarget", "dance", "--robot", "all", "-o", "x.csv"], "must be a folder"),
    (["retarget", "dance", "-o", "/proc/x.csv"], "/proc/x.csv cannot be written"),
    (["retarget", "dance", "-o", "/dev/null"], "the output must be a folder, and /dev/null is a file"),
    (["tendons", "--fit", "neck", "-o", "/proc/x.npz"], "/proc/x.npz cannot be written"),
    (["score", "dance", "--html", "/proc/x.html"], "/proc/x.html cannot be written"),
    (["study", "calibration", "-o", "/proc/out"], "/proc/out cannot be written"),
    (["retarget", "dance", "--marker-set", "plug_in_giat"], "plug_in_gait"),
    (["bench", "stcak"], "did you mean stack"),
    (["bench", "stack", "--seconds", "1"], "between 5 and"),
    (["replay", "nowhere"], "bag not found: nowhere"),
    (["why", "nowhere.mcap"], "bag not found: nowhere.mcap"),
    (["replay", ".", "--speed", "0"], "between 0.01 and 100"),
    (["record", "--second", "3"], "did you mean --seconds"),
    (["record", "--seconds", "0"], "--seconds must be above 0, got 0"),
    (["record", "--seconds", "nan"], "--seconds must be above 0, got nan"),
    (["up", "reach", "--namespace", "1a"], "without a leading digit"),
    (["up", "reach", "--namespace", "a//b"], "parts separated by /"),
    (["up", "reach", "--namespace", "ä"], "letters, digits"),
    (["up", "reach", "--set", "simulator.seed=-1"], "seed must be in 0 .. 2147483647, got -1"),
    (["study", "imitation", "--marker-set", "plug_in_gait"], "a marker set applies to clip files only"),
    (["study", "worlds", "--seconds", "1e99"], "seconds must be at most 36000"),
    (["bench", "dynamics", "--robot", "hrp3"], "did you mean hrp2"),
    (["tendons", "--fit", "neck", "-o", "x.npz", "--kind", ""], "unknown kind of mapping ''"),
    (["retarget", "/dev/null"], "/dev/null: is a device or a pipe, not a file"),
]


def test_a_folder_may_have_a_dot_in_its_name(humanoid):
    """`res.v1/` is a folder; its files are called after the robots, and may be of any format."""
    result = humanoid("retarget", "dance", "--robot", "hrp2", "--robot", "we4rii", "-o", "res.v1/", "--format", "npz")
    assert result.returncode == 0, result.stderr
    assert {p.name for p in (humanoid.folder / "res.v1").iterdir()} == {"hrp2.npz", "we4rii.npz"}
    result = humanoid("retarget", "dance", "--robot", "we4rii", "-o", "res.v1")
    assert result.returncode == 0, "it exists by now, and is a folder without the slash too"
    assert {p.name for p in (humanoid.folder / "res.v1").iterdir()} == {"hrp2.npz", "we4rii.npz", "we4rii.csv"}


def test_joints_are_gentler_where_it_is_asked_for(humanoid):
    rms, error = {}, {}
    for limit in (200, 20):
        result = humanoid("retarget", "dance", "--acceleration", limit, "-o", f"{limit}.npz", "--json")
        assert result.returncode == 0, result.stderr
        saved = np.load(humanoid.folder / f"{limit}.npz")
        acceleration = np.diff(saved["positions"], 2, axis=0) * float(saved["rate"]) ** 2
        rms[limit] = np.sqrt(np.mean(acceleration**2))
        error[limit] = json.loads(result.stdout)["rows"][0]["mean"]
    assert rms[20] < rms[200]
    assert error[200] < error[20] < error[200] + 6.0, "gentle joints are behind the dancer"


@pytest.mark.parametrize(("args", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_code_2(humanoid, args, words):
    import re

    if args[0] in ("demo", "up", "bench", "replay", "record"):
        pytest.importorskip("rclpy", reason="needs ROS 2")
    line = one_line(humanoid(*args))
    assert re.search(words, line), line


def test_a_refused_clip_makes_no_folder(humanoid):
    assert "clip not found" in one_line(humanoid("retarget", "nowhere.c3d", "--robot", "all", "-o", "made"))
    assert not (humanoid.folder / "made").exists()


def test_clips_that_lack_markers_are_named(humanoid, mocap):
    line = one_line(humanoid("demo", "--motion", mocap("c3d_encodings/Eb015pi.c3d")))
    assert "no marker set fits" in line
    line = one_line(humanoid("retarget", mocap("odd_files/Dance.c3d")))
    assert "marker set" in line


def test_an_occupied_port_is_said_before_anything_starts(humanoid):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        assert f"port {port} is in use" in one_line(humanoid("demo", "--port", port))


def test_a_folder_that_is_not_a_bag(humanoid):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    (humanoid.folder / "bag").mkdir()
    assert "is not a ROS 2 bag" in one_line(humanoid("replay", "bag"))


@pytest.mark.patient
@pytest.mark.ros
def test_doctor_finds_this_environment_sound(humanoid):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    result = humanoid.fresh("doctor", "--json")
    findings = {f["check"]: f for f in json.loads(result.stdout)["findings"]}
    assert result.returncode == 0, findings
    assert findings["loopback"]["state"] == "ok"
    assert {"Python", "packages", "compiled kernels", "ROS 2", "port", "cores"} <= set(findings)


@pytest.mark.nightly
@pytest.mark.patient
@pytest.mark.ros
def test_doctor_says_what_to_do_when_discovery_is_off(humanoid):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    result = humanoid.fresh("doctor", ROS_AUTOMATIC_DISCOVERY_RANGE="OFF")
    assert result.returncode == 1
    assert "-> unset ROS_AUTOMATIC_DISCOVERY_RANGE" in result.stdout


@pytest.mark.parametrize(
    ("states", "end", "code"),
    [
        (["ok", "ok"], "all checks passed", 0),
        (["ok", "warn"], "works, with warnings: port", 0),
        (["fail", "warn"], "failed: Python", 1),
    ],
)
def test_doctor_ends_with_what_its_findings_come_to(states, end, code, monkeypatch, capsys):
    findings = [MachineCheck(name, state, "found") for name, state in zip(("Python", "port"), states, strict=True)]
    monkeypatch.setattr(doctor, "check_machine", lambda port: iter(findings))
    assert doctor.run(Namespace(port=8080, clean=False, json=False, realtime=False, seconds=None, rate=None)) == code
    assert capsys.readouterr().out.splitlines()[-1] == end


def test_output_into_a_closed_pipe_is_no_error(humanoid):
    command = " ".join(f"'{a}'" for a in humanoid.argv("robots"))
    script = f"set -o pipefail; cd {humanoid.folder} && {command} 2> err.txt | head -1 > /dev/null"
    assert subprocess.run(["bash", "-c", script]).returncode == 0, "neither of the two fails"
    assert "Traceback" not in (humanoid.folder / "err.txt").read_text()
