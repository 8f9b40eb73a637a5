"""`humanoid reach`: trajectories that the robot may play, what is told beside them, measured reaches."""

import csv
import json

import numpy as np
import pytest

from humanoid_control.cli.main import main
from humanoid_control.robots import load_robot
from test.conftest import DATA


@pytest.fixture
def reach(tmp_path, monkeypatch, capfd):
    """Runs the command in a folder of its own; exit code, what it printed, and what it warned of."""
    monkeypatch.chdir(tmp_path)

    def run(line):
        code = main(["reach", *line.split()])
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


def test_a_trajectory_is_written_that_ends_where_it_was_asked_to(reach, tmp_path):
    code, out, err = reach("--robot lola --to 30,-20,40 --cost mtc --seconds 0.8 -o out.csv")
    assert code == 0 and "written: out.csv" in out, err
    with (tmp_path / "out.csv").open() as file:
        header, *rows = list(csv.reader(file))
    robot, values = load_robot("lola", "fixed"), np.array(rows, dtype=float)
    assert header == ["time", *robot.joint_names] and len(values) == 81 and values[-1, 0] == pytest.approx(0.8)
    moving = [k for k in range(robot.n) if np.ptp(values[:, 1 + k]) > 1e-6]
    assert [robot.joint_names[k] for k in moving] == ["r_shoulder_flexion", "r_shoulder_abduction", "r_elbow_flexion"]
    assert np.allclose(values[0, 1:], robot.postures["neutral"], atol=1e-6)
    goal = np.clip(np.deg2rad([30, -20, 40]), robot.lower[moving], robot.upper[moving])
    assert np.allclose(values[-1, 1:][moving], goal, atol=1e-5)
    assert (values[:, 1:] >= robot.lower - 2e-3).all() and (values[:, 1:] <= robot.upper + 2e-3).all()


def test_the_hand_comes_where_it_was_sent(reach):
    robot = load_robot("hrp2", "fixed")
    begin = robot.point_positions(robot.q(), ["r_fingertip"])[0]
    goal = begin + [0.12, -0.05, 0.1]
    place = ",".join(f"{x:.4f}" for x in goal)
    code, out, err = reach(f"--robot hrp2 --to hand={place} --cost maj --json")
    assert code == 0, err
    joints = json.loads(out)["joints"]
    q = robot.from_mapping({name: np.deg2rad(one["to"]) for name, one in joints.items()})
    assert np.allclose(robot.point_positions(robot.q(q), ["r_fingertip"])[0], goal, atol=2e-3)


def test_the_start_that_was_taken_is_said_and_gravity_and_payload_count(reach):
    def cost(extra):
        code, out, err = reach(f"--robot person --to=-37,-76,-5,56 --cost torque {extra} --json")
        assert code == 0, err
        told = json.loads(out)
        assert told["start"] in told["found"] and len(told["found"]) == 3
        return told["cost"]

    assert cost("--gravity off") < cost("") < cost("--payload 2")
    code, out, _ = reach("--robot person --to=-37,-76,-5,56 --cost torque")
    assert code == 0 and "chosen: " in out


def test_a_reach_through_the_body_is_told(reach):
    robot = load_robot("hrp2", "fixed")
    side = robot.postures["neutral"].copy()
    words = {"r_shoulder_abduction": robot.upper[robot.joint_index("r_shoulder_abduction")]}
    side = robot.from_mapping(words)
    angles = [np.rad2deg(side[robot.joint_index(n)]) for n in robot.joint_names if n in ARM]
    far = ",".join(f"{a:.2f}" for a in angles)
    away = ",".join(f"{a:.2f}" for a in -np.array(angles))
    told = [reach(f"--robot hrp2 --to={goal} --cost maj")[2] for goal in (far, away)]
    assert any("touch from" in err for err in told), told


ARM = (
    "r_shoulder_flexion",
    "r_shoulder_abduction",
    "r_shoulder_rotation",
    "r_elbow_flexion",
    "r_forearm_pronation",
    "r_wrist_flexion",
)


def test_what_is_odd_is_warned_of_and_done(reach):
    code, _, err = reach("--to neutral --cost maj")
    assert code == 0 and "same posture" in err
    code, _, err = reach("--to 500,0,0 --cost maj")
    assert code == 0 and "outside its range" in err
    code, _, err = reach("--to 20,-20,40 --cost maj --param ninth --seconds 3")
    assert code == 0 and "limited to 2 s" in err


def test_a_bag_is_written_for_replay(reach, tmp_path):
    pytest.importorskip("rosbags")
    code, _, err = reach("--to 20,-20,40 --cost maj -o out.mcap")
    assert code == 0 and (tmp_path / "out.mcap").stat().st_size > 1000, err


def test_a_person_s_reaches_are_compared_with_all_criteria(reach, tmp_path):
    path = DATA / "human_motion" / "reaching_hug_mp" / "S02_trajs.mat"
    if not path.is_file():
        pytest.skip(f"needs {path}: set HUMANOID_TEST_DATA to the folder that holds human_motion/")
    from scipy.io import loadmat, savemat

    savemat(tmp_path / "S02.mat", {"tasks": loadmat(path)["tasks"][4:5, :1]})  # six motions
    code, out, err = reach("--measured S02.mat --json")
    assert code == 0, err
    told = json.loads(out)
    assert len(told["reaches"]) == 6 and {"maj", "mtc", "torque", "mchj"} <= set(told["summary"])
    assert 0 < told["summary"]["maj"]["median"] < 12 < told["summary"]["torque"]["median"]
    code, out, _ = reach("--measured S02.mat")
    assert code == 0 and "nearest" in out and "6 reaches" in out
