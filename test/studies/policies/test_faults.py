"""Faults put into policies: what each changes, what is said of it, and the counts made of the outcomes."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("mujoco")

from evidence.studies.policies.fault_list import KINDS, ONSET, fault_of
from evidence.studies.policies.faults import kind_table, run_study, try_fault, worst_line
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.policy import RobotState, read_policy
from humanoid_control.policy.model import NEWEST_FIRST

SWAP, SIGN, UNIT, QUATERNION, TURNED, LATE, NUMBER, ROBOT, HISTORY = 0, 1, 4, 6, 7, 10, 11, 12, 13


@pytest.fixture(scope="module")
def lab(model_file):
    return model_file("policies/unitree_rl_lab_g1_velocity/params/deploy.yaml")


@pytest.fixture(scope="module")
def model(lab):
    return read_policy(lab)[0]


def upright():
    return RobotState(np.zeros(3), np.zeros(3), np.array([0.1, 0.2, 0.3, 0.927]), np.array([1.0, 2.0, 3.0]))


def test_faults_by_a_number_are_always_the_same(model):
    for number in range(len(KINDS)):
        a, b = fault_of(model, number), fault_of(model, number)
        assert (a.kind, a.detail, a.mirrored) == (b.kind, b.detail, b.mirrored)
        assert np.array_equal(a.model.scale, b.model.scale) and a.model.joints == b.model.joints
    assert fault_of(model, SIGN).mirrored != fault_of(model, SIGN + len(KINDS)).mirrored


def test_swapped_joints_change_places_everywhere(model):
    found = fault_of(model, SWAP).model
    places = [k for k, (a, b) in enumerate(zip(model.joints, found.joints, strict=True)) if a != b]
    assert len(places) == 2 and sorted(found.joints) == sorted(model.joints)
    assert found.joints[places[0]] == model.joints[places[1]] and found.acted == found.joints
    assert np.array_equal(found.default, model.default) and np.array_equal(found.kp, model.kp)


def test_senses_are_what_the_fault_says(model):
    state = upright()
    w_first = fault_of(model, QUATERNION).senses(state, 0.0)
    assert np.array_equal(w_first.orientation, [0.927, 0.1, 0.2, 0.3])
    turned = fault_of(model, TURNED).senses(state, 0.0)
    R, S = (pin.Quaternion(s.orientation / np.linalg.norm(s.orientation)).toRotationMatrix() for s in (state, turned))
    assert np.allclose(S @ turned.angular_velocity, R @ state.angular_velocity) and not np.allclose(R, S)
    bad = fault_of(model, NUMBER)
    before, after = (np.concatenate(bad.senses(state, t)[:4]) for t in (ONSET - 0.1, ONSET))
    assert np.isfinite(before).all() and np.isnan(after).sum() == 1
    history = fault_of(model, HISTORY).model.inputs[0].blocks[0]
    assert history.order == NEWEST_FIRST and fault_of(model, LATE).late == 0.03


@pytest.mark.parametrize(("number", "said"), [(UNIT, "every kp is 1"), (ROBOT, "joints are not joints of")])
def test_a_file_that_contradicts_is_refused_and_meets_the_row(lab, g1_urdf, number, said):
    row = try_fault(str(lab), str(g1_urdf), number, "mujoco")
    assert row["refused"] and row["met"] and row["end"] == "rejected" and said in row["said"][0]


@pytest.mark.parametrize("number", [QUATERNION, NUMBER])
def test_what_the_sensors_show_at_once_is_named_at_once_and_ends_in_a_descent(lab, g1_urdf, number):
    row = try_fault(str(lab), str(g1_urdf), number, "mujoco")
    assert row["end"] == "named" and row["named_s"] <= 0.1 and row["state"] in ("sit", "damp")
    assert row["events"][0][1] == "sit" and row["speed_share"] > 0.0


def rows():
    """Outcomes of three kinds."""
    base = {"why": "", "number": 1, "policy": "p", "detail": "", "said": [], "refused": False}
    ran = {"excess_joint": "a", "speed_joint": "b", "fell": None, "state": "run", "events": []}
    return [
        base | {"kind": "kp 1", "refused": True, "end": "rejected", "limits": True, "met": True},
        base
        | ran
        | {"kind": "sign", "end": "named", "limits": True, "met": True, "named_s": 0.2}
        | {"excess_rad": 0.01, "speed_share": 0.5},
        base
        | ran
        | {"kind": "sign", "end": "named later", "limits": False, "met": False, "named_s": 1.0}
        | {"excess_rad": 0.03, "speed_share": 1.2},
        {"why": "KeyError: x", "number": 9, "policy": "p"},
    ]


def test_outcomes_are_counted_by_kind():
    found = {row[0]: row[1:] for row in kind_table(rows()).rows}
    assert found["kp 1"] == [1, 1, 0, 0, 0, 0, "-", 1, "1 (100 %)"]
    assert found["sign"] == [2, 0, 1, 1, 0, 0, 0.6, 1, "1 (50 %)"]
    assert found["all"][0] == 3 and found["all"][-1] == "2 (67 %)"
    assert "0.030 rad (a, fault 1, sign); fastest: 1.20" in worst_line(rows())
    assert worst_line(rows()).endswith("Of 2 runs 1 exceeded a range, 1 a speed limit.")
    assert worst_line(rows()[:1]) == "Every fault was rejected on reading."


def test_what_cannot_be_tried_is_said_at_once(lab):
    with pytest.raises(UnknownNameError, match="did you mean mujoco"):
        run_study(engine="mujco")
    for faults in (0, -3, 10**6):
        with pytest.raises(ConfigError, match="faults must be 1 to"):
            run_study(faults=faults)
    with pytest.raises(ConfigError, match=r"no file nowhere\.onnx"):
        run_study(robot="hrp2", policies=["nowhere.onnx"])
