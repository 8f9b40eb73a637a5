"""Parts of the page that need no browser: the last words of a run, the plot of errors, and what a browser leaves."""

import subprocess
import sys
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

from humanoid_control.viewer.browser import Browser
from humanoid_control.viewer.page import OVER, ViewerPage
from humanoid_control.viewer.panel import Panel


def test_every_open_page_is_told_that_the_run_is_over_and_the_command_that_plays_it_again():
    page, told, status = ViewerPage.__new__(ViewerPage), [], []
    client = SimpleNamespace(add_notification=lambda *words: told.append(words))
    page.panel = SimpleNamespace(set_over=lambda *words: status.append(words))
    page.server = SimpleNamespace(get_clients=lambda: {1: client, 2: client}, flush=lambda: None)
    page.say_over("humanoid replay latest")
    assert len(told) == 2 and {title for title, _ in told} == {OVER}
    assert all(words.endswith(": humanoid replay latest") for _, words in told)
    assert status[0][1] == "humanoid replay latest"


def test_the_mean_error_is_plotted_over_the_time_until_now():
    panel = Panel.__new__(Panel)
    panel._errors, panel._plot, panel._history = SimpleNamespace(), SimpleNamespace(), deque(maxlen=5)
    panel._targets = SimpleNamespace(visible=False)
    for k in range(8):
        panel.set_errors(0.5 * k, {"l_wrist": 0.01 * k, "r_wrist": 0.03 * k})
    t, y = panel._plot.data
    assert t == pytest.approx(0.5 * np.arange(-4, 1)) and y == pytest.approx(2.0 * np.arange(3, 8))
    assert panel._targets.visible
    assert "| **mean** | **14.0** |" in panel._errors.content and "| r_wrist | 21.0 |" in panel._errors.content


def test_a_closed_browser_leaves_no_process_and_no_profile(tmp_path):
    browser = Browser.__new__(Browser)
    browser._profile = tmp_path / "profile"
    (browser._profile / "cache").mkdir(parents=True)
    browser._process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    browser.close()
    assert browser._process.returncode is not None and not browser._profile.exists()
