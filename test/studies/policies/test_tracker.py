"""Motions performed by a learned tracker motions: each run's outcome, kept outcomes, and the tables made of them."""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("mujoco")

from evidence.studies.policies.tracker import (
    BLEND,
    TrackerTrial,
    Watch,
    as_motion,
    chosen_trial,
    clip_table,
    perform_motion,
    perform_once,
    run_study,
    survived,
    total_table,
    way_between,
    worst_grade_line,
)
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.mocap import load_body_points
from humanoid_control.policy import load_motion, load_policy
from humanoid_control.retargeting import retarget_whole_body

TWIST2 = Path(__file__).parents[3] / "config" / "policies" / "twist2.yaml"


@pytest.fixture(scope="module")
def network(model_file):
    return model_file("policies/twist2/twist2_1017_20k.onnx")


@pytest.fixture(scope="module")
def tracker(g1, network):
    return load_policy(TWIST2, g1, network)


def trial(network, **changed):
    return TrackerTrial(str(TWIST2), (str(network),), **changed)


@pytest.mark.nightly
def test_a_motion_is_performed_and_a_hard_push_fells_it(tracker, network, model_file):
    motion = load_motion(model_file("policies/twist2/walk_001.pkl"), tracker.robot, tracker.model.joints)
    short = motion._replace(
        position=motion.position[:120], quaternion=motion.quaternion[:120], joints=motion.joints[:120]
    )
    calm = perform_once(tracker, short, None, trial(network))
    assert calm["fell"] is None and 0.0 < calm["joints_rad"] < 0.15 and 0.0 <= calm["saturation_percent"] < 20.0
    assert 0.0 <= calm["slip_mm_s"] < 300.0 and 0.0 <= calm["path_cm"] < 60.0
    pushed = perform_once(tracker, short, 0, trial(network, push=150.0))
    assert pushed["fell"] is not None and pushed["fell"] > 1.0 + BLEND


def test_a_trajectory_of_ours_is_that_motion_in_the_trackers_order(tracker, g1):
    body = load_body_points("gentle_dance")
    found = retarget_whole_body(body, g1)
    trajectory = getattr(found, "trajectory", found)
    motion = as_motion(trajectory, tracker, 2.0)
    assert len(motion.joints) == round(2.0 * trajectory.rate) + 1 and motion.rate == trajectory.rate
    for k, joint in enumerate(tracker.model.joints):
        column = list(trajectory.joint_names).index(joint)
        assert np.array_equal(motion.joints[:, k], trajectory.positions[: len(motion.joints), column])


def test_a_push_is_the_impulse_of_its_seed(tracker, model_file):
    motion = load_motion(model_file("policies/twist2/walk_001.pkl"), tracker.robot, tracker.model.joints)
    watches = [Watch(tracker, motion, seed, 20.0) for seed in (0, 1, 0)]
    forces = [w._force for w in watches]
    assert np.allclose([np.linalg.norm(f) for f in forces], 200.0) and np.array_equal(forces[0], forces[2])
    assert not np.allclose(forces[0], forces[1]) and all(f[2] == 0.0 for f in forces)
    assert np.isinf(Watch(tracker, motion, None, 20.0)._push_at)


def test_a_way_is_seen_in_the_heading_of_its_begin():
    a, b = np.array([1.0, 2.0, np.pi / 2]), np.array([1.0, 5.0, 0.0])
    assert np.allclose(way_between(a, b), [3.0, 0.0])
    R = pin.rpy.rpyToMatrix(0.0, 0.0, 0.7)[:2, :2]
    turned = [np.array([*(R @ p[:2]), p[2] + 0.7]) for p in (a, b)]
    assert np.allclose(way_between(*turned), way_between(a, b))


def test_a_clip_is_graded_and_performed_with_each_seed(network, g1_urdf):
    row = perform_motion("gentle_dance", str(g1_urdf), "live", trial(network, seeds=1, seconds=1.0))
    assert [run["seed"] for run in row["runs"]] == [None, 0] and row["grade"] in "ABCDF"
    assert row["seconds"] == pytest.approx(1.0)


def rows():
    """Outcomes of two clips, two ways, two checkpoints and a seed."""

    def run(network, seed, fell):
        return {
            "network": network,
            "seed": seed,
            "fell": fell,
            "joints_rad": 0.1,
            "slip_mm_s": 50.0,
            "path_cm": 10.0,
            "saturation_percent": 2.0,
        }

    def row(clip, method, grade, falls):
        runs = [run(n, s, f) for (n, s), f in zip((("a", None), ("a", 0), ("b", None), ("b", 0)), falls, strict=True)]
        base = {"clip": clip, "method": method, "grade": grade, "why": "", "fallback": ""}
        return base | {"infeasible_percent": 12.0, "seconds": 10.0, "runs": runs}

    failed = {"clip": "y.bvh", "method": "feasible", "why": "ClipError: mostly flight"}
    return [
        row("x.bvh", "clip", "A", (3.0, 2.0, 4.0, 1.0)),
        row("x.bvh", "feasible", "A", (None, None, 4.0, None)),
        row("y.bvh", "clip", "C", (None, 5.0, None, None)),
        failed,
    ]


def test_tables_count_runs_on_their_feet():
    assert survived(rows(), False) == (3, 6) and survived(rows(), True) == (3, 6)
    total = {row[0]: row for row in total_table(rows(), ("clip", "feasible")).rows}
    assert total["clip"][1:6] == [2, "1A 1C", 12.0, "2 of 4", "1 of 4"]
    assert total["feasible"][1:6] == [1, "1A", 12.0, "1 of 2", "2 of 2"]
    assert total["clip"][6:] == [0.1, 50, 10, 2.0]
    single = clip_table(rows()).rows
    assert single[0][:7] == ["x", "clip", "A", 12.0, "0 of 2", "0 of 2", "3.0 of 11.0"] and len(single) == 3
    assert worst_grade_line(rows()).endswith("fall under every checkpoint: x (clip).")


def test_what_cannot_be_tried_is_said_at_once(tmp_path, monkeypatch, network):
    with pytest.raises(UnknownNameError, match="did you mean clip"):
        run_study(method=["clp"])
    with pytest.raises(ConfigError, match=r"no file nowhere.onnx"):
        chosen_trial(networks=["nowhere.onnx"])
    with pytest.raises(UnknownNameError, match="did you mean mujoco"):
        chosen_trial(networks=[str(network)], engine="mujco")
    for bad in ({"seeds": -1}, {"push": float("nan")}, {"push": -1.0}, {"seconds": 0.0}):
        with pytest.raises(ConfigError, match="seeds must be 0 or more"):
            chosen_trial(networks=[str(network)], **bad)
    monkeypatch.delenv("HUMANOID_TEST_DATA", raising=False)
    with pytest.raises(ConfigError, match="no network: name a checkpoint"):
        chosen_trial()


@pytest.mark.nightly
def test_outcomes_are_kept_and_not_made_twice(g1_urdf, network, tmp_path):
    options = {"robot": str(g1_urdf), "clips": ["gentle_dance"], "method": ["live"], "networks": [str(network)]}
    options |= {"resume": tmp_path / "kept.jsonl", "seeds": 0, "seconds": 1.0, "workers": 1}
    first = run_study(**options)
    assert first.data["rows"][0]["why"] == "" and len(first.data["rows"][0]["runs"]) == 1
    kept = (tmp_path / "kept.jsonl").read_text()
    assert run_study(**options).data["rows"] == first.data["rows"] and (tmp_path / "kept.jsonl").read_text() == kept
    first.write(tmp_path / "t.md")
    assert "performed by the tracker" in (tmp_path / "t.md").read_text().lower()
