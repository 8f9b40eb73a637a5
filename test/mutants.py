"""Mutation run: one small change of the code at a time, and whether the tests of that room notice.

    python test/mutants.py retargeting -n 20          # or `make mutants ROOM=retargeting`
    python test/mutants.py ik/limits -n 10 --seed 2
    python test/mutants.py mocap --survivors          # try again only those that survived
    python test/mutants.py mocap/gaps --tests test_gaps.py   # by some files of its tests only

It works on a copy of the tree and goes on where it was interrupted; a mutant is tried again when its source has changed
or, where it survived, a test of its room. Results are in `.mutants/<room>.json`.

Own, because libraries do not fit: mutmut puts a switch into every function, which a kernel cannot be compiled with;
cosmic-ray changes types in annotations too, takes no sample, and does not know that a room has its tests.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from humanoid_control.terminal import console, print_json, progress, table, warn

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = "humanoid_control"
PLACE = REPOSITORY / ".mutants"
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".mutants", ".hypothesis", "__pycache__", "build", "dist", "site", "*.egg-info", ".*_cache"
)
COMPILING = 150.0  # [s] a changed kernel is compiled anew, with all that it is compiled into
SLOWER = 4.0  # an endless loop is told by so many times the unchanged duration
KILLED, SURVIVED, ENDLESS = "killed", "survived", "killed (no end)"

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
        self.tree = PLACE / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(REPOSITORY, self.tree, ignore=LEFT_OUT)
        self.tests = self.tree / "test" / room.split("/")[0].removesuffix(".py")
        if not self.tests.is_dir():
            sys.exit(f"mutants: there are no tests test/{self.tests.name}")
        if not any(self.tests.rglob(tests)):
            sys.exit(f"mutants: there are no tests {tests} below test/{self.tests.name}")
        self.marks, self.pattern = marks, tests
        data = REPOSITORY.parent / "shared" / "data"
        self.env = {"OMP_NUM_THREADS": "1", "HUMANOID_TEST_DATA": str(data), **os.environ, "PYTHONPATH": str(self.tree)}
        # Byte code is kept by a file's second and size, which a change and its undoing may share.
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        self.env["NUMBA_CACHE_DIR"] = str(PLACE / "kernels")

    def stamp(self, *paths: Path) -> str:
        """Hash of files, and of those in folders."""
        digest = hashlib.sha256()
        for path in paths:
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                digest.update(file.read_bytes())
        return digest.hexdigest()[:16]

    def test(self, first: str, limit: float) -> tuple[str, str]:
        """Run the tests, those of a module's own name first: what happened, and the test that failed."""
        files = sorted(self.tests.rglob(self.pattern))
        files.sort(key=lambda f: not f.name.startswith(f"test_{first}"))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "-m",
            self.marks,
        ]
        process = subprocess.Popen(
            [*command, *(str(f.relative_to(self.tree)) for f in files)],
            cwd=self.tree,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return ENDLESS, f"after {limit:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            return SURVIVED, ""
        lines = [line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return KILLED, lines[0][:160] if lines else out[-160:]

    def test_mutant(self, mutant: Mutant, limit: float) -> tuple[str, str]:
        """Run the tests with a change, and take it back."""
        file = self.tree / mutant.path
        source = file.read_text()
        try:
            file.write_text(mutant.applied(source))
            return self.test(file.stem, limit)
        finally:
            file.write_text(source)


def run(
    room: str, number: int, seed: int, marks: str, survivors: bool, tests: str = "test_*.py", show: bool = True
) -> dict:
    """Try a sample of mutants; the results, also written to `.mutants/<room>.json` after each."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / ".gitignore").write_text("*\n")
    results = PLACE / f"{room.replace('/', '_').removesuffix('.py')}.json"
    known = json.loads(results.read_text())["mutants"] if results.is_file() else {}
    chosen = sampled(room, number, seed)
    copy = Copy(room, marks, tests)
    tests_stamp = copy.stamp(*sorted(copy.tests.rglob(tests)))
    stamps = {m.path: copy.stamp(copy.tree / m.path) for m in chosen}
    if survivors:
        chosen = [m for m in chosen if known.get(m.key, {}).get("result") == SURVIVED]
    waiting = [m for m in chosen if not _is_known(known.get(m.key), stamps[m.path], tests_stamp)]
    limit = COMPILING
    if waiting:
        begin = time.monotonic()
        result, said = copy.test("", 3600.0)
        if result != SURVIVED:
            sys.exit(f"mutants: the tests fail without any change: {said}")
        limit += SLOWER * (time.monotonic() - begin)
    with progress(f"mutants of {room}", len(chosen), quiet=not show) as bar:
        for k, mutant in enumerate(waiting):
            bar(len(chosen) - len(waiting) + k, f"{mutant.path}:{mutant.line}")
            result, by = copy.test_mutant(mutant, limit)
            row = {**asdict(mutant), "result": result, "by": by, "source": stamps[mutant.path], "tests": tests_stamp}
            known[mutant.key] = row
            part = results.with_suffix(".part")
            part.write_text(json.dumps({"room": room, "mutants": known}, indent=1))
            os.replace(part, results)
    rows = [known[m.key] for m in chosen]
    return {"room": room, "seed": seed, "mutants": rows, "killed": sum(r["result"] != SURVIVED for r in rows)}


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
    alive = [r for r in found["mutants"] if r["result"] == SURVIVED]
    cells = [[f"{r['path'].removeprefix(PACKAGE + '/')}:{r['line']}", r["old"][:60], r["new"][:60]] for r in alive]
    if alive:
        table("survived: write a test, or find out why nothing changes", ["where", "was", "became"], cells)
    total = len(found["mutants"])
    console.print(f"{args.room}, seed {args.seed}: {found['killed']} of {total} mutants noticed")
    if not total:
        warn("nothing to try")
    return 0


if __name__ == "__main__":
    sys.exit(main())
