"""Tests that a change reaches: through names, fixtures, parameters and files; and which of them are left out."""

import shutil
import subprocess

import pytest

from humanoid_control.source_graph import SourceCache
from humanoid_control.source_names import read_source
from test import quick, reached
from test.reached import Change, ReachedTest, Suite, Tree, cut_at, reached_tests

SOURCES = {
    "humanoid_control/numbers.py": "BASE = 1.0\nSCALE = 2.0 * BASE\n\ndef scaled(x):\n    return SCALE * x\n\n"
    "def other(x):\n    return x\n\ndef load():\n    return open('limits.yaml')\n",
    "humanoid_control/table.py": "ROWS = []\n\ndef rows():\n    return ROWS\n\nROWS.append(1)\n",
    "test/conftest.py": "import pytest\nfrom humanoid_control import numbers\n\n"
    "@pytest.fixture\ndef scale():\n    return numbers.scaled(1.0)\n\n"
    "@pytest.fixture\ndef command():\n    import subprocess\n    return subprocess.run\n",
    "test/ik/conftest.py": "import pytest\n\n@pytest.fixture\ndef robot(scale):\n    return scale\n\n"
    "@pytest.fixture(autouse=True)\ndef ready():\n    return ready_number()\n\ndef ready_number():\n    return 1\n",
    "test/ik/test_solver.py": "import pytest\nfrom humanoid_control.numbers import BASE, other, scaled\n\n"
    "def test_by_fixture(robot):\n    assert robot\n\ndef test_other():\n    assert other(1)\n\n"
    "@pytest.mark.parametrize('x', [BASE])\ndef test_by_parameter(x):\n    assert x\n\n"
    "def test_direct():\n    assert scaled(1)\n\n"
    "def test_by_name(request):\n    assert request.getfixturevalue('scale')\n\n"
    "@pytest.mark.thorough\ndef test_long():\n    assert scaled(1)\n\n"
    "def test_process(command):\n    assert scaled(1)\n\n"
    "class TestAll:\n    def test_in_class(self, scale):\n        pass\n",
    "test/test_table.py": "import pytest\nfrom humanoid_control.table import rows\n\npytestmark = [pytest.mark.ros]\n\n"
    "def test_rows():\n    assert rows()\n",
    "test/test_files.py": "from humanoid_control.numbers import load\n\ndef test_load():\n    assert load()\n\n"
    "def test_nothing():\n    pass\n",
}
SOURCES |= {
    "humanoid_control/cli/main.py": "import importlib\n\nCOMMANDS = {'walk': 1, 'dance': 2}\n\n"
    "def main(words):\n    return importlib.import_module(f'humanoid_control.cli.{words[0]}') if COMMANDS else 0\n",
    "humanoid_control/cli/walk.py": "def run():\n    return 1\n",
    "humanoid_control/cli/dance.py": "def run():\n    return 2\n",
    "test/cli/test_main.py": "from humanoid_control.cli.main import COMMANDS, main\n\n"
    "def test_walk():\n    main(['walk'])\n\ndef test_dance():\n    main('dance --now'.split())\n\n"
    "def test_all():\n    for each in COMMANDS:\n        main([each])\n",
}
SOLVER = "test/ik/test_solver.py::"


def tree(edits=()):
    texts = dict(SOURCES)
    for path, old, new in edits:
        assert old in texts[path]
        texts[path] = texts[path].replace(old, new)
    return Tree({path: read_source(text) for path, text in texts.items()}, texts.__getitem__)


def reached_by(path, old="", new="", seconds=None):
    """Tests that an edit reaches, in their order, and the reason of those that are left out."""
    edits = [(path, old, new)] if old else []
    tests, count = reached_tests(Change(tree().sources, tree(edits), frozenset((path,))), seconds or {})
    assert count == 14
    return {test.nodeid.removeprefix(SOLVER): test.left_out for test in tests}


def test_an_edit_that_changes_no_code_reaches_nothing():
    assert not reached_by("humanoid_control/numbers.py", "BASE = 1.0", "BASE = 1.0  # why")


def test_a_constant_reaches_tests_through_fixtures_and_parameters():
    found = reached_by("humanoid_control/numbers.py", "1.0", "3.0")
    users = {"test_by_fixture", "test_by_parameter", "test_direct", "test_by_name", "TestAll"}
    assert found == dict.fromkeys(users, "") | {"test_long": "thorough", "test_process": "processes"}
    assert next(iter(found)) == "test_by_parameter"


def test_a_function_reaches_its_own_users_only():
    assert reached_by("humanoid_control/numbers.py", "return x\n", "return -x\n") == {"test_other": ""}


def test_an_edited_test_runs():
    assert reached_by("test/ik/test_solver.py", "other(1)", "other(2)") == {"test_other": ""}


def test_an_autouse_fixture_reaches_the_tests_of_its_folder():
    found = reached_by("test/ik/conftest.py", "return 1", "return 2")
    assert len(found) == 8 and not any(name.startswith("test/test_") for name in found)


def test_bare_statements_reach_the_users_of_their_module():
    assert reached_by("humanoid_control/table.py", "append(1)", "append(2)") == {"test/test_table.py::test_rows": "ros"}


def test_a_data_file_reaches_the_tests_of_what_names_it():
    assert reached_by("config/limits.yaml") == {"test/test_files.py::test_load": ""}


def test_a_data_file_that_nothing_names_reaches_the_nearest_tests():
    assert len(reached_by("humanoid_control/ik/unknown.yaml")) == 8


def test_a_command_reaches_the_tests_that_name_it_and_those_of_all_commands():
    found = reached_by("humanoid_control/cli/dance.py", "return 2", "return 3")
    assert found == {"test/cli/test_main.py::test_dance": "", "test/cli/test_main.py::test_all": ""}


def test_the_nearest_and_quickest_tests_fit_the_budget_first():
    seconds = {f"{SOLVER}{name}": k for k, name in enumerate(("test_direct", "test_by_name"), 1)}
    order = list(reached_by("humanoid_control/numbers.py", "2.0 *", "3.0 *", seconds))
    assert order.index("test_direct") < order.index("test_by_name")
    tests = [ReachedTest(str(k), 0, s, "") for k, s in enumerate((1.0, 5.0, 2.0))]
    assert [test.nodeid for test in cut_at(tests, 3.0)] == ["0", "2"]


def test_fixtures_of_nearer_files_come_first():
    edits = [("test/ik/conftest.py", "def ready_number", "@pytest.fixture\ndef scale():\n    pass\n\ndef ready_number")]
    suite = Suite(tree(edits))
    assert "test.ik.conftest:scale" in suite.dependencies("test.ik.test_solver", "test_by_fixture")
    assert "test.conftest:scale" not in suite.dependencies("test.ik.test_solver", "test_by_fixture")


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_change_is_found_in_a_repository(tmp_path):
    def git(*args):
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *args], check=True)

    for path, text in SOURCES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    (tmp_path / "humanoid_control" / "numbers.py").write_text("BASE = 1.0\n")
    (tmp_path / "test" / "test_new.py").write_text("def test_new():\n    pass\n")
    cache = SourceCache()
    assert reached.default_base(tmp_path) == "HEAD"
    change = reached.change_since("HEAD", cache, tmp_path)
    assert change.files == {"humanoid_control/numbers.py", "test/test_new.py"}
    found = [test.nodeid for test in reached_tests(change, {})[0]]
    assert "test/test_new.py::test_new" in found and f"{SOLVER}test_direct" in found
    git("add", ".")
    git("commit", "-qm", "change")
    assert reached.default_base(tmp_path) == "HEAD~1"
    again = reached.change_of("HEAD", cache, tmp_path)
    assert again.files == change.files and again.after.sources == change.after.sources
    assert again.after.text("test/test_new.py").startswith("def test_new")


def test_durations_are_summed_over_the_cases_of_a_test(tmp_path):
    (tmp_path / "report.xml").write_text(
        '<testsuite><testcase classname="test.ik.test_a" name="test_b[1]" time="1.5" />'
        '<testcase classname="test.ik.test_a" name="test_b[2]" time="2.0" />'
        '<testcase classname="test.ik.test_a.TestC" name="test_d" time="0.5" /></testsuite>'
    )
    cases = reached.durations_of_reports([tmp_path / "report.xml"])
    assert reached.seconds_of_functions(cases) == {"test/ik/test_a.py::test_b": 3.5, "test/ik/test_a.py::TestC": 0.5}


def test_the_line_says_what_is_left_out():
    plan = {"order": ["a", "b"], "count": 9, "cut": 3, "budget": 60.0, "left_out": {"ros": 2, "processes": 1}}
    assert quick._summary(plan, "HEAD") == (
        "2 of 9 tests depend on what has changed since HEAD; 3 more are beyond the budget of 60 s; "
        "left out: 1 processes, 2 ros; `make test` runs all"
    )
    assert quick._summary(plan | {"cut": 0, "left_out": {}}, "HEAD").endswith("since HEAD")
