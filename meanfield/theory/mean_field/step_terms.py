"""One step of any optimizer from rest at leading order in 1/channels: what the theory of a family returns, in words of
the registry.

Signs and polar factors are not linear in the error. The label term is then the energy of the step that the labels'
error alone would make, the output term that of the outputs' error alone, and the update energy that of the whole
error z_out - y: the first two add up to the third under descent only.

What a layer's own step adds to its values, D X, where D is the signs or the polar factor of its gradient U X^T.

X are the features that its matrix sees (fan-in, N) and U the errors behind it (channels, N), N samples and sites.

Polar factors are linear in U once the Gram matrices are known: with U^T U = R_U^2 and X^T X = R_X^2, and P the polar
factor of the N x N matrix R_U R_X,

    polar(U X^T) X = U M,    M = R_U^+ P R_X;    of one sample M = |X| / |U|.

Signs are not. The change of channel i is a function of its own errors u_i alone, as all features are averaged over,

    (D X)_i(a) = fan-in g_a(u_i),    g_a(u) = E_x[sign(u . x) x(a)];    of one sample g = sign(u) E|x|.

Source: docs/theory.md section 24.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf, gammaln

from meanfield.common.validation import Array
from meanfield.nets.activations import Activation
from meanfield.nets.net import Net
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import log_mean, with_logarithms


def forms(net: Net, step: FirstStep) -> set[str | None]:
    """What the weights of a net take of their gradients (`FirstStep.form_of`)."""
    return {step.form_of(role) for role in {net.role_of(name) for name in net.weights}}


def form_refusal(net: Net, step: FirstStep) -> str:
    """Why this first step is not predicted at some weight of a net, and what to take; empty if it is."""
    known: dict[str, str | None] = {}  # of a few roles, which many weights share
    for name in net.weights:
        role = net.role_of(name)
        if role not in known:
            known[role] = step.form_of(role)
        if known[role] is None:
            return (
                f"the first step of {step.name} depends on more than the signs or the polar factor of the gradient at "
                f"{name} (an epsilon, iterations, the curvature, the weights or the length of later steps): take "
                "one of 'adamw', 'lion', 'muon', 'muon_kimi', 'shampoo', 'soap', or draw it with `simulate`"
            )
    return ""


@dataclass(frozen=True, kw_only=True)
class StepTerms:
    """Mean squares of what one step at learning rate 1 changes, in expectation.

    Attributes:
        update: S_l of layers 1 .. L under the whole error, (L,).
        value: c_l, the mean squares of the layers' values themselves, (L,).
        label, output: S_l under the labels' error alone and under the outputs' alone, (L,); None where not predicted.
        outputs: the mean square change of the outputs, the step of the readout's own weights included; None where not
            predicted.
        attrs: what a dataset says of how it was computed, such as the points of an average and their error.
    """

    update: Array
    value: Array
    label: Array | None = None
    output: Array | None = None
    outputs: float | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Array]:
        """Quantities of the registry by name, with their logarithms.

        Raises:
            OverflowError: an energy that no float holds.
        """
        energies = {"update_energy": self.update, "relative_update_energy": self.update / self.value}
        known = {"label_term": self.label, "output_term": self.output, "output_update_energy": self.outputs}
        energies |= {name: np.asarray(energy) for name, energy in known.items() if energy is not None}
        for name, energy in energies.items():
            if not np.all(np.isfinite(energy) & (energy > 0)):
                raise OverflowError(
                    f"the {name.replace('_', ' ')} of this step leaves the range of floats: lower the depth, or bring "
                    "the variance of the weights closer to the fan-in rule"
                )
        logs = {name: np.log(energy) for name, energy in energies.items()}
        logs["mean_update_energy"] = log_mean(logs["update_energy"])
        scales = {
            "learning_rate_scale": logs["mean_update_energy"],
            "relative_learning_rate_scale": log_mean(logs["relative_update_energy"]),
            "last_learning_rate_scale": logs["relative_update_energy"][-1],
        }
        if "label_term" in logs:
            scales["label_learning_rate_scale"] = log_mean(logs["label_term"])
        if "output_update_energy" in logs:
            scales["output_learning_rate_scale"] = logs["output_update_energy"]
        return with_logarithms(logs | {name: -0.5 * energy for name, energy in scales.items()})


# Eigenvalues and singular values below this share of the largest are those of directions without any errors.
NEGLIGIBLE = 1e-12
# Half a Gaussian in one dimension: panels of so many nodes, up to so many standard deviations.
PANELS, NODES, REACH = 24, 20, 12.0


def polar_births(errors: Array, features: Array) -> Array:
    """M (N, N) from the Gram matrices U^T U and X^T X."""
    root, inverse = roots(errors)
    feature_root, _ = roots(features)
    left, sizes, right = np.linalg.svd(root @ feature_root)
    kept = sizes > NEGLIGIBLE * sizes[0]
    return np.asarray(inverse @ left[:, kept] @ right[kept] @ feature_root)


def roots(gram: Array) -> tuple[Array, Array]:
    """The symmetric root of a Gram matrix and its pseudo-inverse."""
    sizes, axes = np.linalg.eigh(gram)
    sizes = np.where(sizes > NEGLIGIBLE * sizes[-1], sizes, 0.0)
    roots = np.sqrt(sizes)
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    return (axes * roots) @ axes.T, (axes * inverse) @ axes.T


def sign_births(errors: Array, features: Array) -> Array:
    """g_a(u) of many channels: errors (channels, N) and features (points, N) -> (channels, N)."""
    size = np.abs(errors).max() or 1.0  # single precision, which is enough for signs, holds no error of 1e-40
    u, x = (np.asarray(values, dtype=np.float32) for values in (errors / size, features))
    return np.asarray(np.sign(u @ x.T) @ x, dtype=float) / len(x)


class Channel(NamedTuple):
    """One channel of a layer on the way up, all over pairs of points.

    Its errors are U = s'(z) (v + H), v of covariance ``errors`` and H(p) = mu(p) s(z_p) with ``along`` mu (N, 1), or
    sum_r mu(p, r) s(z_r) with (N, N). What has come to its change is T = ``with_z`` c^-1 z + ``kernel`` U and a rest
    that knows of neither.
    """

    sigma: Activation
    covariance: Array
    errors: Array
    along: Array
    kernel: Array
    with_z: Array


class SignTerms(NamedTuple):
    """What births b = fan-in g(U) add to averages over a channel.

    Attributes:
        energy, gated_energy: to E T^2 and E s'^2 T^2, by point (N, 1).
        gated_with_features: to E s'(p) T(p) s(z_r), (N, N).
        slope: to E d(s'(p) T(p)) / dv(r), (N, N).
    """

    energy: Array
    gated_energy: Array
    gated_with_features: Array
    slope: Array


@dataclass(frozen=True)
class OnePointSigns:
    """Births of one sample and site: size sign(u), with ``size`` the sum of all |x|, by quadrature of ReLU and linear.

    Given z on the side where the gate is open, averages over v are closed; z is half a Gaussian there.
    """

    size: float

    def terms(self, channel: Channel) -> SignTerms:
        """Those of ReLU or linear channels: gates are 1 at z > 0, and linear ones at -z alike."""
        variance, deviation = channel.covariance.item(), np.sqrt(channel.errors.item())
        nodes, weights = half_gaussian()
        z, weights = np.sqrt(variance) * nodes, channel.sigma.gain * weights
        driven = channel.along.item() * z
        sign = erf(driven / (np.sqrt(2.0) * deviation))
        density = np.sqrt(2 / np.pi) * np.exp(-0.5 * (driven / deviation) ** 2)
        before = channel.with_z.item() / variance * z * sign + channel.kernel.item() * (
            driven * sign + deviation * density
        )
        energy = weights @ (2 * self.size * before + self.size**2)
        slope, along = weights @ density / deviation, weights @ (sign * z)
        return SignTerms(*(np.full((1, 1), value) for value in (energy, energy, self.size * along, self.size * slope)))


def mean_share(count: int) -> float:
    """E |u_1| of a random direction u among so many coordinates: what signs meet in one of that many outputs."""
    return exp(gammaln(count / 2) - gammaln((count + 1) / 2)) / sqrt(pi)


def half_gaussian() -> tuple[Array, Array]:
    """Nodes and weights for averages over |x|, x ~ N(0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = np.linspace(0.0, REACH, PANELS + 1)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (nodes + 1)).ravel()
    density = np.sqrt(2 / np.pi) * np.exp(-x * x / 2)
    return x, (half * weights).ravel() * density
