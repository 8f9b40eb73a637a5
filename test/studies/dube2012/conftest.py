"""Labs whose trials are made up, for the rules of the study; fixtures of the rooms that it reaches into."""

from __future__ import annotations

from evidence.studies.report import conclude
from test.collision.conftest import brute as brute
from test.collision.conftest import forearms as forearms
from test.collision.conftest import rng as rng
from test.mocap.conftest import dance as dance
from test.mocap.conftest import report as report
from test.mocap.conftest import walk as walk


class MadeLab:
    """Answers with trials by the robot's name, or by name and variant."""

    def __init__(self, trials):
        self.trials = trials

    def trial(self, name, variant="", change=None, settings=None):
        return self.trials.get((name, variant)) or self.trials[name]

    def avoiding(self, name, way):
        return self.trials[(name, way)]

    def free(self, name, way):
        return self.trials[name]


def verdict(hypothesis, trials):
    return conclude(hypothesis, "made", hypothesis.experiment(MadeLab(trials))).verdict
