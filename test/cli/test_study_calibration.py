"""`humanoid study calibration`: table, JSON and folder."""

import json

import pytest


def test_table_json_and_folder(humanoid):
    result = humanoid("study", "calibration", "--robot", "hrp2", "--poses", "2", "--seeds", "2", "--json", "-o", "out")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    written = json.loads((humanoid.folder / "out" / "calibration.json").read_text())
    assert written["legs"] == report["legs"] and report["seeds"] == 2
    assert (humanoid.folder / "out" / "calibration.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(p.name for p in (humanoid.folder / "out").iterdir()) == ["calibration.json", "calibration.png"]
    best, *_, worst = report["legs"][0]["cases"]
    assert (best["measure"], best["poses"], best["not_identified"]) == ("pose", 2, [])
    assert worst["measure"] == "position" and worst["not_identified"] and worst["condition"] is None
    result = humanoid("study", "calibration", "--robot", "hrp2", "--poses", "2", "--seeds", "1")
    assert result.returncode == 0, result.stderr
    for word in ("within 3 s.e.", "not identified", "l_ankle_flexion", "rms error of the mean"):
        assert word in result.stdout


MISTAKES = [
    (["--robot", "armar3"], "armar3 has no legs to calibrate"),
    (["--robot", "lolla"], "unknown robot 'lolla': did you mean lola"),
    (["--poses", "0"], "poses must be at least 1"),
    (["--noise", "-1"], "noise must be 0 or more"),
    (["--seeds", "0"], "seeds must be at least 1"),
    (["--noise", "nan"], "noise must be 0 or more, got nan"),
    (["--starts", "3"], "--starts is not for the study 'calibration'"),
    (["--only", "H1"], "--only is not for the study 'calibration'"),
    (["-o", "nowhere/out"], "folder nowhere does not exist"),
]


@pytest.mark.parametrize(("args", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_leaves_nothing(humanoid, args, words):
    result = humanoid("study", "calibration", *args)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert list(humanoid.folder.iterdir()) == []
