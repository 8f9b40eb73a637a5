"""`humanoid study safety`: a few bad starts as table and JSON, and mistakes in one line."""

import json

import pytest


def test_every_start_is_accounted_for_and_every_limit_kept(humanoid):
    result = humanoid("study", "safety", "--robot", "suralp", "--starts", 9, "--json")
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(result.stdout)["robots"]
    assert row["robot"] == "suralp" and row["starts"] == 9 == sum(row["stages"].values())
    assert row["inside"] >= 3 and row["outside"] >= 3 and row["deepest"] > 0.02
    assert row["not_left"] == 0 and row["failures"] == 0 and row["closest_end"] > 0 and row["outside_end"] < 1e-9
    assert max(row["speed_share"], row["acceleration_share"]) <= 1 + 1e-6
    assert 0 < row["left_median"] <= row["left_p99"]


def test_the_table_explains_itself(humanoid):
    result = humanoid("study", "safety", "--robot", "lola", "--starts", 2)
    assert result.returncode == 0, result.stderr
    for word in ("lola", "not recovered", "limits", "share of a speed"):
        assert word in result.stdout


def test_another_seed_gives_other_starts_and_the_same_seed_the_same(humanoid):
    def deepest(seed):
        result = humanoid("study", "safety", "--robot", "suralp", "--starts", 2, "--seed", seed, "--json")
        told = json.loads(result.stdout)
        assert told["seed"] == seed
        return told["robots"][0]["deepest"]

    assert deepest(3) == deepest(3) != deepest(0)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--starts", "0"], "starts must be at least 1, got 0"),
        (["--seed", "-1"], "the seed must be 0 or more, got -1"),
        (["--robot", "lolla"], "did you mean lola"),
        (["-o", "out"], "--output is not for the study 'safety'"),
        (["--robot", "kengoro_upper"], "kengoro_upper has no pairs of shapes to keep apart"),
        (["--step-time", "0.5"], "--step-time is not for the study 'safety'"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_mistake_is_one_line(humanoid, args, words):
    result = humanoid("study", "safety", *args)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
