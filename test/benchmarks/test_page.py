"""The page of all benches: every section is made from rows, with and without the peers, and nothing is lost."""

import json

import pytest

from evidence.benchmarks import BENCHES, page
from evidence.benchmarks.page import (
    BEGIN,
    END,
    SECTIONS,
    TITLES,
    markdown_page,
    markdown_table,
    measure_all,
    summary_table,
    write_summary,
)
from humanoid_control.cli.main import main
from humanoid_control.errors import ConfigError

MACHINE = {"cpu": "a processor", "cores": 2, "system": "a system", "python": "3.12", "versions": {"numpy": "2.0"}}


def row(name, unit="us", **more):
    return {"name": name, "unit": unit, "median": 12.5, "p99": 20000.0, "n": 40, **more}


def result(bench, rows, **more):
    return {"bench": bench, "date": "2026-01-02", "machine": MACHINE, "rows": rows, "notes": ["counted so."], **more}


def test_every_bench_has_a_title():
    assert list(TITLES) == list(BENCHES) and set(SECTIONS) < set(BENCHES)


def test_a_table_has_a_line_a_row():
    assert markdown_table(["a", "b"], [["x", 0.123456], ["y", 12345.6]]) == (
        "| a | b |\n| --- | --- |\n| x | 0.1235 |\n| y | 12,346 |"
    )


@pytest.mark.nightly
def test_a_bench_is_run_and_written_as_a_page(capsys, tmp_path):
    path, kept = tmp_path / "benchmarks.md", tmp_path / "kept"
    arguments = ["bench", "all", "--only", "bounding_volumes", "-o", str(path), "--keep", str(kept)]
    assert main(arguments) == 0
    text = path.read_text()
    assert "## Bounding volumes" in text and "| convex hull |" in text and "`humanoid bench bounding_volumes`" in text
    assert "cores" in text and "numpy" in text and "`pinocchio_all_terms` of Lola in the same run: " in text
    assert f"written: {path}" in capsys.readouterr().out
    mark = json.loads((kept / "bounding_volumes.json").read_text()) | {"date": "1999-12-31"}
    (kept / "bounding_volumes.json").write_text(json.dumps(mark))
    assert main(arguments) == 0 and "1999-12-31" in path.read_text(), "what was measured is not measured again"


def test_one_that_fails_does_not_cost_the_others(tmp_path):
    def run(name):
        return {"bench": name, "failed": "no luck"} if name == "ik" else result(name, [row("x")])

    said: list[str] = []
    results = measure_all(["ik", "self_distance", "tendons"], tmp_path, run, said.append)
    text = markdown_page(results)
    assert "Not measured: no luck" in text and "| x | us | 12.5 |" in text and "2026" in text
    assert any("bench ik failed" in line and "no luck" in line for line in said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["self_distance.json", "tendons.json"]
    again: list[str] = []
    measure_all(["ik", "tendons"], tmp_path, lambda name: again.append(name) or result(name, []), said.append)
    assert again == ["ik"], "only what is missing is measured when one goes on"


def test_a_bench_that_dies_is_one_line():
    assert page.run_bench("no_such_bench")["failed"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--only", "ki"], "did you mean ik"),
        (["-o", "page.html"], "must be a .md file"),
        (["--only", ","], "contains no name"),
    ],
)
def test_a_mistake_is_one_line(capsys, args, words):
    try:
        code = main(["bench", "all", *args])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr().err
    assert code == 2 and words in said and len(said.splitlines()) == 1


def by_name(rows):
    return {r["name"]: r for r in rows}


def test_the_section_of_ik_leaves_out_peers_that_are_not_there():
    told = {"rows": 44, "p99_warm": 40.5, "cold": 99.5}
    own = [row(n, **told, pairs=132, active_pairs=5.5) for n in ("tick_qp", "tick_nullspace", "tick_qp_peers")]
    own.append(row("tick_no_collision", **told))
    text = SECTIONS["ik"](by_name(own))
    assert "| 132 | 5.5 | 12.5 µs | 40.5 µs | 99.5 µs | 20,000 µs" in text
    assert "mink" not in text and "PlaCo" not in text
    peers = [row("placo_no_collision", **told), row("placo_no_collision_to_ours", "ratio") | {"median": 0.55}]
    text = SECTIONS["ik"](by_name([*own, *peers, row("pink_nearest_10", **told)]))
    assert "0.55 times" in text and "pink, the 10 nearest" in text


def test_the_section_of_retargeting_has_a_table_a_robot():
    told = dict.fromkeys(page.QUALITY, 0.75) | {"clip": "dance"}
    names = ("ours_3_steps", "ours_1_step", "batch_3_steps", "placo_no_collision")
    rows = by_name([row(f"{robot}_{n}", **told) for robot in ("wabian2", "my_robot") for n in names])
    text = SECTIONS["retarget"](rows | {"five_robots_s": row("five_robots_s", "s")})
    assert "`wabian2`" in text and "`my_robot`, clip 'dance'" in text and "at most 3 steps a frame" in text
    assert "converged" not in text and "mink" not in text and text.count("PlaCo, 1 step, no collisions") == 2


def test_the_sections_of_nodes_tell_of_other_processes():
    names = ("command_latency", "publish_latency", "command_transport", "period_error", "tick", "missed_ticks")
    loop = by_name([row(n, "ms") for n in names])
    text = SECTIONS["loop"](loop)
    assert "12 of 40 ticks missed" in text and "in another process (`command_latency`)" in text
    assert "12.5 ms" in SECTIONS["stack"]({"ik_tick": row("ik_tick", "ms")})


def test_sections_beside_published_tables():
    six = {k: row(k, "ns", published_ns=88.6) for k in ("pp", "pl", "pt", "ll", "lt", "tt")}
    six |= by_name([row("coal_capsule_pair", "ns"), row("capsule_pair", "ns")])
    six["lola"] = row("lola", segments=18, near_pairs=3.0)
    assert "table 6.9" in SECTIONS["distance"](six) and "| lola | 12.5 µs |" in SECTIONS["distance"](six)
    names = [f"fd_{kind}_{s}" for kind in ("type2", "type3") for s in ("on", "dense", "sparse")]
    dynamics = by_name([*(row(n, dof=30) for n in names), row("world_step_lola", sole_depth_mm=0.87)])
    text = SECTIONS["dynamics"](dynamics)
    assert "46.1 to 141, 1.41 to 1.67" in text and "MuJoCo" not in text and "30 degrees of freedom" in text
    assert "| 0.87 |" in text
    tendons = ("jmm_neck_s", "jmm_scapula_s", "jmm_shoulder_s", "update_8x10", "update_60x80", "update_60x80_dense")
    rows = {n: row(n, source="", ratio="") for n in (*tendons, "three_groups", "three_groups_absolute")}
    rows["jmm_neck_s"]["source"], rows["update_8x10"]["ratios"] = "8579 + 5514", {"filterpy": 10.4, "numba": 0.4}
    text = SECTIONS["tendons"](rows)
    assert "8579 + 5514 s" in text and "filterpy 10.4 times, numba 0.4 times" in text


def test_a_section_without_its_rows_is_a_plain_table():
    text = markdown_page([result("dynamics", [row("other")])])
    assert "| other | us | 12.5 |" in text and "counted so." in text


def test_the_machine_and_the_day_are_named():
    text = markdown_page([result("ik", [row("tick_qp", rows=3)])])
    assert text.startswith("# Measured\n") and "a processor, 2 cores" in text and "numpy 2.0" in text
    assert "2026-01-02" in text


def test_the_small_table_is_put_between_its_marks(tmp_path):
    results = [
        result("ik", [row("tick_qp_peers", pairs=132), row("placo_all_pairs"), row("tick_no_collision")]),
        {"bench": "tendons", "failed": "no luck"},
    ]
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_summary(path, results)
    text = path.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| ") and text.endswith(f"{END}\nafter\n") and "old" not in text
    assert "132 collision pairs" in text and "PlaCo 12.5 µs" in text and "filterpy" not in summary_table(results)
    path.write_text("no marks")
    with pytest.raises(ConfigError, match="lacks the marks"):
        write_summary(path, results)
