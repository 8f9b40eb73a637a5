"""The panel's part for pairs: their distances, nearest first, the search for them, and single ones by hand."""

from __future__ import annotations

import html

import viser

from humanoid_control.collision.ssv_segments import expand
from humanoid_control.viewer.segments.colors import color_of
from humanoid_control.viewer.segments.controls import NONE, Do, choose, on_choice
from humanoid_control.viewer.segments.distances import Distances
from humanoid_control.viewer.segments.editor import Editor

ROWS = 14
SMALL = "margin:4px 14px;font-size:12px;line-height:1.4"


class PairsTab:
    """Which segments must not touch."""

    def __init__(self, gui: viser.GuiApi, editor: Editor, do: Do) -> None:
        self._editor, self._shown = editor, 0
        self._table = gui.add_html("")
        with gui.add_folder("By hand"):
            self._first = gui.add_dropdown("segment", (NONE,))
            self._second = gui.add_dropdown("and", (NONE,))
            by_hand = gui.add_button_group("pair", ("watch", "do not watch"))
        on_choice(by_hand, do, self._by_hand)
        search = gui.add_button("search pairs by random postures", hint="takes the place of all pairs")
        self._reasons = gui.add_html("")

        @search.on_click
        def _(_: viser.GuiEvent) -> None:  # in a thread of its own: it takes seconds
            search.disabled, search.label = True, "searching ..."
            do(editor.find_pairs())
            search.disabled, search.label = False, "search pairs by random postures"

    def _by_hand(self, what: str) -> None:
        act = self._editor.add_pair if what == "watch" else self._editor.remove_pairs
        act(self._first.value, self._second.value)

    def show(self, distances: Distances) -> None:
        """Bring the table up to date."""
        names = [s.name for s in expand(self._editor.document.file.segments)]
        choose(self._first, names, self._first.value)
        choose(self._second, names, self._second.value)
        rows = "".join(
            f"<tr><td style='text-align:right;padding-right:10px'><b style='color:rgb"
            f"{color_of(g.distance, distances.largest)}'>&#9632;</b> {1000 * g.distance:.0f}</td>"
            f"<td>{html.escape(g.volume_1)} &ndash; {html.escape(g.volume_2)}</td></tr>"
            for g in distances.gaps[:ROWS]
        )
        count = len(distances.gaps)
        head = f"{count} pairs watched; nearest volumes [mm]:" if count else "no pairs watched: search them below"
        self._table.content = f"<div style='{SMALL}'>{head}<table>{rows}</table></div>"
        choice = self._editor.choice
        if choice is not None:
            lines = "<br>".join(html.escape(x) for x in choice.explain())
            text = f"<div style='{SMALL}'><b>left out by the last search</b><br>{lines}</div>"
            if self._reasons.content != text:
                self._reasons.content = text
