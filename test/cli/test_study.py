"""`humanoid study`: findings as table, JSON and file."""

import json

import pytest


def test_json_holds_verdict_rule_and_numbers(humanoid):
    result = humanoid("study", "imitation", "--only", "h4,H13", "--json", "-o", "findings.md")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    rows = {f["name"]: f for f in report["findings"]}
    assert list(rows) == ["H4", "H13"]
    for row in rows.values():
        assert row["verdict"] in ("holds", "does not hold", "cannot be decided") and len(row["rule"]) > 40
        assert row["parts"] and all(p["numbers"] for p in row["parts"])
        assert bool(row["reason"]) == (row["verdict"] == "does not hold")
    assert rows["H4"]["clip"] == "dance" and rows["H13"]["clip"] is None
    text = (humanoid.folder / "findings.md").read_text()
    assert f"## H4, dance: {rows['H4']['verdict']}" in text
    assert not list(humanoid.folder.glob(".writing_*"))


@pytest.mark.nightly
def test_clips_of_ones_own_are_tried_each_by_itself_in_place_of_the_dance(humanoid, mocap):
    clips = [mocap(f"dance_markers/{name}.trc") for name in ("dance1", "walk1")]
    given = [word for clip in clips for word in ("--clip", clip)]
    result = humanoid("study", "imitation", *given[2:], "--only", "H18,H5", "--details")
    assert result.returncode == 0, result.stderr
    for word in ("walk1", "H18", "H5", "rules", "numbers", "holds"):
        assert word in result.stdout
    result = humanoid("study", "imitation", *given, "--only", "H5,H13", "--json")
    report = json.loads(result.stdout)
    assert [(f["name"], f["clip"]) for f in report["findings"]] == [("H5", "dance1"), ("H5", "walk1"), ("H13", None)]
    h5, h13 = report["over_clips"]
    assert h5["clips"] == {f["clip"]: f["verdict"] for f in report["findings"][:2]} and set(h13["clips"]) == {"any"}


@pytest.mark.nightly
def test_what_is_decided_on_the_built_in_dance_is_said_to_be_about_it_alone(humanoid):
    result = humanoid("study", "imitation", "--only", "H5")
    assert result.returncode == 0 and "not recorded" in " ".join(result.stdout.split())


MISTAKES = [
    (["study"], "required: study"),
    (["study", "imitatoin"], "did you mean imitation"),
    (["study", "imitation", "--only", "H22"], "unknown hypothesis 'H22'"),
    (["study", "imitation", "--clip", "missing.trc"], "missing.trc"),
    (["study", "imitation", "-o", "findings.pdf"], "unknown format '.pdf'"),
    (["study", "imitation", "-o", "nowhere/findings.md"], "folder nowhere does not exist"),
]


@pytest.mark.parametrize(("args", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_leaves_nothing(humanoid, args, words):
    result = humanoid(*args)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert list(humanoid.folder.iterdir()) == []
