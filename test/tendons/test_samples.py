"""Samples of tendon lengths that come late, twice, out of order or wrong (TE-15)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.tendons.estimator.samples import TendonSamples

NAMES = ("biceps", "triceps", "brachialis")


def test_samples_come_out_in_order_and_everything_is_counted():
    samples = TendonSamples(NAMES, period=0.01, max_age=0.05)
    first = samples.accept(1.00, ("triceps", "biceps", "brachialis"), (0.2, 0.1, 0.3), (5.0, 4.0, 6.0), now=1.001)
    assert list(first.lengths) == [0.1, 0.2, 0.3] and list(first.tensions) == [4.0, 5.0, 6.0]
    assert samples.accept(1.00, NAMES, (0.1, 0.2, 0.3)) is None
    assert samples.accept(0.99, NAMES, (0.1, 0.2, 0.3)) is None
    part = samples.accept(1.01, NAMES[:2], (0.1, -0.2), now=1.2)
    assert part.tensions is None and np.isnan(part.lengths[2]) and part.lengths[1] == -0.2
    assert samples.accept(1.05, NAMES, (0.1, float("nan"), 0.3), now=1.06) is not None
    c = samples.counts
    assert (c.accepted, c.duplicated, c.reordered, c.late, c.incomplete, c.missing) == (3, 1, 1, 1, 2, 3)
    samples.reset()
    assert samples.accept(0.5, NAMES, (0.1, 0.2, 0.3)) is not None and c.missing == 3


@pytest.mark.parametrize(
    "names,lengths,tensions,message",
    [
        (NAMES, (0.1, 0.2), (), "3 names, 2 lengths"),
        (NAMES, (0.1, 0.2, 0.3), (1.0,), "1 tensions"),
        (("biceps", "biceps"), (0.1, 0.2), (), "'biceps' is named twice"),
        (("bicep",), (0.1,), (), "did you mean biceps"),
        (NAMES, (178.0, 250.0, 80.0), (), "'biceps' is 178 m; millimetres"),
        (NAMES, (0.1, -0.2, 0.3), (), "path lengths are positive"),
    ],
)
def test_samples_that_cannot_be_are_refused_in_one_line(names, lengths, tensions, message):
    samples = TendonSamples(NAMES, 0.01, relative=False)
    with pytest.raises((ConfigError, UnknownNameError), match=message) as caught:
        samples.accept(1.0, names, lengths, tensions)
    assert "\n" not in str(caught.value) and samples.counts.refused == 1
    assert samples.accept(1.0, NAMES, (0.1, 0.2, 0.3)) is not None
