"""The learning rate at which steps on a batch are just stable: drawn, of given weights, or predicted."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.seeds import checked_seed, stream
from meanfield.common.validation import PremiseWarning, fingerprint, require_choice
from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.training import checked_pair
from meanfield.execution.workers import Workers
from meanfield.nets.inputs import require_classes
from meanfield.nets.net import Net
from meanfield.nets.recognised import require_net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.quantities.registry import plain_dataset
from meanfield.quantities.step_scales import STILL
from meanfield.simulation.training.data import checked_data
from meanfield.simulation.training.losses import LOSSES
from meanfield.simulation.training.sharpness import Sharpness, warn_unless_known
from meanfield.simulation.weights import checked_weights
from meanfield.theory.tangent_kernels import mean_field_curvatures

MEAN_FIELD = "mean_field"
ONE_GRADIENT = (
    "second moments are those of one gradient, whose smallest elements make the curvature: its mean over nets has no "
    "limit, and single nets lie far apart; give a batch_size that makes several mini-batches of these data"
)


def stable_rate(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    loss: str = "cross_entropy",
    optimizer: str | Optimizer | Hybrid = "sgd",
    batch_size: int | None = None,
    epsilon: float = 0.0,
    draws: int = 16,
    seed: int = 0,
    level: str | None = None,
    weights: Sequence[ArrayLike] | None = None,
    backend: str = "numpy",
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """2 / lambda_max at initialisation: the rate above which steps on the full batch leave a quadratic minimum.

    lambda_max is the largest eigenvalue of the Gauss-Newton matrix J^T H J of the mean loss over the given batch, with
    J the derivative of the outputs with respect to all weights and H the loss's second derivative with respect to the
    outputs: (1/B)(diag(p) - p p^T) at each of B samples under cross-entropy, 1 / (M B) under squared loss with M
    outputs. It is found by Lanczos iterations on a backward pass and a tangent, to a relative residual of 1e-6.
    Under momentum the limit is 2 (1 + beta) / lambda_max. Under AdamW it is 2 (1 + beta_1) / (1 - beta_1) over the
    largest eigenvalue of p^(-1/2) J^T H J p^(-1/2), with p = sqrt(v) + epsilon, and v the mean over mini-batches of the
    squared gradient at initialisation, element by element. In training v changes, and the limit with it.

    Args:
        net: any net or loop; its own number of samples counts for nothing here.
        data: the batch, inputs and targets as for `train`. Targets are checked; AdamW's v alone depends on them.
        loss: "cross_entropy" or "squared", as for `train`.
        optimizer: "sgd", without momentum, "sgd_momentum" (0.9), "adamw", or `SGD` or `AdamW` of
            `meanfield.optimizers`.
        batch_size: AdamW's alone: samples of a mini-batch, taken in their order; all of them if left out, which gives a
            warning. The last samples, fewer than a batch, are left out of curvature and moments.
        epsilon: AdamW's alone. Without one, weights whose root of v is below 64 roundings of the largest do not move.
        draws: nets to draw, at least 2; draw 0 is the net that `train` starts from under this seed.
        seed: root of all streams.
        level: None draws. "mean_field" predicts, at leading order in 1/width, the means over draws for nets of untied
            weights through which covariance and tangent kernel can be followed, Transformers of many heads included.
            Draws at width n have a larger sharpness by a share of order 1/n; under squared loss with several outputs by
            one of order n^(-1/2), as these share one eigenvalue at infinite width, which finite width splits.
        weights: one net's own, in the order of `net.weights`, in place of drawn ones.
        backend: where the passes run, "numpy", or "cupy", a CUDA device; the nets are the same on both.
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset of ``sharpness`` (lambda_max) and ``stable_rate``, the limit over it. Of drawn nets they are means, with
        NAME_stderr and NAME_largest_share, and ``stable_rate_quantile`` says how single nets scatter. Both are
        dimensionless; lambda_max of descent grows as n L in plain nets with a "he" or "fan_in" head. Where it is 0, as
        of nets whose units have died or outputs so large that their softmax is 0 or 1, the rate is infinite, without an
        error, and a `PremiseWarning` says so.

    Raises:
        TypeError, ValueError: what is no net, data that do not fit it, an unknown loss or level, a level together with
            weights or AdamW, a net that the level does not serve, cross-entropy of a single output, an optimizer of
            which no limit is known, a batch_size or an epsilon without AdamW.
        MemoryError: more than the machine has.
        OverflowError: a curvature outside the range of floats.

    Source: docs/theory.md section 21; Cohen et al. 2021 and 2022 for momentum and second moments.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((32, 8)), rng.integers(0, 3, 32)
        >>> net = mf.MLP(depth=2, width=16, input_width=8, outputs=3)
        >>> mf.stable_rate(net, data, draws=2, seed=0)["stable_rate_quantile"].dims
        ('quantile',)
        >>> adaptive = mf.stable_rate(net, data, optimizer="adamw", batch_size=8, draws=2, seed=0)
        >>> adaptive.attrs["optimizer"]
        'adamw'
    """
    require_net(net, units=True)
    require_choice("loss", loss, LOSSES)
    require_choice("level", level, (None, MEAN_FIELD))  # type: ignore[arg-type]
    inputs, targets = checked_pair(data)
    require_classes(loss, net.output_shape[1])
    checked_data(net, inputs, targets, LOSSES[loss])
    of_moments: Any = {"optimizer": optimizer, "batch_size": batch_size, "epsilon": epsilon, "targets": targets}
    measure = Sharpness(inputs=inputs, loss=loss, backend=backend, **of_moments).settled(net)
    if level == MEAN_FIELD:
        if weights is not None:
            raise ValueError("weights are given, and level 'mean_field' averages over weights: leave one of them out")
        if measure.divides:
            raise ValueError(
                f"optimizer is {optimizer!r}, whose second moments level 'mean_field' has not: leave it out"
            )
        return _single(net, measure, mean_field_curvatures(net, inputs, loss), {"level": level})
    if weights is None:
        drawn = simulate_all([Run(net, measure, draws, seed)], workers=workers, store=store_in(resume_in))[0]
        return _told(drawn, measure)
    own = checked_weights(net, weights)
    measure.require_memory(net, 1, 1)
    largest, residual = measure.of_weights(net, own, stream(checked_seed(seed), "curvature", 0))
    warn_unless_known(np.array([largest]), np.array([residual]))
    told = "".join(map(fingerprint, own.values()))
    return _single(net, measure, np.array([largest]), {"level": "measured", "given_weights": told})


def _single(net: Net, measure: Sharpness, curvatures: Any, attrs: dict[str, str]) -> xr.Dataset:
    """Means without errors."""
    values = {"sharpness": np.mean(curvatures), "stable_rate": np.mean(measure.rate_at(curvatures))}
    made = plain_dataset(net, values, attrs | {"loss": measure.loss} | measure.described)
    return _told(measure.labelled(made), measure)


def _told(made: xr.Dataset, measure: Sharpness) -> xr.Dataset:
    """The dataset, with a warning where its stable rate is infinite, or rests on one gradient."""
    if measure.divides and measure.batch_size == len(measure.inputs):
        warnings.warn(ONE_GRADIENT, PremiseWarning, stacklevel=3)
    if why := still_reason(made, measure.inputs):
        warnings.warn(why, PremiseWarning, stacklevel=3)
    return made


def still_reason(made: xr.Dataset, inputs: Any) -> str:
    """Why the stable rate of a dataset is infinite, and what to do; empty where it is not."""
    if np.isfinite(made["stable_rate"]):
        return ""
    who = "the net has"
    if "stable_rate_quantile" in made:
        some = np.isfinite(made["stable_rate_quantile"].sel(quantile=0.5))
        who = "some of the drawn nets have" if some else "half or more of the drawn nets have"
    softmax = made.attrs["loss"] == "cross_entropy" and np.any(inputs)
    saturated = "outputs are so large that their softmax is 0 or 1, " if softmax else ""
    return f"{who} no curvature on these data, so that every rate is stable: {saturated}{STILL}"
