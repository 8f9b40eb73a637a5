"""`humanoid study momentum`: claims as table, JSON and a folder with a plot."""

import json
from functools import partial

import pytest

from evidence.studies import schwienbacher2014 as momentum_study
from evidence.studies.schwienbacher2014 import momentum_sweep
from humanoid_control.cli.main import main


@pytest.fixture
def coarse(monkeypatch):
    """Walks in ticks four times as long as the command's."""
    monkeypatch.setattr(momentum_study, "WalkingLab", partial(momentum_study.WalkingLab, dt=0.016), raising=False)


def test_claims_have_rule_verdict_and_numbers(coarse, capsys):
    assert main(["study", "momentum", "--only", "t-33,T-34,T-27 as printed", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = {f["name"]: f for f in report["findings"]}
    assert list(rows) == ["T-33", "T-34", "T-27 as printed"] and report["robot"] == "lola"
    assert report["gait"]["step_length"] == 0.4 and report["gait"]["step_time"] == 0.8 and report["notes"] == []
    assert rows["T-33"]["verdict"] == rows["T-34"]["verdict"] == "holds"
    assert rows["T-27 as printed"]["verdict"] == "does not hold" and "E-19" in rows["T-27 as printed"]["reason"]
    for row in rows.values():
        assert row["rule"] and all(p["numbers"] for p in row["parts"])


@pytest.mark.nightly
def test_the_folder_holds_the_plot_and_the_numbers(coarse, capsys, monkeypatch, tmp_path):
    """Few walks; test_momentum_sweep.py looks at what a sweep finds."""
    few = {"still": ("still",), "method 0": ("method 0",), "constrained": ("constrained, posture 0.07",)}
    monkeypatch.setattr(momentum_sweep, "FAMILIES", few)
    monkeypatch.chdir(tmp_path)
    assert main(["study", "momentum", "--step-length", "0.2", "--step-time", "0.5", "--only", "T-34", "-o", "out"]) == 0
    said = capsys.readouterr().out
    assert "T-34" in said and "written: out" in said
    folder = tmp_path / "out"
    assert sorted(p.name for p in folder.iterdir()) == ["momentum.json", "momentum.png", "momentum_front.png"]
    assert (folder / "momentum.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((folder / "momentum.json").read_text())
    assert report["gait"]["step_length"] == 0.2 and report["findings"][0]["verdict"] == "holds"


MISTAKES = [
    (["--only", "T-26"], "unknown claim 'T-26': did you mean"),
    (["--robot", "lolla"], "did you mean lola"),
    (["--robot", "armar3"], "walking needs a floating base, two arms and two legs"),
    (["--clip", "dance1.trc"], "--clip is not for the study 'momentum'"),
    (["--step-length", "-1"], "step_length must be positive"),
    (["--step-length", "1.7"], "too long for its legs"),
    (["-o", "nowhere/out"], "folder nowhere does not exist"),
]


@pytest.mark.parametrize(("args", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_leaves_nothing(humanoid, args, words):
    result = humanoid("study", "momentum", *args)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert list(humanoid.folder.iterdir()) == []


def test_options_of_one_study_are_refused_by_the_other(humanoid):
    result = humanoid("study", "imitation", "--robot", "hrp2")
    assert result.returncode == 2 and "--robot is not for the study 'imitation'" in result.stderr
