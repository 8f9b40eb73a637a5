"""Kernels that an edit drops: which, why, and which of them a change since the last commit drops."""

import shutil
import subprocess

import pytest

from humanoid_control.cli.main import main
from humanoid_control.errors import ConfigError
from humanoid_control.warm_up.edits import PACKAGE_FOLDER as ROOT
from humanoid_control.warm_up.edits import explain_edit

SOURCES = {
    "jit.py": "def kernel(f):\n    return f\n",
    "low.py": "BASE = 1.0\nSCALE = 2.0 * BASE\nUNUSED = 3.0\n",
    "records.py": "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    a: float\n\n"
    "    def sum(self):\n        return 1\n",
    "first.py": "from ours.jit import kernel\nfrom ours import low, records\n\n"
    "@kernel\ndef first(x):\n    return records.Pair(x * low.SCALE)\n\n@kernel\ndef second(x):\n    return first(x)\n\n"
    "@kernel\ndef third(x):\n    return x\n",
    "lanes.py": "import numba.extending\nfrom ours import jit\n\ndef lanes(x):\n    return x\n\n"
    "def lowered():\n    pass\n\n"
    "@jit.kernel\ndef fourth(x):\n    return lanes(x)\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "work" / "ours"
    root.mkdir(parents=True)
    for name, text in SOURCES.items():
        (root / name).write_text(text)
    return root


def explained(package, name):
    return list(explain_edit(package / name, package))


def test_each_name_lists_its_kernels_with_the_chain(package):
    assert explained(package, "low.py") == [
        "ours/low.py: an edit can drop 2 of 4 kernels",
        "  BASE: 2 kernels",
        "    first: first > low: SCALE > BASE",
        "    first: second > first > low: SCALE > BASE",
        "  SCALE: 2 kernels",
        "    first: first > low: SCALE",
        "    first: second > first > low: SCALE",
        "no earlier version in git: all names count as unchanged",
    ]


def test_a_record_counts_by_its_fields(package):
    assert "  fields of Pair: 2 kernels" in explained(package, "records.py")


def test_any_edit_of_what_extends_the_compiler_drops_all_its_users(package):
    assert explained(package, "lanes.py")[:2] == [
        "ours/lanes.py: an edit can drop 1 of 4 kernels",
        "  any name: 1 kernel",
    ]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_changed_names_come_first_and_name_the_kernels_that_are_dropped(package):
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(package), *command], check=True)
    (package / "low.py").write_text(SOURCES["low.py"].replace("UNUSED = 3.0", "# why\nUNUSED = 3.0"))
    assert explained(package, "low.py")[-1] == "no code has changed since the last commit: no kernel is dropped"
    (package / "low.py").write_text(SOURCES["low.py"].replace("2.0 *", "4.0 *"))
    told = explained(package, "low.py")
    assert told[1] == "  SCALE (changed): 2 kernels" and "  BASE: 2 kernels" in told
    assert told[-1] == "changed since the last commit: SCALE; 2 kernels are dropped"
    (package / "first.py").write_text(SOURCES["first.py"].replace("def third", "def renamed"))
    told = explained(package, "first.py")
    assert {"  renamed (changed): 1 kernel", "  third (changed): 1 kernel"} <= set(told)


@pytest.mark.parametrize("name,reason", [("gone.py", "not found"), ("notes.md", "is not a source of ours")])
def test_a_file_that_is_not_a_source_is_refused(package, name, reason):
    (package / "notes.md").touch()
    with pytest.raises(ConfigError, match=reason):
        explained(package, name)


def test_the_command_explains_a_source_of_the_package(capsys):
    assert main(["warm", "--explain", str(ROOT / "numerics" / "vec3.py")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("humanoid_control/numerics/vec3.py: an edit can drop ") and len(lines) > 20
    assert main(["warm", "--explain", "nowhere.py"]) == 2
    assert capsys.readouterr().err == "humanoid warm: nowhere.py not found: give a source file of humanoid_control\n"
