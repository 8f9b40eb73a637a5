"""Size and language of the code: `python test/counts.py [ROOT]`, as a table; `--json` for programs.

Lines of the package by kind, words of docstrings and of the pages in docs/ that are written by hand, "what" per 1,000
words of both, length of their sentences, own-line comments in kernels, kernels without annotations, class names that
stand twice.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "humanoid_control"
GENERATED = ("coverage", "robots", "parameters", "public_api", "topics", "humanoids")  # pages made from code
SECTION = re.compile(r"\n\s*(?:Args|Attributes|Returns|Raises|Yields):")
CODE_BLOCK = re.compile(r"```.*?```", re.S)
SHORTEST = 3  # words of a sentence


def sentences(text: str) -> Iterator[int]:
    """Lengths of the sentences of a text, without tables [words]."""
    for paragraph in re.split(r"\n\s*\n|\n[*#|]|\n\d+\.", text):
        if "|" not in paragraph:
            for sentence in re.split(r"(?<=[.!?:])\s+", paragraph):
                if (words := len(sentence.split())) >= SHORTEST:
                    yield words


def docstrings(tree: ast.Module) -> Iterator[tuple[str, range]]:
    """Docstrings of a module, and their lines."""
    for node in ast.walk(tree):
        owner = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if owner and (text := ast.get_docstring(node)):
            place = node.body[0]
            yield text, range(place.lineno, (place.end_lineno or place.lineno) + 1)


def kernels(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions with a decorator whose name says that they are compiled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = " ".join(ast.unparse(d) for d in node.decorator_list)
            if "kernel" in names or "inlined" in names:
                yield node


def kind(line: str, number: int, of_docstrings: set[int]) -> str:
    """Kind of a line: blank, docstring, comment or code."""
    if not (plain := line.strip()):
        return "blank"
    return "docstring" if number in of_docstrings else "comment" if plain.startswith("#") else "code"


def count(root: Path) -> dict[str, float | int | str]:
    """Count a checkout."""
    lines, in_kernels, classes = Counter[str](), Counter[str](), Counter[str]()
    texts, bare = list[str](), 0
    for path in sorted((root / PACKAGE).rglob("*.py")):
        source = path.read_text()
        tree = ast.parse(source)
        found = list(docstrings(tree))
        texts += [text for text, _ in found]
        inside = {number for _, places in found for number in places}
        kinds = [kind(line, k, inside) for k, line in enumerate(source.splitlines(), 1)]
        lines.update(kinds)
        classes.update({node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)})
        for one in kernels(tree):
            in_kernels.update(kinds[one.lineno - 1 : one.end_lineno])
            bare += one.returns is None or any(a.annotation is None for a in one.args.args)
    pages = [p for p in (root / "docs").rglob("*.md") if p.stem not in GENERATED]
    prose = [CODE_BLOCK.sub("", p.read_text()) for p in (*pages, root / "README.md") if not p.name.endswith(".zh.md")]
    words = sum(len(t.split()) for t in (*texts, *prose))
    lengths = sorted(n for t in (*(SECTION.split(t)[0] for t in texts), *prose) for n in sentences(t))
    what = sum(len(re.findall(r"\bwhat\b", t, re.I)) for t in (*texts, *prose))
    share = in_kernels["comment"] / max(1, in_kernels["comment"] + in_kernels["code"])
    return {
        "lines of the package": sum(lines.values()),
        "lines of code": lines["code"],
        "lines of docstrings": lines["docstring"],
        "lines of comments": lines["comment"],
        "words of docstrings": sum(len(t.split()) for t in texts),
        "words of pages by hand": sum(len(p.read_text().split()) for p in pages),
        '"what" per 1,000 words': round(1000 * what / words, 2),
        "words of a sentence, 90th percentile": lengths[int(0.9 * len(lengths))],
        "own-line comments in kernels [%]": round(100 * share, 1),
        "kernels without annotations": bare,
        "class names that stand twice": ", ".join(name for name, n in classes.items() if n > 1) or "none",
        "words of the README": len(CODE_BLOCK.sub("", (root / "README.md").read_text()).split()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not (args.root / PACKAGE).is_dir():
        parser.error(f"{args.root}: no checkout: no folder {PACKAGE}")
    found = count(args.root)
    if args.json:
        print(json.dumps(found))
    for name, value in () if args.json else found.items():
        print(f"{name:38} {value:,}" if isinstance(value, int) else f"{name:38} {value}")


if __name__ == "__main__":
    main()
