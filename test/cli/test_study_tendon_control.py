"""`humanoid study tendon_control`: table, JSON, and mistakes in one line (TC-26)."""

import json

import pytest

from humanoid_control.cli.main import main


def test_stops_as_table_and_json(monkeypatch, tmp_path, capsys):
    """C7 with one seed: a stop that holds moves nothing, one that lets go falls, one that pays out is slower."""
    monkeypatch.chdir(tmp_path)
    assert main(["study", "tendon_control", "--only", "C7", "--seeds", "1", "--json", "-o", "out"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "out" / "tendon_control.json").read_text()) == printed
    rows = printed["experiments"]["C7"]["rows"]
    assert rows["hold"]["moved"] < 0.2 and rows["off"]["moved"] > 10
    assert rows["pay_out"]["fastest"] < 0.7 * rows["off"]["fastest"]
    assert main(["study", "tendon_control", "--only", "C7", "--seeds", "1"]) == 0
    said = capsys.readouterr().out
    assert (
        "C7, stops and heat: medians of 1 seeds" in said
        and "pay_out" in said
        and "largest joint displacement after 3 s" in said
    )


@pytest.mark.parametrize(
    "args,words",
    [
        (["--only", "C99"], "unknown experiment 'C99'"),
        (["--seeds", "0", "--only", "C4"], "seeds must be at least 1"),
        (["--robot", "kengoro"], "did you mean kengoro_upper"),
        (["--robot", "recommended", "--only", "C4"], "recommended has no tendons"),
    ],
)
def test_a_mistake_is_one_line(capsys, args, words):
    assert main(["study", "tendon_control", *args]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert words in lines[-1] and "Traceback" not in "".join(lines)
