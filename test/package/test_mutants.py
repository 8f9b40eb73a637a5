"""The mutation run: which changes it makes, which it leaves alone, and that it tells a killed one from a survivor."""

import ast
import json
import os

import pytest
import yaml

from test import mutants

SOURCE = '''"""A module of 3 sides."""

from typing import Optional

SIZE: Optional[int] = 4


class Half(Exception):
    """Half of 1."""


def bigger(a: float | None, b=2.5):
    """The bigger of 2."""
    if not a < b and a is not None:
        raise ValueError("more than 7")
    for k in range(3):
        if k == 2:
            continue
        a += k * 2
    print(f"{a:.3f}")
    return max(a, -b) if a else [abs(x) for x in (1, 2)]
'''


def test_every_sort_of_change_is_made_once_and_is_python():
    found = {(m.old, m.new) for m in mutants.mutants_of(SOURCE, "a.py")}
    assert found == {
        ("4", "5"),
        ("2.5", "5.0"),
        ("not a < b and a is not None", "((not a < b) or (a is not None))"),
        ("not a < b", "(a < b)"),
        ("a < b", "(a <= b)"),
        ("a < b", "(a > b)"),
        ("a is not None", "(a is None)"),
        ("3", "4"),
        ("k == 2", "(k != 2)"),
        ("2", "3"),
        ("continue", "break"),
        ("a += k * 2", "pass"),
        ("a += k * 2", "a -= k * 2"),
        ("k * 2", "(k / 2)"),
        ('print(f"{a:.3f}")', "pass"),
        ("return max(a, -b) if a else [abs(x) for x in (1, 2)]", "return None"),
        ("max(a, -b) if a else [abs(x) for x in (1, 2)]", "(([abs(x) for x in (1, 2)]) if a else max(a, -b))"),
        ("max(a, -b)", "min(a, -b)"),
        ("-b", "(b)"),
        ("abs(x)", "(x)"),
        ("1", "2"),
    }
    for m in mutants.mutants_of(SOURCE, "a.py"):
        assert mutants.is_change(m, SOURCE)
        changed = ast.unparse(ast.parse(m.applied(SOURCE)))
        assert changed != ast.unparse(ast.parse(SOURCE))
        assert m.applied(SOURCE)[: m.begin] == SOURCE[: m.begin]


def test_places_are_right_behind_letters_of_two_bytes():
    source = 'x = {"ä": 1, "µ": 2}\n'
    assert {m.applied(source) for m in mutants.mutants_of(source, "a.py")} == {
        'x = {"ä": 2, "µ": 2}\n',
        'x = {"ä": 1, "µ": 3}\n',
    }


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A repository with one room and one test that notices some changes."""
    for folder in ("toy/room", "test/room"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "toy/room/signs.py").write_text("def positive(x):\n    return x > 0\n")
    (tmp_path / "test/room/test_signs.py").write_text(
        "import time\n\nfrom toy.room.signs import positive\n\n\ndef test_positive():\n    time.sleep(0.01)\n"
        "    assert positive(3) and not positive(-1)\n"
    )
    monkeypatch.setattr(mutants, "REPOSITORY", tmp_path)
    monkeypatch.setattr(mutants, "PLACE", tmp_path / ".mutants")
    monkeypatch.setattr(mutants, "PACKAGE", "toy")
    return tmp_path


@pytest.mark.nightly
def test_changes_that_change_nothing_are_named_with_a_reason_and_not_counted(house):
    (house / "test/equivalent_mutants.yaml").write_text(
        '- {file: room/signs.py, line: "return x > 0", was: x > 0, became: (x >= 0), why: "never asked about 0"}\n'
        '- {file: room/signs.py, line: "return x > 1", was: "0", became: "1", why: "the line was another"}\n'
    )
    found = mutants.run("room", 9, 1, "not ros", survivors=False, show=False)
    assert (found["killed"], found["equivalent"], len(found["mutants"])) == (2, 1, 4)
    of = {(m["old"], m["new"]): m for m in found["mutants"]}
    assert of["x > 0", "(x >= 0)"]["equivalent"] == "never asked about 0"
    assert of["0", "1"]["equivalent"] == "" and of["0", "1"]["diff"] == "-    return x > 0\n+    return x > 1"


def test_every_change_said_to_change_nothing_is_one_of_the_code_as_it_is():
    rows = yaml.safe_load((mutants.REPOSITORY / mutants.EQUIVALENT).read_text())
    for row in rows:
        path = f"{mutants.PACKAGE}/{row['file']}"
        source = (mutants.REPOSITORY / path).read_text()
        assert len(row["why"]) > 20
        found = [m for m in mutants.mutants_of(source, path) if (m.old, m.new) == (row["was"], row["became"])]
        assert any(m.reason(source) == row["why"] for m in found), row


def test_a_test_file_of_the_module_s_name_runs_first_and_then_the_quickest(house):
    said = "from time import sleep\n\n\ndef test():\n    sleep({})\n    open('order', 'a').write('{} ')\n"
    for name, seconds in {"slow": 0.2, "quick": 0.0, "signs": 0.1}.items():
        (house / f"test/room/test_{name}.py").write_text(said.format(seconds, name))
    mutants.PLACE.mkdir()
    copy = mutants.Copy("room", "")
    assert copy.test(copy.ordered("")) == (mutants.SURVIVED, "")
    (copy.tree / "order").unlink()
    assert copy.test(copy.ordered("signs")) == (mutants.SURVIVED, "")
    assert (copy.tree / "order").read_text().split() == ["signs", "quick", "slow"]


def test_kernels_of_a_change_do_not_stay(house):
    here = house / "toy/room/__pycache__"
    here.mkdir()
    for name in ("signs.nbi", "signs.1.nbc"):
        (here / name).write_text("of the repository")
    mutants.PLACE.mkdir()
    copy = mutants.Copy("room", "")
    there = copy.tree / "toy/room/__pycache__"
    (there / "signs.2.nbc").write_text("compiled by the tests")
    copy.keep_kernels()
    for name in ("signs.nbi", "signs.3.nbc"):  # as numba writes: a new file takes the place
        (there / "new").write_text("of a mutant")
        os.replace(there / "new", there / name)
    copy.forget_kernels()
    unchanged = {"signs.nbi": "of the repository", "signs.1.nbc": "of the repository"}
    unchanged["signs.2.nbc"] = "compiled by the tests"
    assert {f.name: f.read_text() for f in there.glob("*.nb?")} == unchanged
    again = mutants.Copy("room", "")
    assert {f.name: f.read_text() for f in there.glob("*.nb?")} == unchanged and again.tree == copy.tree
    assert (here / "signs.nbi").read_text() == "of the repository"


def test_changes_of_kernels_get_time_to_compile(house):
    (house / "toy/jit.py").write_text("def kernel(f):\n    return f\n")
    imports = "from toy.jit import kernel\nfrom toy.room.signs import positive\n\n\n"
    kernel = imports + "@kernel\ndef f(x):\n    return positive(x)\n"
    (house / "toy/room/kernels.py").write_text(kernel)
    (house / "toy/room/plain.py").write_text("def f(x):\n    return x\n")
    copy = mutants.Copy("room", "")
    assert copy.is_compiled_in("toy/room/signs.py") and copy.is_compiled_in("toy/room/kernels.py")
    assert not copy.is_compiled_in("toy/room/plain.py")


def results(found):
    return {(m["old"], m["new"]): m["result"] for m in found["mutants"]}


def test_survivors_are_told_kept_and_tried_again_when_a_test_has_changed(house, monkeypatch):
    marks = "not ros"
    found = mutants.run("room", 9, 1, marks, survivors=False, show=False)
    alive = {("x > 0", "(x >= 0)"), ("0", "1")}
    dead = {("x > 0", "(x < 0)"), ("return x > 0", "return None")}
    assert {k for k, result in results(found).items() if result == mutants.SURVIVED} == alive
    assert set(results(found)) == alive | dead and found["killed"] == 2
    assert (house / "toy/room/signs.py").read_text() == "def positive(x):\n    return x > 0\n"

    tried = []
    test_mutant = mutants.Copy.test_mutant
    monkeypatch.setattr(mutants.Copy, "test_mutant", lambda *a: tried.append(a[1].old) or test_mutant(*a))
    mutants.run("room", 9, 1, marks, survivors=False, show=False)
    assert not tried, "nothing has changed"
    assert json.loads((house / ".mutants/room.json").read_text())["slowest"] > 0
    mutants.run("room", 9, 1, "", survivors=True, show=False)
    assert sorted(tried) == ["0", "x > 0"], "other tests may notice them"
    tried.clear()
    with (house / "test/room/test_signs.py").open("a") as f:
        f.write("    assert not positive(0) and positive(1)\n")
    found = mutants.run("room", 9, 1, marks, survivors=True, show=False)
    assert sorted(tried) == ["0", "x > 0"] and found["killed"] == 2 == len(found["mutants"])


@pytest.mark.nightly
def test_an_endless_loop_counts_as_noticed_and_tests_that_fail_anyway_end_the_run(house, monkeypatch):
    monkeypatch.setattr(mutants, "LEAST", 1.0)
    (house / "toy/room/signs.py").write_text("def positive(x):\n    while not x:\n        x = 3\n    return x\n")
    (house / "test/room/test_signs.py").write_text(
        "from toy.room.signs import positive\n\n\ndef test_positive():\n    assert positive(2)\n"
    )
    found = mutants.run("room", 9, 1, "", survivors=False, show=False)
    assert results(found)["not x", "(x)"] == mutants.ENDLESS
    (house / "test/room/test_signs.py").write_text("def test_never():\n    assert False\n")
    with pytest.raises(SystemExit, match="fails without any change"):
        mutants.run("room", 9, 1, "", survivors=False, show=False)
