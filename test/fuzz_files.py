"""Damaged files of every kind that the package reads: each must load, or be refused in one line.

    python test/fuzz_files.py -n 10000 --seed 1        # all kinds
    python test/fuzz_files.py --kind urdf --seed 1 --case 4711 --keep /tmp/case   # one again, with its traceback

Files are read in forks, which may compute for two seconds a file and take 400 MB more than before. What a
reader does is counted: loaded, refused (one line of a HumanoidError that names the file), or a failure: anything else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __name__ == "__main__":  # the standard library has a package of this name too
    sys.modules["test"] = types.ModuleType("test")
    sys.modules["test"].__path__ = [str(Path(__file__).resolve().parent)]  # type: ignore[attr-defined]

from humanoid_control.errors import HumanoidError
from test.damaged_contents import arrays, damaged_network, damaged_value
from test.good_files import KINDS

SECONDS, MEMORY, PATIENCE = 2, 400_000_000, 60  # of computing; bytes; seconds until a reader that waits is ended
BATCH = 25  # files read by one fork; each that is neither loaded nor refused is read again in one of its own
LOADED, REFUSED = "loaded", "refused"

# -------- Damage

NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
NUMBERS = (
    b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e39", b"-1", b"0", b"-0", b"1e-320", b"9" * 400, b"", b"x", b"1,5",
    b"0x10", b"1e400", b"99999999999", b"-99999999999999999999", b"1 2", b"true", b"null", b"[]", b"{}", b"~", b"1e9",
    b"\xef\xbc\x91", b"0x" + b"f" * 5000, b"[[1]]", b"'1'", b"&a 1", b"*a", b"!!binary aaaa", b"2001-01-01", b".5.",
    b"1_000", b"-5", b"1e6",
)  # fmt: skip
WORDS = (b"", b"\xff\xfe", b"x" * 300, b"\xe2\x80\xae", b"../../etc/passwd", b"null", b"[]", b"{a: b}", b"5", b"nan")
NESTS = (b"[", b"{", b"<a>", b"(", b'{"a":', b"- ", b"a: {", b"!!a ", b"<link name='a'>", b"? ")
INTEGERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)

Damage = Callable[[bytes, np.random.Generator], bytes]


def _at(data: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(data) + 1))


def _span(data: bytes, rng: np.random.Generator, most: int = 200) -> slice:
    begin = _at(data, rng)
    return slice(begin, begin + int(rng.integers(1, most)))


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for k in rng.integers(0, max(len(out), 1), int(rng.choice([1, 2, 8, 40]))):
        if out:
            out[k] ^= 1 << int(rng.integers(8))
    return bytes(out)


def random_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    at = _span(data, rng, 40)
    return data[: at.start] + rng.bytes(at.stop - at.start) + data[at.stop :]


def cut_off(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: _at(data, rng)]


def cut_out(data: bytes, rng: np.random.Generator) -> bytes:
    at = _span(data, rng)
    return data[: at.start] + data[at.stop :]


def double(data: bytes, rng: np.random.Generator) -> bytes:
    at = _span(data, rng, 600)
    return data[: at.stop] + data[at] * int(rng.choice([1, 3, 500])) + data[at.stop :]


def move(data: bytes, rng: np.random.Generator) -> bytes:
    at, to = _span(data, rng), _at(data, rng)
    return data[:to] + data[at] + data[to:]


def integer(data: bytes, rng: np.random.Generator) -> bytes:
    width = int(rng.choice([1, 2, 4, 8]))
    value = int(rng.choice(np.array(INTEGERS, dtype=object))) % 256**width
    at = _at(data, rng)
    return data[:at] + value.to_bytes(width, "little" if rng.random() < 0.9 else "big") + data[at + width :]


def _replaced(data: bytes, rng: np.random.Generator, what: re.Pattern[bytes], by: Callable[[], bytes]) -> bytes:
    found = list(what.finditer(data))
    for k in sorted(rng.integers(0, max(len(found), 1), int(rng.choice([1, 1, 1, 2, 5]))), reverse=True):
        if found:
            m = found[k]
            data = data[: m.start()] + by() + data[m.end() :]
    return data


def number(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(data, rng, NUMBER, lambda: NUMBERS[int(rng.integers(len(NUMBERS)))])


def scaled_number(data: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(data, rng, NUMBER, lambda: b"%.6g" % (float(rng.normal()) * 10.0 ** int(rng.integers(-12, 13))))


def nudge(data: bytes, rng: np.random.Generator) -> bytes:
    """Some numbers are others of the same size."""

    share = float(rng.choice([0.005, 0.02, 0.2]))

    def other(m: re.Match[bytes]) -> bytes:
        if rng.random() > share:
            return m[0]
        with np.errstate(all="ignore"):
            value = float(m[0]) * float(rng.choice([-1.0, 0.0, 0.5, 2.0, 1.0 + rng.normal()]))
        return b"%.6g" % value if b"." in m[0] or b"e" in m[0].lower() else b"%d" % round(min(max(value, -1e9), 1e9))

    return NUMBER.sub(other, data)


PIECE = re.compile(rb'[\w:]+="[^"]*"|<[^<>]*/>|\w+: *(?:\[[^\[\]]*\]|[^,{}\[\]\n]+)')


def piece(data: bytes, rng: np.random.Generator) -> bytes:
    """An attribute, an element or an entry is gone, twice, or another one's."""
    pieces = PIECE.findall(data)
    others = (b"", b"", *(p for p in pieces), *(p + b" " + p for p in pieces[:20]))
    return _replaced(data, rng, PIECE, lambda: others[int(rng.integers(len(others)))])


def word(data: bytes, rng: np.random.Generator) -> bytes:
    words = [*WORDS, *WORD.findall(data)]
    return _replaced(data, rng, WORD, lambda: words[int(rng.integers(len(words)))])


def lines(data: bytes, rng: np.random.Generator) -> bytes:
    """A line is gone, doubled, moved, or indented."""
    all_lines = data.splitlines(keepends=True) or [b""]
    k, to = (int(x) for x in rng.integers(0, len(all_lines), 2))
    one = all_lines[k]
    how = int(rng.integers(5))
    if how == 0:
        del all_lines[k]
    elif how == 4:
        all_lines[k] = b"  " * int(rng.integers(1, 3)) + one
    else:
        all_lines.insert(to if how == 1 else k, one * int(rng.choice([1, 1, 300])))
        if how == 2:
            del all_lines[k]
    return b"".join(all_lines)


def nest(data: bytes, rng: np.random.Generator) -> bytes:
    at = _at(data, rng)
    deep = NESTS[int(rng.integers(len(NESTS)))] * int(rng.choice([30, 2_000, 200_000]))
    return deep if rng.random() < 0.3 else data[:at] + deep + data[at:]


def bomb(data: bytes, rng: np.random.Generator) -> bytes:
    """References to references, in YAML and in XML."""
    levels = 30
    if b"<" in data[:5] or rng.random() < 0.3:
        rows = "".join(f'<!ENTITY a{k + 1} "{f"&a{k};" * 10}">' for k in range(levels))
        head = f'<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">{rows}]>'.encode()
        body = data.split(b"?>", 1)[-1]
        return head + body.replace(b"<link", f"&a{levels};<link".encode(), 1)
    rows = "".join(f"z{k + 1}: &a{k + 1} [{', '.join([f'*a{k}'] * 10)}]\n" for k in range(levels))
    return data + f"\nz0: &a0 [1, 2]\n{rows}".encode()


def references(data: bytes, rng: np.random.Generator) -> bytes:
    """A key of the file becomes an alias bomb, or a list that holds itself."""
    text = data.decode("utf-8", "replace")
    keys = list(re.finditer(r"(?m)^(\s*-?\s*\w+): *(.*)$", text))
    if not keys:
        return data
    m = keys[int(rng.integers(len(keys)))]
    bombs = "&q0 [x, x, x]"
    for k in range(1, 12):
        bombs = f"&q{k} [{bombs}, {', '.join([f'*q{k - 1}'] * 8)}]"
    twice = f"&b {m[2]}\n{m[1]}: *b"
    value = str(rng.choice([bombs, "&s [*s]", "&s {a: *s}", f"{{<<: {bombs}}}", twice]))
    return (text[: m.start()] + f"{m[1]}: {value}" + text[m.end() :]).encode()


def encoded(data: bytes, rng: np.random.Generator) -> bytes:
    text = data.decode("latin-1")
    how = str(rng.choice(["utf-16", "utf-32", "utf-8-sig", "cp500", "crlf", "cr", "nul", "latin"]))
    if how == "crlf":
        return data.replace(b"\n", b"\r\n")
    if how == "cr":
        return data.replace(b"\n", b"\r")
    if how == "nul":
        return data + b"\0" * 1000
    return data.replace(b"a", b"\xe4") if how == "latin" else text.encode(how, "replace")


def empty(data: bytes, rng: np.random.Generator) -> bytes:
    return (b"", b" ", b"\n" * 1000, b"\0", data[:1])[int(rng.integers(5))]


def network(data: bytes, rng: np.random.Generator) -> bytes:
    """In an ONNX file: an entry of the metadata, a shape or a name is another one."""
    return damaged_network(data, rng, lambda text: MILD_TEXT[int(rng.integers(len(MILD_TEXT)))](text, rng))


BINARY: tuple[Damage, ...] = (flip_bits, random_bytes, cut_off, cut_out, double, move, integer, empty, nest)
MILD: tuple[Damage, ...] = (number, number, scaled_number, nudge, nudge, piece, piece, word, integer, flip_bits)
MILD_TEXT: tuple[Damage, ...] = (
    number,
    number,
    scaled_number,
    nudge,
    word,
    cut_off,
    cut_out,
    double,
    move,
    nest,
    empty,
)
TEXT: tuple[Damage, ...] = (
    flip_bits, random_bytes, cut_off, cut_out, double, move, number, number, number, scaled_number, nudge, word, piece,
    piece, lines, lines, nest, encoded, empty,
)  # fmt: skip
FOLDER = "a folder in its place"


def damages_of(name: str) -> tuple[Damage, ...]:
    """The ways in which a file is damaged, by its ending."""
    ending = name.rpartition(".")[2]
    if ending == "npz":
        return (*BINARY, *(arrays,) * 10)
    if ending == "onnx":
        return (*BINARY, *(network,) * 10)
    if ending in ("c3d", "mcap", "stl"):
        return (*BINARY, *(integer,) * 4, *(flip_bits,) * 4)
    if ending == "yaml":
        return (*TEXT, bomb, references, references, *(damaged_value,) * 12)
    return (*TEXT, bomb) if ending in ("xml", "urdf") else TEXT


# -------- Cases


@dataclass(frozen=True)
class Outcome:
    """Of one file: 'loaded', 'refused' or a failure with what is known of it; `damage` tells what was done to it."""

    kind: str
    case: int
    what: str
    damage: str


def write_case(good: Path, kind: str, seed: int, case: int, folder: Path) -> str:
    """Write the files of a case into a folder that does not exist yet; what was done to one of them."""
    rng = np.random.default_rng([seed, case, sorted(KINDS).index(kind)])
    shutil.copytree(good / kind, folder)
    path = folder / str(rng.choice(KINDS[kind].damaged))
    if rng.random() < 0.01:
        path.unlink()
        path.mkdir()
        return f"{path.name}: {FOLDER}"
    told, ways = [], damages_of(path.name)
    if rng.random() < 0.5:
        ways = [w for w in ways if w in (*MILD, arrays, network, references, damaged_value)]
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        damage = ways[int(rng.integers(len(ways)))]
        path.write_bytes(damage(path.read_bytes(), rng)[:3_000_000])
        told.append(damage.__name__)
    return f"{path.name}: {', '.join(told)}"


def judge(kind: str, folder: Path, aloud: bool = False) -> str:
    """Read the files of a case in this process: 'loaded', 'refused', or a failure in a line."""
    try:
        KINDS[kind].read(folder / KINDS[kind].asked)
    except HumanoidError as error:
        if aloud:
            print(f"{type(error).__name__}: {error}")
        text = str(error)
        if not text.strip() or len(text) > 2_000:
            return f"refused in {len(text)} characters: {text[:100]!r}"
        if str(folder) not in text:
            return f"refused without the name of the file: {text[:150]!r}"
        return REFUSED if text.isprintable() else f"refused in what cannot be printed as a line: {text!r:.200}"
    except BaseException as error:
        if aloud:
            traceback.print_exc()
        steps = [f for f in traceback.extract_tb(error.__traceback__) if "humanoid_control" in f.filename]
        place = f"{Path(steps[-1].filename).name}:{steps[-1].lineno}" if steps else "the test"
        return f"{type(error).__name__} in {place}: {str(error)[:120]!r}"
    return LOADED


def _child(kinds: list[str], folders: list[Path], answer: int) -> None:
    """Read cases within limits, and say in a line each what came of them; never returns."""
    used = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    said = os.open(os.devnull, os.O_WRONLY)
    os.dup2(said, 1), os.dup2(said, 2)
    try:
        for kind, folder in zip(kinds, folders, strict=True):
            signal.alarm(PATIENCE)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            what = " ".join(judge(kind, folder).split())
            os.write(answer, what.encode(errors="replace")[:4000] + b"\n")
    finally:
        os._exit(0)


def run_cases(good: Path, cases: list[tuple[str, int]], seed: int) -> list[Outcome]:
    """Damage files and read them in a fork; those that went wrong, or were not read after a crash, once more alone."""
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / f"case{k}" for k in range(len(cases))]
        damages = [write_case(good, kind, seed, case, f) for (kind, case), f in zip(cases, folders, strict=True)]
        hear, answer = os.pipe()
        child = os.fork()
        if child == 0:
            _child([kind for kind, _ in cases], folders, answer)
        os.close(answer)
        with os.fdopen(hear, "rb") as ear:
            said = ear.read().decode(errors="replace").splitlines()
        _, status = os.waitpid(child, 0)
    if len(cases) > 1:
        said += [""] * (len(cases) - len(said))
        rows = zip(cases, said, damages, strict=True)
        return [
            Outcome(*one, what, damage) if what in (LOADED, REFUSED) else run_cases(good, [one], seed)[0]
            for one, what, damage in rows
        ]
    what = said[0] if said else "ended without a word"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what = f"took too long ({signal.Signals(number).name})" if number in LIMITS else f"died of signal {number}"
    return [Outcome(*cases[0], what, damages[0])]


LIMITS = (signal.SIGPROF, signal.SIGALRM, signal.SIGKILL)


def make_good_files(folder: Path, kinds: list[str]) -> None:
    """Write the good files of some kinds, each into a folder of its name, and read them, so that all is compiled."""
    for kind in kinds:
        (folder / kind).mkdir()
        KINDS[kind].make(folder / kind)
        KINDS[kind].read(folder / kind / KINDS[kind].asked)


def _worker(good: Path, cases: list[tuple[str, int]], seed: int, answer: int) -> None:
    with os.fdopen(answer, "w") as out:
        for first in range(0, len(cases), BATCH):
            for o in run_cases(good, cases[first : first + BATCH], seed):
                print(o.kind, o.case, o.damage, o.what, sep="\t", file=out, flush=True)


def run(count: int, seed: int, kinds: list[str], workers: int = 1, first: int = 0) -> Iterator[Outcome]:
    """Outcomes of damaged files, the kinds in turn."""
    with tempfile.TemporaryDirectory() as place:
        good = Path(place)
        make_good_files(good, kinds)
        cases = [(kinds[k % len(kinds)], k // len(kinds)) for k in range(first, first + count)]
        hear, answer = os.pipe()
        started = []
        for k in range(workers):
            child = os.fork()
            if child == 0:
                os.close(hear)
                with contextlib.suppress(BaseException):
                    _worker(good, cases[k::workers], seed, answer)
                os._exit(0)
            started.append(child)
        os.close(answer)
        with os.fdopen(hear) as lines_heard:
            for line in lines_heard:
                kind, case, damage, what = line.rstrip("\n").split("\t")
                yield Outcome(kind, int(case), what, damage)
        for child in started:
            os.waitpid(child, 0)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--count", type=int, default=1000, help="files (default: 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this kind, several times")
    parser.add_argument("--case", type=int, help="only this one, in this process, with its traceback")
    parser.add_argument("--keep", type=Path, default=None, help="folder to leave the files of --case in")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    kinds = args.kind or sorted(KINDS)
    if args.case is not None:
        folder = args.keep or Path(tempfile.mkdtemp()) / "case"
        with tempfile.TemporaryDirectory() as place:
            make_good_files(Path(place), kinds[:1])
            print(folder, write_case(Path(place), kinds[0], args.seed, args.case, folder))
            print(judge(kinds[0], folder, aloud=True))
        return 0
    table: Counter[tuple[str, str]] = Counter()
    failures: Counter[str] = Counter()
    for k, o in enumerate(run(args.count, args.seed, kinds, args.workers), start=1):
        what = o.what if o.what in (LOADED, REFUSED) else "failed"
        table[o.kind, what] += 1
        if what == "failed":
            if failures[o.kind + o.what[:60]] < 2:
                print(f"--kind '{o.kind}' --seed {args.seed} --case {o.case}: {o.damage}: {o.what}", flush=True)
            failures[o.kind + o.what[:60]] += 1
        if k % 500 == 0:
            print(f"{k} of {args.count}, {sum(failures.values())} failures", file=sys.stderr, flush=True)
    for kind in kinds:
        print(f"{kind:12}", *(f"{what} {table[kind, what]:5}" for what in (LOADED, REFUSED, "failed")))
    print(f"{sum(table.values())} files, {sum(failures.values())} failures of {len(failures)} kinds")
    return int(bool(failures) or sum(table.values()) < args.count)


if __name__ == "__main__":
    sys.exit(main())
