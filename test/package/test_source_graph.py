"""The static graph of names: edits that change nothing, and the users that each name has."""

import pickle
from pathlib import Path

import pytest

from humanoid_control.source_graph import SourceCache, SourceGraph, blob_id, changed_definitions, read_sources
from humanoid_control.source_names import read_source

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = {
    "ours/__init__.py": "",
    "ours/jit.py": "import numba.core\ndef kernel(f):\n    return f\n",
    "ours/constants.py": "BASE = 2.0\nSCALE = 3.0 * BASE\nOTHER = 1.0\n",
    "ours/records.py": "from typing import NamedTuple\nfrom ours import tools\n\n"
    "class Pair(NamedTuple):\n    a: float\n    def shown(self):\n        return tools.shown(self.a)\n",
    "ours/tools.py": "def shown(x: float) -> str:\n    '''Text.'''\n    return str(x)\n\ndef never():\n    pass\n",
    "ours/solver.py": "from . import constants as c\nfrom .records import Pair\nfrom .jit import kernel\n\n"
    "@kernel\ndef solve(x):\n    y = Pair(x)\n    return c.SCALE * y.a\n\n"
    "@kernel\ndef other(x):\n    return c.OTHER * x\n\n"
    "def local(OTHER):\n    return [BASE for BASE in (OTHER,)]\n",
    "ours/face/__init__.py": "from typing import TYPE_CHECKING\nfrom ours import lazy\nif TYPE_CHECKING:\n"
    "    from ours.solver import solve as solve\n    from ours.face.deep import late as late\n"
    "__getattr__, __dir__, __all__ = lazy.attach(__name__, {'deep': ['late']})\n",
    "ours/face/deep.py": "TABLE = {}\n\ndef late():\n    return TABLE\n\nfor _k in (1, 2):\n    TABLE[_k] = str\n",
    "ours/lazy.py": "def attach(package, modules):\n    return package, modules, []\n",
    "ours/user.py": "import ours.face\nimport subprocess\n\ndef use():\n"
    "    from ours.face import solve\n    return solve(1.0)\n\n"
    "def use_late():\n    return ours.face.late()\n\ndef start():\n    subprocess.run('ours.solver')\n\n"
    "def name():\n    return 'ours.tools'\n",
}


def graph_of(sources):
    return SourceGraph({path: read_source(text) for path, text in sources.items()})


@pytest.fixture(scope="module")
def graph():
    return graph_of(SOURCES)


def edited(path, old, new):
    assert old in SOURCES[path]
    before, after = read_source(SOURCES[path]), read_source(SOURCES[path].replace(old, new))
    return changed_definitions({path: before}, {path: after})


@pytest.mark.parametrize(
    "path,old,new",
    [
        ("ours/constants.py", "BASE = 2.0\n", "# why\nBASE = 2.0  # exact\n\n"),
        ("ours/tools.py", "'''Text.'''\n", "'''Another text.\n\n    Of two lines.\n    '''\n"),
        ("ours/tools.py", "x: float) -> str:", "x) -> 'bytes':"),
    ],
    ids=["comment", "docstring", "annotation of a function"],
)
def test_what_does_not_run_changes_nothing(path, old, new):
    assert not edited(path, old, new)


@pytest.mark.parametrize(
    "path,old,new,changed",
    [
        ("ours/constants.py", "2.0", "4.0", {"ours.constants:BASE"}),
        ("ours/constants.py", "OTHER = 1.0", "MORE = 1.0", {"ours.constants:OTHER", "ours.constants:MORE"}),
        ("ours/records.py", "a: float", "a: int", {"ours.records:Pair", "ours.records:Pair.<fields>"}),
        ("ours/records.py", "tools.shown", "repr", {"ours.records:Pair"}),
        ("ours/solver.py", "[BASE for BASE in", "[each for each in", {"ours.solver:local"}),
        ("ours/face/deep.py", "(1, 2)", "(1, 3)", {"ours.face.deep:<module>"}),
    ],
)
def test_an_edit_changes_its_definition_only(path, old, new, changed):
    assert edited(path, old, new) == changed


def test_a_constant_two_files_away_has_exactly_its_users(graph):
    users = {"ours.constants:SCALE", "ours.solver:solve", "ours.user:use"}
    assert users <= graph.reached_by("ours.constants:BASE").keys()
    functions = {f"ours.{name}" for name in ("solver:other", "solver:local", "tools:shown", "user:use_late")}
    assert not functions & graph.reached_by("ours.constants:BASE").keys()
    assert graph.why("ours.user:use", "ours.constants:BASE") == [
        "ours.user:use", "ours.solver:solve", "ours.constants:SCALE", "ours.constants:BASE",
    ]  # fmt: skip
    assert graph.reached_by("ours.constants:BASE")["ours.user:use"] == 3
    assert graph.why("ours.user:use_late", "ours.constants:BASE") == []


def test_a_kernel_depends_on_the_fields_of_a_record_only(graph):
    assert graph.kernels == {"ours.solver:solve", "ours.solver:other"}
    assert "ours.records:Pair.<fields>" in graph.reach("ours.solver:solve")
    assert "ours.tools:shown" not in graph.reach("ours.solver:solve")
    assert "ours.tools:shown" in graph.reach("ours.records:Pair")


def test_a_public_name_leads_to_its_module(graph):
    assert graph.resolve("ours.user", "ours.face.late") == "ours.face.deep:late"
    assert "ours.face:__all__" not in graph.reach("ours.user:use_late")
    assert "ours.face.deep:late" in graph.reach("ours.face:__all__")


def test_every_definition_depends_on_the_statements_of_its_module(graph):
    assert "ours.face.deep:<module>" in graph.reach("ours.user:use_late")
    assert "ours.face.deep:<module>" not in graph.reach("ours.user:use")


def test_a_string_may_name_a_module(graph):
    assert {"ours.tools:shown", "ours.tools:never"} <= graph.reach("ours.user:name")
    assert {"subprocess:", "ours.solver:other"} <= graph.reach("ours.user:start")


def test_every_kernel_depends_on_all_of_what_teaches_the_compiler():
    more = SOURCES | {"ours/jit.py": SOURCES["ours/jit.py"] + "\ndef lowered():\n    pass\n"}
    assert "ours.jit:lowered" in graph_of(more).reach("ours.solver:other")


def test_an_import_for_its_effect_counts():
    effects = {
        "a/table.py": "ROWS = []\n",
        "a/rows.py": "from a.table import ROWS\nROWS.append(1)\nUNUSED = 2\n",
        "a/user.py": "from a.table import ROWS\nimport a.rows as _rows\n\ndef rows():\n    return ROWS\n",
    }
    assert "a.rows:<module>" in graph_of(effects).reach("a.user:rows")


def test_code_of_a_script_counts_where_the_module_runs_itself():
    text = "def work():\n    pass\n\ndef start():\n    return __file__\n\ndef other():\n    pass\n\n"
    graph = graph_of({"a/b.py": text + "if __name__ == '__main__':\n    work()\n"})
    assert "a.b:work" in graph.reach("a.b:start") and "a.b:work" not in graph.reach("a.b:other")


def test_sources_are_read_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text("X = 1\n")
    (tmp_path / "a" / "broken.py").write_text("X = (\n")
    kept = tmp_path / "cache" / "kept"
    first = read_sources(tmp_path, ("a",), SourceCache(kept))
    assert list(first["a/broken.py"].definitions) == ["<module>"]
    cache = SourceCache(kept)
    assert blob_id(b"X = 1\n") in cache and read_sources(tmp_path, ("a",), cache) == first
    kept.write_bytes(pickle.dumps("of another kind"))
    assert read_sources(tmp_path, ("a",), SourceCache(kept)) == first


def test_the_package_itself():
    graph = SourceGraph(read_sources(REPOSITORY, ("humanoid_control",)))
    kernel = "humanoid_control.numerics.cholesky:solve_banded"
    assert kernel in graph.kernels and "humanoid_control.compiled.jit:kernel" in graph.reach(kernel)
    assert graph.resolve("humanoid_control.numerics.cholesky", "kernel") == "humanoid_control.compiled.jit:kernel"
    assert len(graph.reach(kernel)) < 200
    users = graph.reached_by("humanoid_control.ik.velocity_program:solve_program")
    assert users["humanoid_control.ik.whole_body_ik:WholeBodyIk"] == 4
