"""Mutation run: one small change of the code at a time, and whether the tests of that room notice.

    python test/mutants.py retargeting -n 20          # or `make mutants ROOM=retargeting`
    python test/mutants.py ik/limits -n 10 --seed 2
    python test/mutants.py mocap --survivors          # try again only those that survived
    python test/mutants.py mocap/cleaning --tests test_cleaning.py  # by some files of its tests only

It works on a copy of the tree and goes on where it was interrupted; a mutant is tried again when its source has changed
or, where it survived, a test of its room or the choice of tests. Results are in `.mutants/<room>.json`. Test files
named like the changed module run first, then the quickest, until a test fails; that one has to pass without the change.
A test that has no end is stopped by the processor's time that it took, so other load does not count. Mutants that
change nothing that anybody could see are in `test/equivalent_mutants.yaml`, each with the reason; they are not counted.

Own, because libraries do not fit: mutmut puts a switch into every function, which a kernel cannot be compiled with;
cosmic-ray changes types in annotations too, takes no sample, and does not know that a room has its tests.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml

from humanoid_control.source_graph import SourceGraph, read_sources
from humanoid_control.terminal import console, print_json, progress, warn
from humanoid_control.warm_up.edits import name_uses

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = "humanoid_control"
PLACE = REPOSITORY / ".mutants"
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".mutants", ".hypothesis", "*.pyc", "build", "dist", "site", "*.egg-info", ".*_cache"
)
EQUIVALENT = "test/equivalent_mutants.yaml"
COMPILING = 60.0  # [s] a changed kernel is compiled anew, with all that it is compiled into
LEAST, SLOWER = 20.0, 4.0  # a test has no end after so many seconds, and so many times the slowest one
WAITING = 10.0  # or all of them after so many times what they take, and that, on the clock: one may wait for something
KILLED, SURVIVED, ENDLESS = "killed", "survived", "killed (no end)"
COMMAND = ["-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
# A compiled loop sees no Python signal handler, so the signal's own action ends the process.
TIMER = """import os, signal
signal.signal(signal.SIGPROF, signal.SIG_DFL)
def pytest_configure(config):
    config.addinivalue_line("markers", "timeout: of a plugin that is not loaded here")
def pytest_runtest_logstart():
    signal.setitimer(signal.ITIMER_PROF, float(os.environ["MUTANT_LIMIT"]))
pytest_runtest_logstart()
"""

COMPARE = {ast.Lt: "<= >", ast.LtE: "< >", ast.Gt: ">= <", ast.GtE: "> <", ast.Eq: "!=", ast.NotEq: "=="}
COMPARE |= {ast.Is: "is-not", ast.IsNot: "is", ast.In: "not-in", ast.NotIn: "in"}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*", ast.Pow: "*"}
ARITHMETIC |= {ast.BitAnd: "|", ast.BitOr: "&"}
CALLS = {"min": "max", "minimum": "maximum", "argmin": "argmax", "floor": "ceil", "sin": "cos", "any": "all"}
CALLS |= {"vstack": "hstack", "cumsum": "cumprod", "append": "extend", "fmin": "fmax", "nanmin": "nanmax"}
CALLS |= {new: old for old, new in CALLS.items()}
FIRST_ARGUMENT = ("abs", "sorted", "sqrt", "clip", "unique", "reversed")  # f(x, ...) becomes x


@dataclass(frozen=True)
class Mutant:
    """A change of one place: file below the repository, first and end offset, the new text, and where it is."""

    path: str
    begin: int
    end: int
    new: str
    line: int
    old: str

    @property
    def key(self) -> str:
        return f"{self.path}:{self.line} {self.old} -> {self.new} @{self.begin}"

    def applied(self, source: str) -> str:
        """The source with this change."""
        return source[: self.begin] + self.new + source[self.end :]

    def difference(self, source: str) -> str:
        """Lines that go and lines that come, as a diff has them."""
        lines = difflib.unified_diff(source.splitlines(), self.applied(source).splitlines(), n=0, lineterm="")
        return "\n".join(itertools.islice(lines, 3, None))

    def reason(self, source: str) -> str:
        """Why this change changes nothing, where somebody has found that out; else nothing."""
        file = REPOSITORY / EQUIVALENT
        rows = yaml.safe_load(file.read_text()) if file.is_file() else []
        here = {
            "file": self.path.removeprefix(f"{PACKAGE}/"),
            "line": source.splitlines()[self.line - 1].strip(),
            "was": self.old,
            "became": self.new,
        }
        return next((row["why"] for row in rows if here.items() <= row.items()), "")


def mutants_of(source: str, path: str) -> list[Mutant]:
    """All changes of a source: comparisons, arithmetic, constants, conditions, calls, returns, statements.

    Annotations, docstrings, decorators, messages of errors and imports stay as they are.

    Args:
        source: text of a module.
        path: of it, for the names of the mutants.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def offset(line: int, column: int) -> int:  # the parser counts bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found = {}
    for node, new in _changes(ast.parse(source)):
        begin, end = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
        mutant = Mutant(path, begin, end, new, node.lineno, " ".join(source[begin:end].split()))
        found[mutant.key] = mutant
    return list(found.values())


def is_change(mutant: Mutant, source: str) -> bool:
    """True where the changed source is Python, and not the same program in other words."""
    with contextlib.suppress(SyntaxError):
        return ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))
    return False


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """(node, its new text) for everything below a node."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.JoinedStr, ast.Assert)):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, (ast.expr, ast.stmt)):
        yield from ((node, new) for new in _texts(node))
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases", "ctx"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _texts(node: ast.expr | ast.stmt) -> Iterator[str]:
    """New texts of one node itself."""
    match node:
        case ast.Compare():
            for k, op in enumerate(node.ops):
                for new in COMPARE[type(op)].split():
                    yield _compared(node, k, new.replace("-", " "))
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            if not any(
                isinstance(side, (ast.JoinedStr, ast.List)) or _is_text(side) for side in (node.left, node.right)
            ):
                yield f"({_inner(node.left)} {ARITHMETIC[type(op)]} {_inner(node.right)})"
        case ast.AugAssign(op=op):
            yield "pass"
            if type(op) in ARITHMETIC:
                yield f"{ast.unparse(node.target)} {ARITHMETIC[type(op)]}= {ast.unparse(node.value)}"
        case ast.BoolOp(op=op):
            yield "(" + (" or " if isinstance(op, ast.And) else " and ").join(map(_inner, node.values)) + ")"
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool()):
            yield str(not node.value)
        case ast.Constant(value=int()):
            yield str(node.value + 1)
        case ast.Constant(value=float()):
            yield repr(2.0 * node.value or 1.0)
        case ast.IfExp():
            yield f"({_inner(node.orelse)} if {_inner(node.test)} else {_inner(node.body)})"
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            yield from _called(node, name)
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Continue():
            yield "break"
        case ast.Break():
            yield "continue"
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield "return None"


def _called(node: ast.Call, name: str) -> Iterator[str]:
    if name in CALLS:
        head = f"{ast.unparse(node.func.value)}." if isinstance(node.func, ast.Attribute) else ""
        arguments = [*map(ast.unparse, node.args), *(f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords if k.arg)]
        yield f"{head}{CALLS[name]}({', '.join(arguments)})"
    if name in FIRST_ARGUMENT and node.args and not isinstance(node.args[0], (ast.Starred, ast.GeneratorExp)):
        yield f"({ast.unparse(node.args[0])})"


def _compared(node: ast.Compare, k: int, new: str) -> str:
    operands = [_inner(side) for side in (node.left, *node.comparators)]
    signs = [_sign(op) for op in node.ops]
    signs[k] = new
    return "(" + operands[0] + "".join(f" {s} {o}" for s, o in zip(signs, operands[1:], strict=True)) + ")"


def _sign(op: ast.cmpop) -> str:
    text = ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))
    return text[2:-2]


def _inner(node: ast.expr) -> str:
    simple = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)
    return ast.unparse(node) if isinstance(node, simple) else f"({ast.unparse(node)})"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# -------- The run


def sampled(room: str, number: int, seed: int) -> list[Mutant]:
    """A sample of the changes of a room, a folder of it, or a file, in an order that does not depend on its size."""
    place = REPOSITORY / PACKAGE / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not all(f.is_file() for f in files) or not files:
        sys.exit(f"mutants: there is no room, folder or file {PACKAGE}/{room}")
    sources = {str(f.relative_to(REPOSITORY)): f.read_text() for f in files if f.name != "__init__.py"}
    everything = [m for path, source in sources.items() for m in mutants_of(source, path)]
    random.Random(seed).shuffle(everything)
    return list(itertools.islice((m for m in everything if is_change(m, sources[m.path])), number))


class Copy:
    """A copy of the tree in which mutants are tried."""

    def __init__(self, room: str, marks: str, tests: str = "test_*.py") -> None:
        self.tree, self.kernels = PLACE / "tree", PLACE / "kernels"
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(REPOSITORY, self.tree, ignore=LEFT_OUT)
        self.tests = self.tree / "test" / room.split("/")[0].removesuffix(".py")
        if not self.tests.is_dir():
            sys.exit(f"mutants: there are no tests test/{self.tests.name}")
        if not any(self.tests.rglob(tests)):
            sys.exit(f"mutants: there are no tests {tests} below test/{self.tests.name}")
        self.marks, self.pattern = marks, tests
        self.seconds: dict[str, float] = {}  # that the tests of a file take
        self.slowest = 0.0  # [s] test
        self.passing: set[str] = set()  # tests, without any change
        self.graph: SourceGraph | None = None
        data = REPOSITORY.parent / "shared" / "data"
        self.env = {"OMP_NUM_THREADS": "1", "HUMANOID_TEST_DATA": str(data), **os.environ}
        (PLACE / "mutant_timer.py").write_text(TIMER)
        self.env["PYTHONPATH"] = f"{self.tree}{os.pathsep}{PLACE}"
        self.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and some take a second to load
        # Kernels are kept beside their sources, so those that the repository has are here already.
        self.env.pop("NUMBA_CACHE_DIR", None)
        for kept in self.kernels.rglob("*.nb[ci]"):
            _link_newer(kept, self.tree / kept.relative_to(self.kernels))
        self.keep_kernels()
        # Byte code is kept by a file's second and size, which a change and its undoing may share; so by its content.
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        by_content = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", PACKAGE]
        subprocess.run([sys.executable, *by_content], cwd=self.tree, check=True)

    def stamp(self, *paths: Path) -> str:
        """Hash of files, and of those in folders."""
        digest = hashlib.sha256()
        for path in paths:
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    def ordered(self, first: str) -> list[str]:
        """Files of tests: those of a module's own name first, then the quickest."""
        files = {str(f.relative_to(self.tree)): f for f in sorted(self.tests.rglob(self.pattern))}
        return sorted(files, key=lambda f: (not files[f].name.startswith(f"test_{first}"), self.seconds.get(f, 0.0)))

    def test(self, what: list[str], compiling: float = COMPILING) -> tuple[str, str]:
        """Run some tests, in this order, until one fails: what happened, and the test that failed.

        Args:
            what: arguments of pytest.
            compiling: [s] processor's time that a test may take longer.
        """
        limit = LEAST + SLOWER * self.slowest + compiling  # of the processor, for one test
        report, whole = PLACE / "report.xml", WAITING * (limit + sum(self.seconds.values()))
        report.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, *COMMAND, "-p", "mutant_timer", f"--junitxml={report}", "-m", self.marks, *what],
            cwd=self.tree,
            env={**self.env, "MUTANT_LIMIT": str(limit)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=whole)
        except subprocess.TimeoutExpired:
            return ENDLESS, f"after {whole:.0f} s on the clock"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode == -signal.SIGPROF:
            return ENDLESS, f"after {limit:.0f} s of the processor in one test"
        self._take_seconds(report)
        if process.returncode == 0:
            return SURVIVED, ""
        failed = [line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return KILLED, failed[0] if failed else out[-160:]

    def _take_seconds(self, report: Path) -> None:
        """Remember how long files of tests took, at most; the last of them may not have been run to its end."""
        here: dict[str, float] = {}
        if not report.is_file():  # the process ended before it was written
            return
        for case in ElementTree.parse(report).iter("testcase"):
            file, seconds = case.get("file", ""), float(case.get("time", 0.0))
            here[file] = here.get(file, 0.0) + seconds
            self.slowest = max(self.slowest, seconds)
        for file, seconds in here.items():
            self.seconds[file] = max(seconds, self.seconds.get(file, 0.0))

    def is_compiled_in(self, path: str) -> bool:
        """True where an edit of this file may drop kernels, which are then compiled again."""
        if self.graph is None:
            self.sources = read_sources(REPOSITORY, (PACKAGE,))
            self.graph = SourceGraph(self.sources)
        return bool(name_uses(self.graph, self.sources, path, None))

    def keep_kernels(self) -> None:
        """Keep the kernels of the unchanged sources for `forget_kernels`, and for the next run."""
        shutil.rmtree(self.kernels, ignore_errors=True)
        for file in self.tree.rglob("*.nb[ci]"):
            _link_newer(file, self.kernels / file.relative_to(self.tree))

    def forget_kernels(self) -> None:
        """Bring back the kernels as they were: a changed one takes the place of the unchanged on disk."""
        for file in self.tree.rglob("*.nb[ci]"):
            kept = self.kernels / file.relative_to(self.tree)
            if not (kept.is_file() and file.samefile(kept)):
                file.unlink()
        for kept in self.kernels.rglob("*.nb[ci]"):
            _link_newer(kept, self.tree / kept.relative_to(self.kernels))

    def test_mutant(self, mutant: Mutant) -> tuple[str, str]:
        """Run the tests with a change, and take it back. Ends the run where the test that fails does so without it."""
        file = self.tree / mutant.path
        source = file.read_text()
        try:
            file.write_text(mutant.applied(source))
            compiling = COMPILING if self.is_compiled_in(mutant.path) else 0.0
            result, by = self.test(self.ordered(file.stem), compiling)
        finally:
            file.write_text(source)
            self.forget_kernels()
        test = by.partition(" - ")[0]
        if result == KILLED and test not in self.passing:
            alone, said = self.test([test] if "::" in test else ["--collect-only", str(self.tests)])
            if alone != SURVIVED and "::" in test:  # its name may not be all of it
                alone, said = self.test([test.partition("::")[0]])
            self.keep_kernels()
            if alone != SURVIVED:
                sys.exit(f"mutants: a test fails without any change: {said}")
            self.passing.add(test)
        return result, by[:160]


def _link_newer(source: Path, to: Path) -> None:
    """A second name for a file that is only ever replaced, unless there is a newer one."""
    if not to.is_file() or to.stat().st_mtime < source.stat().st_mtime:
        to.parent.mkdir(parents=True, exist_ok=True)
        to.unlink(missing_ok=True)
        os.link(source, to)


def run(
    room: str, number: int, seed: int, marks: str, survivors: bool, tests: str = "test_*.py", show: bool = True
) -> dict:
    """Try a sample of mutants; the results, also written to `.mutants/<room>.json` after each."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / ".gitignore").write_text("*\n")
    results = PLACE / f"{room.replace('/', '_').removesuffix('.py')}.json"
    before = json.loads(results.read_text()) if results.is_file() else {}
    known = before.get("mutants", {})
    chosen = sampled(room, number, seed)
    copy = Copy(room, marks, tests)
    tests_stamp = f"{copy.stamp(*sorted(copy.tests.rglob(tests)))} {marks}"
    stamps = {m.path: copy.stamp(copy.tree / m.path) for m in chosen}
    if survivors:
        chosen = [m for m in chosen if known.get(m.key, {}).get("result") == SURVIVED]
    waiting = [m for m in chosen if not _is_known(known.get(m.key), stamps[m.path], tests_stamp)]
    copy.seconds, copy.slowest = before.get("seconds", {}), before.get("slowest", 0.0)
    with progress(f"mutants of {room}", len(chosen), quiet=not show) as bar:
        for k, mutant in enumerate(waiting):
            bar(len(chosen) - len(waiting) + k, f"{mutant.path}:{mutant.line}")
            result, by = copy.test_mutant(mutant)
            row = {**asdict(mutant), "result": result, "by": by, "source": stamps[mutant.path], "tests": tests_stamp}
            known[mutant.key] = row
            kept = {"room": room, "seconds": copy.seconds, "slowest": copy.slowest, "mutants": known}
            part = results.with_suffix(".part")
            part.write_text(json.dumps(kept, indent=1))
            os.replace(part, results)
    sources = {path: (REPOSITORY / path).read_text() for path in stamps}
    rows = [
        {**known[m.key], "diff": m.difference(sources[m.path]), "equivalent": m.reason(sources[m.path])} for m in chosen
    ]
    killed = sum(r["result"] != SURVIVED for r in rows)
    same = sum(r["result"] == SURVIVED and bool(r["equivalent"]) for r in rows)
    return {"room": room, "seed": seed, "mutants": rows, "killed": killed, "equivalent": same}


def _is_known(row: dict | None, source: str, tests: str) -> bool:
    return row is not None and row["source"] == source and (row["result"] != SURVIVED or row["tests"] == tests)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python test/mutants.py", description="How much the tests of a room notice.")
    parser.add_argument("room", help="a room, a folder of it, or a file: ik, ik/limits, ik/follower")
    parser.add_argument("-n", "--number", type=int, default=20, help="how many mutants (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--marks", default="not ros and not browser", help="of the tests (not ros and not browser)")
    parser.add_argument("--tests", default="test_*.py", metavar="PATTERN", help="files of tests of the room (all)")
    parser.add_argument("--survivors", action="store_true", help="only those that survived before")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    found = run(args.room, args.number, args.seed, args.marks, args.survivors, args.tests, not args.json)
    if args.json:
        print_json(found)
        return 0
    for row in found["mutants"]:
        if row["result"] == SURVIVED and not row["equivalent"]:
            console.print(f"survived: {row['path'].removeprefix(PACKAGE + '/')}:{row['line']}", style="bold")
            console.print(row["diff"], markup=False, highlight=False)
        if row["result"] == ENDLESS:
            console.print(f"{row['result']} {row['by']}: {row['path'].removeprefix(PACKAGE + '/')}:{row['line']}")
    total = len(found["mutants"])
    console.print(
        f"{args.room}, seed {args.seed}: {found['killed']} of {total - found['equivalent']} mutants noticed"
        f" ({found['equivalent']} more change nothing: {EQUIVALENT})"
    )
    if not total:
        warn("nothing to try")
    return 0


if __name__ == "__main__":
    sys.exit(main())
