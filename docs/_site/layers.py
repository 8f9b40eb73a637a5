"""Draw the layers of the package with every import between subpackages: docs/layers.svg.

usage: python docs/_site/layers.py     (part of `make docs`)
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from html import escape
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "humanoid_control"
GROUND = "errors, files, ..."


def _layers() -> list[tuple[str, ...]]:
    """Return the layers from the top down, as the contract of the imports has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["type"] == "layers")
    return [*(tuple(layer.split(" | ")) for layer in layers[1:-1]), (GROUND,)]


LAYERS = _layers()
WIDTH, ROW, BOX_W, BOX_H, LEFT = 1180, 86, 168, 50, 150
COLORS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd")


def rooms() -> tuple[dict[str, tuple[int, int]], Counter[tuple[str, str]]]:
    """Files and lines of each room, and how many imports lead from room to room."""
    size: dict[str, tuple[int, int]] = {}
    arrows: Counter[tuple[str, str]] = Counter()
    known = {room for layer in LAYERS for room in layer}
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        room = room if room in known else GROUND
        text = path.read_text()
        files, lines = size.get(room, (0, 0))
        size[room] = (files + (path.name != "__init__.py"), lines + text.count("\n"))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("humanoid_control."):
                other = node.module.split(".")[1]
                other = other if other in known else GROUND
                if other != room:
                    arrows[room, other] += 1
    return size, arrows


def picture() -> str:
    """The drawing as SVG text."""
    size, arrows = rooms()
    at = {}
    for k, layer in enumerate(LAYERS):
        for i, room in enumerate(layer):
            x = LEFT + (WIDTH - LEFT) * (i + 0.5) / len(layer)
            if len(layer) == 1:  # not all in one column, where boxes would hide the arrows behind them
                x += 300 * (-1, 0, 1, 0)[k % 4]
            at[room] = (x, 40 + ROW * k)
    height = 40 + ROW * (len(LAYERS) - 1) + BOX_H + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for k, _ in enumerate(LAYERS):
        y = 40 + ROW * k + BOX_H / 2
        out.append(f'<text x="14" y="{y + 5:.0f}" font-size="14" fill="#888">layer {len(LAYERS) - 1 - k}</text>')
        line = f'<line x1="80" x2="{WIDTH - 10}" y1="{y:.0f}" y2="{y:.0f}"'
        out.append(f'{line} stroke="#f2f2f2" stroke-width="{BOX_H}"/>')
    for n, ((a, b), count) in enumerate(sorted(arrows.items())):
        (xa, ya), (xb, yb) = at[a], at[b]
        if GROUND in (a, b):
            continue  # all use the lowest layer: these arrows would hide the others
        shift = 14 * ((n * 7) % 9 - 4)
        bend = (yb - ya) * 0.4
        out.append(
            f'<path d="M{xa + shift:.0f},{ya + BOX_H:.0f} C{xa + shift:.0f},{ya + BOX_H + bend:.0f} '
            f'{xb + shift:.0f},{yb - bend:.0f} {xb + shift:.0f},{yb:.0f}" fill="none" opacity="0.55" '
            f'stroke="{COLORS[n % len(COLORS)]}" stroke-width="{min(6.0, 0.8 + count / 14):.1f}">'
            f"<title>{escape(a)} imports {escape(b)} {count} times</title></path>"
        )
    for room, (x, y) in at.items():
        files, lines = size.get(room, (0, 0))
        out.append(
            f'<rect x="{x - BOX_W / 2:.0f}" y="{y:.0f}" width="{BOX_W}" height="{BOX_H}" rx="6" fill="#fbfbff" '
            f'stroke="#334"/><text x="{x:.0f}" y="{y + 21:.0f}" text-anchor="middle" font-size="16" '
            f'font-weight="bold">{escape(room)}</text><text x="{x:.0f}" y="{y + 40:.0f}" text-anchor="middle" '
            f'font-size="12" fill="#556">{files} files, {lines} lines</text>'
        )
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    target = ROOT / "docs" / "layers.svg"
    target.write_text(picture())
    print(f"written: {target.relative_to(ROOT)}")
