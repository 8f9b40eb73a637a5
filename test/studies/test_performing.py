"""The study of performances: a motion beside the retargeted one, blocks switched off, outcomes that are kept."""

import json

import pytest

from evidence.studies import performing
from evidence.studies.performing import BLOCKS, COMPLETE, WORLDS, first_seconds, run_study
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.mocap import load_body_points
from humanoid_control.performing import ControllerSettings, FeasibilitySettings
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import load_robot
from humanoid_control.terminal import ReportTable


@pytest.mark.nightly
def test_a_motion_is_made_feasible_beside_the_retargeted_one_and_kept(tmp_path):
    kept = tmp_path / "kept.jsonl"
    options = {"robot": ["hrp2"], "clips": ["dance"], "only": ["feasibility"], "seconds": 4.0, "resume": kept}
    report = run_study(**options)
    retargeted, feasible = report.data["rows"]
    assert (retargeted["what"], feasible["what"]) == ("retargeted", "feasible")
    assert feasible["missing_percent"] == 0.0 < retargeted["missing_percent"]
    assert feasible["infeasible_percent"] == 0.0 and feasible["steps"] >= 1
    table = next(part for part in report.parts if isinstance(part, ReportTable))
    assert [row[:2] for row in table.rows] == [["hrp2", "retargeted"], ["hrp2", "feasible"]]
    # What is kept is not done again: a mark in the file comes back.
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    lines[0]["outcome"]["infeasible_mm"] = 12345.0
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run_study(**options).data["rows"][0]["infeasible_mm"] == 12345.0


def test_every_block_can_be_switched_off():
    """Each names settings that exist, with values that they may have and that are not the default."""
    motion, control = FeasibilitySettings(), ControllerSettings()
    assert BLOCKS[COMPLETE] == ({}, {})
    for name, (changed, controller) in BLOCKS.items():
        assert (name == COMPLETE) != bool(changed or controller)
        FeasibilitySettings(**changed)
        ControllerSettings(**controller)
        assert all(getattr(motion, k) != v for k, v in changed.items())
        assert all(getattr(control, k) != v for k, v in controller.items())


@pytest.mark.nightly
def test_a_short_beginning_is_danced_by_noisy_sensors_and_worse_without_feedback(monkeypatch):
    """By the same clip and noise: with the law of the centre of mass its error is small, without it it is not."""
    numbers = {}
    for what in ("feasible", "no feedback of the DCM"):
        outcome = performing.outcome_of("ablations", "dance", "hrp2", what, "multibody", 0, 2.0)
        numbers[what] = max(outcome["dcm_error_mm"])
        if what == "feasible":
            assert outcome["survived"] and outcome["feasibility"]["missing_percent"] < 1.0
    assert numbers["feasible"] < 15.0 and numbers["no feedback of the DCM"] > 2 * numbers["feasible"]


def test_conditions_change_the_world_and_not_the_controller(monkeypatch):
    """Masses and friction are those of the simulation, the delay that of its sensors; the motion is the same."""
    seen = []

    def look(motion, world, performer, watch=None):
        seen.append((motion, world.robot.mass, performer.robot.mass, world.settings.contact.friction, performer.read))
        raise ValueError("seen")

    monkeypatch.setattr(performing, "perform", look)
    for what in ("feasible", *WORLDS):
        with pytest.raises(ValueError, match="seen"):
            performing.outcome_of("conditions", "dance", "hrp2", what, "multibody", 0, 2.0)
    (motion, mass, own, friction, _), *others = seen
    delays = [r.__self__.joints.delay for *_, r in seen]
    assert mass == own and friction == 0.8 and delays[0] == pytest.approx(0.002)
    for name, (m, theirs, model, mu, _), delay in zip(WORLDS, others, delays[1:], strict=True):
        assert m is motion and model == own
        heavier = 1.1 if "+10 %" in name else 0.9 if "-10 %" in name else 1.0
        assert theirs == pytest.approx(heavier * mass)
        assert mu == (0.4 if "0.4" in name or "all" in name else 0.8)
        assert delay == (0.008 if "8 ms" in name or "all" in name else delays[0])


def test_a_beginning_is_cut_and_a_short_clip_stays():
    trajectory = retarget_whole_body(load_body_points("gentle_dance"), load_robot("lola", "floating"), method="live")
    cut = first_seconds(trajectory, 2.0)
    assert len(cut.positions) == len(cut.root_position) == round(2.0 * trajectory.rate) + 1
    assert first_seconds(trajectory, 0.0) is trajectory and first_seconds(trajectory, 1e4) is trajectory


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"only": ["walks"]}, UnknownNameError, "part of the study"),
        ({"engine": "bullet"}, UnknownNameError, "engine"),
        ({"seeds": 0}, ConfigError, "--seeds must be 1 or more"),
        ({"seconds": 0.5}, ConfigError, "--seconds must be 1 or more"),
    ],
    ids=["part", "engine", "seeds", "seconds"],
)
def test_what_cannot_be_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        run_study(robot=["hrp2"], clips=["dance"], **options)
