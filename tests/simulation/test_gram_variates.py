"""Every variate of the Gram process counts where its direction exists, and there alone, and none stands for another.

That a chi-square or a normal is used twice leaves the means right, and another one unused: each is moved by itself.
"""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.estimates import adjusted
from meanfield.simulation.kernels.gram_process import (
    ACTIVE,
    ALONG,
    ALONG_NEXT,
    BEYOND,
    BEYOND_NEXT,
    BEYOND_OFF,
    CHI_SQUARES,
    DOWN,
    DOWN_NEXT,
    DOWN_OFF,
    IDLE,
    IDLE_NEXT,
    IDLE_OFF,
    INACTIVE,
    NORMALS,
    THIRD,
    THIRD_NEXT,
    _halved_degrees,
    column_energies,
    draw_gram_energies,
)
from tests.statistics import consistent

DEPTH, OUTPUTS = 3, 4
DRAWS = 80_000


def energies(units, halves, normals):
    """Of one draw, (L, 2), of layers of so many active and idle units, (L, 2)."""
    made, errors = np.empty((1, DEPTH, 2)), np.empty(1)
    widths, variances = np.append(units.sum(axis=1), OUTPUTS).astype(float), np.linspace(0.3, 0.6, DEPTH + 1)
    head = np.array([[1.7, 1.1]]), np.array([0.4])
    column_energies(units[None, :, 0], halves[None], normals[None], *head, widths, variances, 2.0, made, errors)
    return made[0]


def expected(active, idle):
    """Names of the variates that the energies of these units depend on, by the dimensions that there are.

    Among active units one direction lies along the features, the next two hold what the errors are made of beside it,
    a third what is new, and all others are beyond; among idle units the first lies along z, and two stand for the rest.
    """
    chi_squares = {ACTIVE: active > 0, DOWN: active > 1, DOWN_NEXT: active > 2}
    chi_squares |= {BEYOND: active > 3, BEYOND_NEXT: active > 4}
    chi_squares |= {INACTIVE: idle > 0, IDLE: idle > 1, IDLE_NEXT: idle > 2}
    normals = {DOWN_OFF: active > 1, THIRD: active > 2, THIRD_NEXT: active > 2, BEYOND_OFF: active > 3}
    normals |= {ALONG: idle > 0, ALONG_NEXT: idle > 0, IDLE_OFF: idle > 1}
    chosen = (("chi", chi_squares), ("normal", normals))
    there = {(kind, place) for kind, variates in chosen for place, exists in variates.items() if exists}
    # A single unit lets one direction of errors down, so that all that moves below it does so along one.
    return there - (OF_TWO_DIRECTIONS if active == 1 else set())


OF_TWO_DIRECTIONS = {("normal", ALONG_NEXT), ("normal", IDLE_OFF), ("chi", IDLE_NEXT)}


@pytest.mark.parametrize("idle", range(4))
@pytest.mark.parametrize("active", range(1, 7))
def test_variates_count_where_their_directions_exist(active, idle):
    """In a layer between two wider ones; chi-squares of no degrees of freedom are 0, and are left so."""
    rng, units = np.random.default_rng(active), np.array([[9, 4], [active, idle], [9, 4]])
    degrees, normals = _halved_degrees(*units.T), rng.normal(size=(DEPTH, NORMALS))
    halves = np.where(degrees > 0, degrees + rng.uniform(0.1, 0.4, degrees.shape), 0.0)
    before, effects = energies(units, halves, normals), {}
    for kind, variates, count in (("chi", halves, CHI_SQUARES), ("normal", normals, NORMALS)):
        for place in range(count):
            moved = variates.copy()
            moved[1, place] *= 1.25
            after = energies(units, *((moved, normals) if kind == "chi" else (halves, moved)))
            if not np.array_equal(before, after):
                effects[kind, place] = (after / before).ravel()
    assert set(effects) == expected(active, idle)
    # No two of them do the same.
    moves = np.array([*effects.values()])
    apart = np.abs(moves[:, None] - moves).max(axis=2) + np.eye(len(moves))
    assert apart.min() > 1e-9


def test_degrees_of_freedom_are_those_of_the_exact_means():
    """Of linear nets of five units, whose label terms would be 2.8 % and 4.4 % too large at layers 2 and 3 if what is
    beyond the frame had a dimension more; less what layer 1, whose mean is exact either way, tells of them."""
    net = mf.MLP(depth=3, width=5, activation="linear", outputs=40)
    drawn, exact = draw_gram_energies(net, 0, range(DRAWS))["label_term"], mf.predict(net, level="exact")["label_term"]
    for layer, off in ((1, 1.028), (2, 1.044)):
        values = adjusted(drawn[:, layer], drawn[:, :1], exact.values[:1])
        mean, stderr = values.mean(), values.std() / np.sqrt(DRAWS)
        assert consistent(mean - exact.values[layer], stderr, DRAWS)
        assert not consistent(off * mean - exact.values[layer], stderr, DRAWS)


def test_overlap_energies_follow_from_label_terms_off_the_fan_in_rule_too():
    """At a million units, where draws hardly differ: labels pass layers above that the kernel does not."""
    net = mf.MLP(depth=4, width=10**6, outputs=2000, weight_variance=2.6)
    drawn, limit = mf.simulate(net, draws=100, seed=0, weights="gram"), mf.predict(net, level="mean_field")
    for name in ("label_term", "overlap_energy"):
        difference = drawn[name] - limit[name]
        assert consistent(difference, drawn[f"{name}_stderr"], 100, 1e-3 * limit[name])
        assert not consistent(1.3 * drawn[name] - limit[name], drawn[f"{name}_stderr"], 100, 1e-3 * limit[name])
