"""The page of all benches: every section is made from rows, with and without the peers."""

import pytest

from humanoid_control.benchmarks import BENCHES, page, self_distance
from humanoid_control.benchmarks.page import SECTIONS, TITLES, markdown_table
from humanoid_control.cli.main import main

MACHINE = {"cpu": "a processor", "cores": 2, "system": "a system", "python": "3.12", "versions": {"numpy": "2.0"}}


def row(name, unit="us", **more):
    return {"name": name, "unit": unit, "median": 12.5, "p99": 20000.0, "n": 40, **more}


def test_every_bench_has_a_title():
    assert list(TITLES) == list(BENCHES) and set(SECTIONS) < set(BENCHES)


def test_a_table_has_a_line_a_row():
    assert markdown_table(["a", "b"], [["x", 0.123456], ["y", 12345.6]]) == (
        "| a | b |\n| --- | --- |\n| x | 0.1235 |\n| y | 12,346 |"
    )


def test_benches_are_run_and_written_as_a_page(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(self_distance, "POSTURES", 5)
    path = tmp_path / "benchmarks.md"
    assert main(["bench", "all", "--only", "bounding_volumes,self_distance", "-o", str(path)]) == 0
    text = path.read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Bounding volumes",
        "## Distances between a robot's shapes",
    ]
    assert "| convex hull |" in text and "| ours_50mm | us |" in text and "`humanoid bench self_distance`" in text
    assert "cores" in text and "numpy" in text and "coal / ours" in text
    assert f"written: {path}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "words"),
    [(["--only", "ki"], "did you mean ik"), (["-o", "page.html"], "must be a .md file"), (["--only", ","], "nothing")],
)
def test_a_mistake_is_one_line(capsys, args, words):
    try:
        code = main(["bench", "all", *args])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr().err
    assert code == 2 and words in said and len(said.splitlines()) == 1


def test_sections_tell_rows_and_leave_out_peers_that_are_not_there():
    ik = [row(n, rows=44) for n in ("tick_qp", "tick_nullspace", "tick_qp_peers", "tick_no_collision")]
    text = SECTIONS["ik"]({r["name"]: r for r in ik})
    assert "12.5 µs | 20,000 µs" in text and "mink" not in text
    ik += [row("mink_all_pairs", rows=44), row("ours_to_mink_all_pairs", "ratio")]
    assert "12.5 times slower" in SECTIONS["ik"]({r["name"]: r for r in ik})
    names = ("ours_fps", "ours_one_step_fps", "ours_error", "ours_one_step_error", "ours_closest")
    retarget = {n: row(n) for n in (*names, "ours_live_tick", "five_robots_s")}
    assert "converged" in SECTIONS["retarget"](retarget) and "mink" not in SECTIONS["retarget"](retarget)
    retarget |= {f"mink_{k}": row(f"mink_{k}") for k in ("fps", "error", "closest")}
    assert "mink, one step" in SECTIONS["retarget"](retarget | {"ours_to_mink": row("ours_to_mink")})
    loop = {n: row(n, "ms") for n in ("command_latency", "period_error", "tick", "missed_ticks")}
    assert "12 of 40 ticks missed" in SECTIONS["loop"](loop)
    assert "12.5 ms" in SECTIONS["stack"]({"ik_tick": row("ik_tick", "ms")})


def test_sections_beside_published_tables():
    six = {k: row(k, "ns", published_ns=88.6) for k in ("pp", "pl", "pt", "ll", "lt", "tt")}
    six |= {"coal_capsule_pair": row("coal_capsule_pair"), "lola": row("lola", segments=18, near_pairs=3.0)}
    assert "table 6.9" in SECTIONS["distance"](six) and "| lola | 12.5 µs |" in SECTIONS["distance"](six)
    names = [f"fd_{kind}_{s}" for kind in ("type2", "type3") for s in ("on", "dense", "sparse")]
    dynamics = {n: row(n, dof=30) for n in (*names, "world_step_lola")}
    text = SECTIONS["dynamics"](dynamics)
    assert "46.1 to 141, 1.41 to 1.67" in text and "MuJoCo" not in text and "30 degrees of freedom" in text
    tendons = ("jmm_neck_s", "jmm_scapula_s", "jmm_shoulder_s", "update_8x10", "update_60x80", "update_60x80_dense")
    rows = {n: row(n, source="", ratio="") for n in (*tendons, "three_groups", "three_groups_absolute")}
    rows["jmm_neck_s"]["source"], rows["update_8x10"]["ratio"] = "8579 + 5514", 10.4
    text = SECTIONS["tendons"](rows)
    assert "8579 + 5514 s" in text and "10.4 times slower (filterpy)" in text


def test_the_machine_is_named():
    text = page.markdown_page({}, MACHINE)
    assert text.startswith("# Measured\n") and "a processor, 2 cores" in text and "numpy 2.0" in text
