"""Tables, the oldest mapping (TE-03), and the files of fitted mappings: what comes back, and what is refused."""

import contextlib

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.tendons import fit_mapping, load_mapping, save_mapping
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.mappings.postures import random_postures
from test.reference.straight_tendons import EXACT, JOINTS, LIMITS, MUSCLES
from test.tendons.conftest import NAMED


def test_the_table_gives_its_nearest_row_and_its_slope(table):
    q = random_postures(LIMITS * 0.8 + 0.2 * LIMITS.mean(axis=1, keepdims=True), 100, seed=4)
    lengths, jacobians = EXACT.evaluate(q)
    found, slopes = table.evaluate(q)
    assert np.sqrt(np.mean((found - lengths - (found - lengths).mean(axis=0)) ** 2)) < 5e-3
    assert np.sqrt(np.mean((slopes - jacobians) ** 2)) < 5e-3
    assert table.jacobian_directional(q[0], np.ones(4)).shape == (10, 4)


def test_the_search_of_the_table_finds_the_row(table):
    rows = table.postures[::97]
    assert np.array_equal(table.search(table.lengths(rows)), rows)
    q = random_postures(LIMITS, 200, seed=5)
    np.testing.assert_allclose(table.lengths(rows), EXACT.lengths(rows), atol=1e-12)
    error = np.abs(table.search(EXACT.lengths(q)) - q)
    assert np.rad2deg(np.median(error)) < 6  # half a cell of 10 deg, no better: it knows no time series


@pytest.mark.parametrize("kind", ["polynomial", "neural", "table"])
def test_a_saved_mapping_comes_back_the_same(kind, network, table, tmp_path):
    mapping = {
        "neural": network,
        "table": table,
        "polynomial": fit_polynomial_on_grid(NAMED, (5, 4, 6, 5), 5),
    }[kind]
    save_mapping(tmp_path / "a.npz", mapping)
    back = load_mapping(tmp_path / "a.npz", "abc", JOINTS, MUSCLES)
    q = random_postures(LIMITS, 20, seed=1)
    for x, y in zip(back.evaluate(q), mapping.evaluate(q), strict=True):
        assert np.allclose(x, y, rtol=0, atol=1e-12)
    assert back.fit == mapping.fit and back.kind == kind and [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def path_of(mapping, folder):
    save_mapping(folder / "whole.npz", mapping)
    return folder / "whole.npz"


def test_a_mapping_of_another_robot_is_refused(network, tmp_path):
    path = tmp_path / "a.npz"
    save_mapping(path, network)
    with pytest.raises(ConfigError, match="another robot or model"):
        load_mapping(path, "def")
    with pytest.raises(ConfigError, match="has other joints"):
        load_mapping(path, joint_names=JOINTS[::-1])
    with pytest.raises(ConfigError, match="not found"):
        load_mapping(tmp_path / "b.npz")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ConfigError, match="damaged"):
        load_mapping(path)
    save_mapping(path, network)
    whole = bytearray(path.read_bytes())
    for place in range(60, len(whole), len(whole) // 60):  # a bit turned anywhere: told, or in what is not read
        turned = whole.copy()
        turned[place] ^= 0x10
        path.write_bytes(turned)
        with contextlib.suppress(ConfigError):
            load_mapping(path)
    with np.load(path_of(network, tmp_path)) as file:
        content = dict(file)
    for key, value in (("W1", None), ("W1", content["W1"] * np.nan), ("fit", np.zeros(2)), ("kind", np.array("x"))):
        np.savez(path, **{k: v for k, v in content.items() if k != key}, **({} if value is None else {key: value}))
        with pytest.raises(ConfigError, match="is incomplete"):
            load_mapping(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ConfigError, match="damaged or not a mapping"):
        load_mapping(tmp_path / "one.npy")
    np.savez(path, a=np.zeros(2))
    with pytest.raises(ConfigError, match="not a joint-muscle mapping"):
        load_mapping(path)
    with pytest.raises(ConfigError, match="keep its model file"):
        save_mapping(path, EXACT)


def test_an_unknown_kind_of_mapping_is_refused_before_anything_is_fitted():
    with pytest.raises(UnknownNameError, match="did you mean polynomial"):
        fit_mapping(None, "polynom")
