"""Averages over sites that are alike, and how they answer to covariances: closed forms and differences."""

import numpy as np
import pytest

from meanfield.nets.activations import LINEAR, RELU
from meanfield.theory.first_order_kernels import AlikeSites, of_pairs, relu
from tests.statistics import consistent

CORRELATIONS = (0.0, 0.3, 0.9, 0.999, 1 - 1e-7)


@pytest.mark.parametrize("rho", CORRELATIONS)
@pytest.mark.parametrize("activation", [RELU, LINEAR], ids=["relu", "linear"])
def test_two_sites_are_those_of_the_activation(rho, activation):
    sites = AlikeSites(rho, activation.name)
    arguments = np.ones(1), np.ones(1), np.array([rho])
    for average, factors in (
        (activation.gate_product, [(0, 1, 2)]),
        (activation.product, [(1, 1, 2)]),
        (activation.square_product, [(1, 1, 2), (1, 1, 2)]),
    ):
        assert sites.average(*factors) == pytest.approx(average(*arguments)[0], abs=1e-11)


@pytest.mark.parametrize("rho", CORRELATIONS)
def test_more_sites(rho):
    """Orthants of three sites by arcsines, of four at correlation 0 and 1/2; products of Gaussians by pairings."""
    on = AlikeSites(rho, "relu").average((0, 1, 2, 3))
    assert on == pytest.approx(1 / 8 + 3 * np.arcsin(rho) / (4 * np.pi), abs=1e-10)
    linear = AlikeSites(rho, "linear").average
    assert linear((1, 1, 2), (1, 3, 4)) == pytest.approx(3 * rho**2, abs=1e-11)
    assert linear((1, 1, 2), (1, 1, 4)) == pytest.approx(rho + 2 * rho**2, abs=1e-11)
    assert AlikeSites(0.5, "relu").average((0, 1, 2), (0, 3, 4)) == pytest.approx(1 / 5, abs=1e-12)
    assert AlikeSites(0.0, "relu").average((0, 1, 2), (1, 3, 4)) == pytest.approx(1 / (8 * np.pi), abs=1e-12)


@pytest.mark.parametrize("rho", [-0.2, 0.0, 0.4, 0.9])
def test_slopes_and_curvatures_are_differences(rho):
    at, step = np.array([rho, 1.0, 1.0]), 1e-4
    for average, value, slope, curvature in (
        (RELU.product, relu(rho).product, relu(rho).product_slope, relu(rho).product_curvature),
        (RELU.gate_product, relu(rho).gate, relu(rho).gate_slope, relu(rho).gate_curvature),
    ):

        def of(move, average=average):
            between, first, second = (at + move)[:, None]
            return average(first, second, between)[0]

        moves = step * np.eye(3)
        assert of(0 * at) == pytest.approx(value, abs=1e-12)
        assert [(of(m) - of(-m)) / (2 * step) for m in moves] == pytest.approx(slope, rel=1e-5, abs=1e-6)
        twice = [[(of(m + n) - of(m - n) - of(n - m) + of(-m - n)) / (4 * step**2) for n in moves] for m in moves]
        assert np.array(twice) == pytest.approx(curvature, rel=1e-4, abs=1e-4)


def test_a_site_where_the_gate_of_another_opens():
    """E[sigma(u) sigma''(v)] is the slope of E[sigma(u) sigma(v)] in c_vv, twice."""
    assert relu(0.4).edge == pytest.approx(2 * relu(0.4).product_slope[2])


def test_rows_of_weights_between_gates():
    """A row w sees patches u, v: how far its gates go with w'Aw, and what a leg of it makes of u and v."""
    rho, samples, generator = 0.6, 400_000, np.random.default_rng(1)
    u, v = np.array([[1.0, 0, 0, 0], [rho, (1 - rho**2) ** 0.5, 0, 0]])
    form, rows = generator.standard_normal((4, 4)), generator.standard_normal((samples, 4))
    seen, (z_u, z_v) = relu(rho), (rows @ u, rows @ v)
    on = (z_u > 0) * (z_v > 0)
    along = [u @ form @ v + v @ form @ u, 2 * u @ form @ u, 2 * v @ form @ v]
    for drawn, predicted in (
        (on * (np.vecdot(rows @ form, rows) - np.trace(form)), seen.gate_slope @ along),
        ((np.maximum(z_u, 0) * (z_v > 0))[:, None] * rows, seen.gate * u + seen.edge * v),
    ):
        stderr = drawn.std(axis=0) / samples**0.5
        assert consistent(drawn.mean(axis=0) - predicted, stderr, samples)
        assert not consistent(drawn.mean(axis=0) - 0.8 * np.asarray(predicted), stderr, samples)


def test_responses_of_pairs_of_unequal_sizes_are_derivatives():
    """In c_uv, c_uu and c_vv, by differences of the averages; E s(u) s''(v) is s(u) on average where v passes 0."""
    point, step = np.array([0.7, 1.3, 2.9]), 1e-4
    seen = of_pairs(*(point[[place]] for place in (1, 2, 0)), "relu")
    for name, average in (("product", RELU.product), ("gate", RELU.gate_product)):

        def at(*moves, average=average):
            uv, uu, vv = point + step * np.sum(moves, axis=0)
            return float(average(np.array(uu), np.array(vv), np.array(uv)))

        units = np.eye(3)
        slope = [(at(unit) - at(-unit)) / (2 * step) for unit in units]
        curvature = [[(at(a, b) - at(a, -b) - at(-a, b) + at(-a, -b)) / (4 * step**2) for a in units] for b in units]
        np.testing.assert_allclose(getattr(seen, name)[0], at(np.zeros(3)), rtol=1e-12)
        np.testing.assert_allclose(getattr(seen, f"{name}_slope")[:, 0], slope, rtol=1e-6)
        np.testing.assert_allclose(getattr(seen, f"{name}_curvature")[..., 0], curvature, rtol=1e-4)
    uv, uu, vv = point
    spread = np.sqrt(uu - uv**2 / vv)  # of u where v is 0
    np.testing.assert_allclose(seen.edge[0], spread / np.sqrt(2 * np.pi) / np.sqrt(2 * np.pi * vv), rtol=1e-12)
