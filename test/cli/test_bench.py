"""`humanoid bench`: its list, its options and its complaints."""

import inspect
import json

import pytest

from evidence.benchmarks import BENCHES, load_bench
from humanoid_control.cli.main import main


@pytest.mark.parametrize("name", BENCHES)
def test_options_of_a_bench_are_the_arguments_of_its_function(name):
    """So a bench is measured from Python as it is from the command line."""
    if name in ("stack", "start", "loop", "latency", "policy"):
        pytest.importorskip("rclpy", reason="needs ROS 2")
    bench = load_bench(name)
    given = {k: p.default for k, p in inspect.signature(bench.measure).parameters.items()}
    assert given == {**BENCHES[name].options, "quiet": True}
    assert callable(bench.notes)


def test_unknown_robot_is_one_line(capsys):
    assert main(["bench", "self_distance", "--robot", "hrp3"]) == 2
    said = capsys.readouterr()
    assert "did you mean" in said.err + said.out and "Traceback" not in said.err


@pytest.mark.parametrize("word", ["bounding_volumes", "self_distance", "distance", "ik"])
def test_help_lists_the_bench(capsys, word):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    assert word in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "required: bench"),
        (["stcak"], "unknown bench 'stcak': did you mean stack or start?"),
        (["ik", "--motion", "dance"], "--motion is not for the bench 'ik'"),
        (["bounding_volumes", "--robot", "hrp2"], "--robot is not for the bench 'bounding_volumes'"),
        (["loop", "--secods", "3"], "unknown argument '--secods': did you mean --seconds"),
        (["stack", "--seconds", "soon"], "invalid float value: 'soon'"),
    ],
)
def test_a_mistake_is_one_line(capsys, args, words):
    with pytest.raises(SystemExit) as end:
        main(["bench", *args])
    said = capsys.readouterr()
    assert end.value.code == 2 and said.out == ""
    assert words in said.err and len(said.err.splitlines()) == 1


def test_rows_are_printed_as_a_table_and_as_json(capsys, monkeypatch):
    class Two:
        COLUMNS = ("name", "median")

        def measure(self, robot, quiet):
            return [{"name": robot, "median": 1.5, "more": 2}]

        def notes(self, rows):
            return [f"{len(rows)} row"]

    monkeypatch.setattr("evidence.commands.bench.load_bench", lambda name: Two())
    assert main(["bench", "ik", "--robot", "hrp2"]) == 0
    said = capsys.readouterr().out
    assert "bench ik, hrp2" in said and "1.5" in said and "1 row" in said and "more" not in said
    assert "pinocchio_all_terms, Lola, in this run: " in said
    assert main(["bench", "ik", "--robot", "hrp2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bench"] == "ik" and said["rows"][0]["more"] == 2 and said["notes"] == ["1 row"] and said["machine"]
    beside = said["yardstick"]
    assert beside["name"] == "pinocchio_all_terms" and 1 < beside["median"] <= beside["p99"] and beside["n"] == 3000
