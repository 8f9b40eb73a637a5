"""`humanoid tendons`: groups and tendons listed, mappings fitted to a file that the nodes take (TE-06, TE-09)."""

import json

import numpy as np
import pytest

from humanoid_control.cli.main import main
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_groups, tendon_mappings
from humanoid_control.tendons.mappings import fitting
from humanoid_control.tendons.mappings import per_tendon as parted_mapping


def test_who_owns_and_who_borrows_is_listed(capsys):
    assert main(["tendons", "kengoro_upper", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {g["group"]: (g["own joints"], g["borrowed"], g["tendons"]) for g in said["groups"]}["neck"] == (4, 4, 10)
    joints = {j["joint"]: (j["owned by"], j["borrowed by"]) for j in said["joints"]}
    assert len(joints) == 20 and joints["neck_roll"] == ("neck", "l_scapula, r_scapula")
    biceps = next(t for t in said["tendons"] if t["tendon"] == "l_biceps")
    assert 100 < biceps["length mm"] < 500 and 15 < biceps["largest moment arm mm"] < 90
    assert "l_elbow_pitch" in biceps["crosses"]


@pytest.mark.parametrize("kind", fitting.KINDS)
def test_a_fitted_mapping_is_one_that_the_nodes_take(kind, tmp_path, capsys, monkeypatch):
    for name, value in (("POSTURES_PER_JOINT", 150), ("ITERATIONS", 60), ("ROWS", 4000)):
        monkeypatch.setattr(fitting, name, value)
    monkeypatch.setattr(fitting, "counts_by_range", lambda limits: (4,) * len(limits))
    monkeypatch.setattr(parted_mapping, "counts_by_range", lambda limits, *_: (4,) * len(limits))
    file = tmp_path / "neck.npz"
    assert main(["tendons", "kengoro_upper", "--fit", "neck", "--kind", kind, "-o", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["joints"] == 8 and said["postures"] > 1000
    robot = load_robot("kengoro_upper", "fixed")
    groups = tendon_groups(robot, "file")
    exact, fitted = tendon_mappings(robot, groups)["neck"], tendon_mappings(robot, groups, file)["neck"]
    assert fitted.kind == kind
    q = np.random.default_rng(7).uniform(*exact.limits.T, (200, 8))
    rms = 1e3 * np.sqrt(np.mean((fitted.lengths(q) - exact.lengths(q)) ** 2))
    assert rms == pytest.approx(said["length rms mm"], rel=0.3) and rms < (15 if kind == "table" else 4)


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["kengoro_uper"], "did you mean kengoro_upper"),
        (["--groups", "automtic"], "did you mean automatic"),
        (["--fit", "nek", "-o", "a.npz"], "did you mean neck"),
        (["--fit", "neck", "-o", "a.npz", "--kind", "polynom"], "did you mean polynomial"),
        (["--fit", "neck", "-o", "nowhere/a.npz"], "the folder nowhere does not exist"),
        (["--fit", "neck"], "needs --output"),
        (["--payload", "1"], "--payload applies to --hold"),
        (["--hold", "--payload", "-1"], "--payload must be 0 to 100 kg"),
        (["--hold", "--fit", "neck", "-o", "a.npz"], "exclude each other"),
        (["--kind", "neural"], "--kind applies to --fit"),
        (["--groups", "whole", "--fit", "whole", "-o", "a.npz"], "20 joints in one group, at most 8"),
    ],
)
def test_mistakes_are_told_in_one_line_and_nothing_is_written(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tendons", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert words in said and "\n" not in said
    assert list(tmp_path.iterdir()) == []


def test_what_the_tendons_hold_is_printed(capsys):
    assert main(["tendons", "kengoro_upper", "--hold", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    held = {row["range around neutral"]: row["postures held %"] for row in said["range held"]}
    assert held["20 %"] == 100 and held["100 %"] <= held["40 %"] and len(said["tendons"]) == 46
    assert said["spare tendons"] == sum(row["can be lost"] == "yes" for row in said["tendons"])
    assert main(["tendons", "kengoro_upper", "--hold", "--payload", "3", "--json"]) == 0
    loaded = json.loads(capsys.readouterr().out)
    assert (
        loaded["scale held"] < said["scale held"]
        or loaded["range held"][4]["mean tension N"] > said["range held"][4]["mean tension N"]
    )
    assert main(["tendons", "kengoro_upper", "--hold"]) == 0
    assert "99 % of the postures are held within" in capsys.readouterr().out.replace("\n", " ")
