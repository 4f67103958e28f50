"""What users call to draw: energies of nets and loops, updates of loops, overlaps of pairs of directions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from meanfield.execution.run import Run, simulate_one
from meanfield.execution.team import Workers
from meanfield.nets.families.known import require_net
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.tied_loop import TiedLoop
from meanfield.nets.inputs.batches import PLAIN, Batch
from meanfield.nets.net import Net
from meanfield.simulation.measures.base import Measure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.pair_overlaps import PairOverlaps
from meanfield.simulation.measures.residual_energy import ResidualEnergies
from meanfield.simulation.measures.stream_update import StreamUpdates
from meanfield.simulation.weights.gram_process import require_gram_process


def simulate(
    architecture: Net,
    *,
    draws: int,
    seed: int,
    weights: str = "auto",
    backend: str = "numpy",
    precision: str = "float64",
    inputs: ArrayLike | None = None,
    batch: Batch = PLAIN,
    loss: str = "squared",
    correlations: bool = False,
    by_site: bool = False,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure update energy, label term, output term and overlap energy of every layer over independent draws.

    Every draw takes new weights, labels (y ~ N(0, 1) unless ``batch`` or ``loss`` say otherwise) and (unless given)
    inputs, and computes the exact one-step change of every pre-activation at learning rate 1 by one forward, backward
    and tangent pass.

    Of a loop, measure the residual energy of every step and its split H_l = H_0 + B_l + C_l instead, by walking it.

    Args:
        architecture: the net or loop.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        weights: "dense" Gaussian matrices, "lazy" ones that are revealed only where they are looked at, "gram", no
            matrices but the lengths and angles that energies depend on, whatever the width (MLPs of "relu" or "linear"
            with one input), or "auto", the cheapest: all of one law, with other numbers; the dataset says which.
        backend: "numpy", or for nets "cupy", a CUDA device through CuPy: the same passes on many draws at once. A
            device has streams of its own for weights: the same law, other numbers than "numpy" has.
        precision: of weights and passes of a net, "float64" or "float32", which halves the memory; energies are
            summed in double precision. On "numpy" draw i is the same net, rounded. docs/precision.md has the bias.
        inputs: a fixed batch (samples, channels, *grid) instead of the architecture's input law; of a loop, the start
            h_0 of all draws, (width,).
        batch: how the samples of a net's batch hang together: correlated inputs, labels with a mean or of a teacher.
        loss: "squared", |z_out - y|^2 / (2 M), or "cross_entropy", with the outputs of a site as logits and a class
            drawn uniformly for every sample and site; both mean over the samples. The label term is then that of
            y - 1/C, the output term that of the softmax less 1/C, and still S = A + B.
        correlations: whether to measure, of a loop, how increments and features of all pairs of steps overlap.
        by_site: whether to measure, of a net, label term, output term and update energy at every site, too.
        workers: processes, 1 stays in this one; or `meanfield.Workers`, for the workers of a Dask scheduler.
        resume_in: folder for finished pieces; a rerun with the same arguments continues from them.

    Returns:
        Dataset over ``layer`` = 1 .. L with the variables of `meanfield.QUANTITIES`, each with NAME_stderr,
        NAME_largest_share and, per layer, NAME_covariance; with ``by_site``, over ``layer`` and ``site`` (row by row),
        label_term_by_site, output_term_by_site and update_energy_by_site, without covariance. The overlap energy, which
        no label moves, is measured beside plain labels and squared loss only.
        Of a loop, over ``step`` = 1 .. L: residual_energy, initial_energy, cross_term and correlation_term, and with
        ``correlations`` increment_correlation and feature_overlap over pairs of steps. Streams may outgrow the floats:
        such a mean and its error read inf, and log_residual_energy, the logarithm of the mean of H_l with its relative
        error, stays finite.

    Raises:
        TypeError, ValueError: what is neither net nor loop, bad counts, names or inputs. MemoryError: more than the
        machine has. ModuleNotFoundError, OSError: a backend without its library or its device. All before any work.
        OverflowError: a single step of a loop leaves the range of floats, or its stream does so under an activation
        that is not homogeneous; a net's numbers leave the range of its precision.

    Source: P0 eqs. 7-9, 18-20; P2 eqs. 1, 2.
    """
    require_net(architecture, units=True)
    own: dict[str, Any] = {"batch": batch, "loss": loss, "by_site": by_site, "backend": backend, "precision": precision}
    if architecture.readout_unit is None:
        _require_plain(own)
        own = {"correlations": correlations}
    elif correlations:
        raise ValueError(f"correlations are those of the steps of a TiedLoop; this is a {type(architecture).__name__}")
    measure = default_measure(architecture, inputs=inputs, weights=weights, **own)
    return simulate_one(Run(architecture, measure, draws, seed), workers, resume_in)


def default_measure(architecture: Net, **options: Any) -> Measure:
    """What `simulate` measures: the energies of a net's update, or a loop's residual energy."""
    if architecture.readout_unit is not None:
        return Energies(**options)
    if options["weights"] == "gram":
        require_gram_process(architecture)
    return ResidualEnergies(**options)


def _require_plain(own: dict[str, Any]) -> None:
    """Raise ValueError where options that are those of nets with outputs are given for a loop."""
    if own["batch"] != PLAIN or own["loss"] != "squared":
        raise ValueError("batch and loss are those of nets; a loop has neither samples nor labels: leave them out")
    if (own["backend"], own["precision"]) != ("numpy", "float64"):
        raise ValueError(
            f"a TiedLoop is walked by backend 'numpy' in float64; backend {own['backend']!r} and precision "
            f"{own['precision']!r} are for nets: leave them out"
        )
    if own["by_site"]:
        raise ValueError("by_site is for nets on grids; a TiedLoop has no sites: leave the option out")


def simulate_overlaps(
    architecture: Sequential,
    *,
    pairs: Iterable[Any],
    draws: int,
    seed: int,
    weights: str = "auto",
    fixed_layers: int = 0,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure the overlaps T_h of pairs of parameter directions from where they begin to the top layer.

    Args:
        architecture: the net.
        pairs: ((layer, unit), (layer, unit)), counted from 1; a direction moves the weights into one unit along that
            unit's own incoming features (`meanfield.nets.directions`). In residual nets layers are depth units: stem
            layers, blocks, tail layers.
        draws: at least 2.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        weights: "dense", "lazy", or "auto", the cheaper of both.
        fixed_layers: inputs and the weights of so many first layers (depth units) are the same in all draws, so that
            means are conditional on them.
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset over ``pair`` (named "LAYER,UNIT:LAYER,UNIT") and ``layer``: overlap T_h, squared_overlap T_h^2,
        gated_overlap (the mean of T_{h+1} given layer h), overlap_innovation (T_h less that mean), overlap_variance
        Var(T_h | layers below), gate_deviation T~ - q T and overlap_excess T_h - r T_l, each with NAME_stderr; NaN
        below the upper direction of a pair, and where smooth gates inside a branch leave no closed mean.

    Raises:
        TypeError, ValueError: what is no net (loops are not served), a pair outside the net, bad counts or names.
        MemoryError: more than the machine has.

    Source: P0 eqs. 13-15, 27, 30-35.
    """
    require_net(architecture)
    measure = PairOverlaps(pairs=tuple(pairs), weights=weights, fixed_layers=fixed_layers)
    return simulate_one(Run(architecture, measure, draws, seed), workers, resume_in)


def simulate_loop_update(
    loop: TiedLoop,
    *,
    draws: int,
    seed: int,
    update: str = "isotropic",
    weights: str = "auto",
    inputs: ArrayLike | None = None,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure |dh_l|^2 / N, the first-order change of a loop's stream under one update at learning rate eta = 1.

    dh_{l+1} = dh_l + eps (Delta W phi(h_l) + W (phi'(h_l) dh_l)), dh_0 = 0. A tied loop moves its one matrix, which
    acts at every step; an independent stack moves each of its matrices by an update of that matrix's own.

    Args:
        loop: the loop.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        update: "isotropic", Delta W = eta / sqrt(N) times random signs independent of all else; or, for the loss
            l = |h_L - y|^2 / (2 N) with labels y ~ N(0, I), "aligned", -eta / sqrt(N) sign(dl/dW), or "gradient",
            -eta dl/dW (no factor of N: the loss is a mean over units, so every unit changes by order one).
        weights: "dense", "lazy" or "auto", as for `simulate`. The update itself is exact either way.
        inputs: h_0 of all draws, (N,), instead of N(0, I).
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset over ``step`` = 1 .. L: stream_update_energy with NAME_stderr and NAME_largest_share. Quadratic in eta.
        While H is O(1) it scales as (eta eps L)^2 for isotropic updates, N times that for aligned ones, whose norm is
        eta sqrt(N), and as (eta eps^2 L^2)^2 for gradients.

    Raises:
        TypeError, ValueError: what is not a loop, bad counts, names or inputs. MemoryError: more than the machine has.
        All before any work starts. OverflowError: a draw leaves the range of floats.

    Source: P2 Theorem 2, appendix D.
    """
    if not isinstance(loop, TiedLoop):
        raise TypeError(
            f"loop is of type {type(loop).__name__}; it must be a TiedLoop (simulate measures updates of nets)"
        )
    measure = StreamUpdates(update=update, inputs=inputs, weights=weights)
    return simulate_one(Run(loop, measure, draws, seed), workers, resume_in)
