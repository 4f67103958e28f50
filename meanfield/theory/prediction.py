"""`predict`: one entry to every level of theory, answering in the schema of `simulate`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.machine import says_how_long
from meanfield.common.validation import require_choice, require_flag, require_positive
from meanfield.nets.dense import DenseNet
from meanfield.nets.inputs import LOSS_NAMES, Batch, checked_inputs, require_classes
from meanfield.nets.layered import Sequential
from meanfield.nets.listed import ListedLayers, listed_layers
from meanfield.nets.loop import Loop
from meanfield.nets.net import Chain, Net
from meanfield.nets.recognised import as_family, require_net
from meanfield.nets.staged import Staged
from meanfield.nets.transformer import TokenStream
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.levels import (
    ConcatenatingMeanFieldLevel,
    ExactLevel,
    FiniteChannelsLevel,
    LawLevel,
    Level,
    MeanFieldLevel,
    Options,
    StagedMeanFieldLevel,
)
from meanfield.theory.levels_of_streams import LoopLawLevel, LoopMeanFieldLevel, TokenStreamMeanFieldLevel
from meanfield.theory.maps import require_predictable

LEVELS: tuple[Level, ...] = (
    ExactLevel(),
    MeanFieldLevel(),
    LawLevel(),
    FiniteChannelsLevel(),
    StagedMeanFieldLevel(),
    LoopMeanFieldLevel(),
    LoopLawLevel(),
    TokenStreamMeanFieldLevel(),
    ConcatenatingMeanFieldLevel(),
)


@says_how_long
def predict(
    net: Sequential | DenseNet | Staged | Loop | TokenStream | Chain,
    *,
    level: str,
    inputs: ArrayLike | None = None,
    batch: Batch | None = None,
    loss: str = "squared",
    pairs: Iterable[Any] | None = None,
    spread: bool = False,
    correlations: bool = False,
    by_site: bool = False,
    accuracy: float | None = None,
    optimizer: str | Optimizer | Hybrid = "sgd",
    scales: bool = False,
) -> xr.Dataset:
    """Expected update energy and its parts at every layer, or residual energy at every step, without drawing anything.

    Args:
        net: the net, or the loop; of a `meanfield.Chain` with the units of a family's net, that net. Of other units
            level "mean_field" serves layers of one stencil, of any activations, variances and widths, one behind the
            other, and blocks of one activation, of any depths, variances and multipliers, one on the other: overlap
            energies, and label terms under a convolutional readout.
        level: "exact", at finite width and any depth, for fully-connected nets with one input and activation "relu" or
            "linear", residual ones if linear (docs/theory.md sections 3, 4, 8);
            "mean_field", leading order in 1/channels for any sites and padding (docs/theory.md section 6);
            "finite_channels", the same times what a plain net's own channels make of it, "relu" or "linear"
            (docs/theory.md section 20); or "law", the papers' sum of minima l (l + 1)(2 l + 1)/6 with its prefactor
            set at `anchor_layer` (Zhang et al. 2026, eqs. 22, 23).
            Nets in stages: "mean_field", of downsampling "stride" (docs/theory.md section 23).
            Transformers: "mean_field", leading order in 1/width, 1/heads and 1/(head size) (docs/theory.md section 19).
            `DenseNet`: "mean_field", leading order in 1/growth (docs/theory.md section 8).
            Loops: "mean_field", the covariance of the stream at infinite width (docs/theory.md section 11), or "law",
            its closed form, for linear loops and independent steps of "relu" and "linear".
        inputs: a given batch (samples, channels, *grid); the net's own input law if not given.
        batch: how the samples of a plain net's batch hang together, at level "mean_field", as for `simulate`.
        loss: "squared" or, at level "mean_field" of plain nets (under another ``optimizer`` than descent of all nets of
            layers), "cross_entropy", as for `simulate`.
        pairs: parameter directions ((layer, unit), (layer, unit)) whose overlaps to predict too, at level "exact"; as
            for `PairOverlaps`.
        spread: whether to add, at level "exact" of plain nets, the relative spread of one draw of the overlap energy
            and of the label term, from which (spread / e)^2 draws follow for a relative error e.
        correlations: whether to add, at level "mean_field" of loops and of Transformers with tied blocks, what every
            two steps share: L^2 numbers each.
        by_site: whether to add, at level "mean_field" of nets without a pooled readout, plain labels and squared
            loss, the label term at every site: ``label_term_by_site`` over ``layer`` and ``site``, sites row by row.
        optimizer: whose first step from rest moves the weights, by name or one of `meanfield.optimizers`; another than
            descent at level "mean_field" of nets of layers with up to 32 samples times sites, and of loops of up to 64
            steps.
        scales: whether to answer under descent, too, what there is under other optimizers, for the same nets of layers.

    Returns:
        Dataset over ``layer``, for labels of variance 1 at learning rate 1. All levels: ``overlap_energy``,
        ``label_term`` and ``label_learning_rate_scale``, the last two under a pooled readout of plain nets alone, with
        smooth activations on circular grids with the net's own inputs (docs/theory.md section 9); with log_NAME of
        each, finite at depths where the quantity itself overflows to infinity. Level "finite_channels" has these alone,
        under a pooled readout of "relu" the overlap energy; it is exact in linear nets and for one site, and a
        `PremiseWarning` says where ReLU nets have more layers over channels than draws have checked. At level
        "mean_field" plain ReLU and linear nets have ``output_term``, ``update_energy``, ``mean_update_energy`` and
        ``learning_rate_scale`` of the whole update, too (docs/theory.md section 18), under a pooled readout on circular
        grids or without gates; where they are left out, the attribute ``left_out`` says why. Corrections to them are of
        relative order depth^2 / channels: at depth 8 and 64 channels drawn output terms are 1.5 to 2.3 times as large.
        A `PremiseWarning` says where they change the scale by more than 10 %, as estimated. Under a pooled readout of
        gated nets the attribute ``finite_channels`` says what the net's channels add to the label term of every layer.
        With ``batch`` (or cross-entropy) the terms are those of its labels, without logarithms, with the output term
        under cross-entropy for one softmax; with smooth activations it is there for fully-connected nets alone, at
        leading order in outputs x depth / width. The exact level adds ``output_term``, ``update_energy``,
        ``mean_update_energy`` and ``learning_rate_scale``, with logarithms; and with ``pairs``, over ``pair`` and
        ``layer``, ``overlap`` (mean), ``squared_overlap`` and ``overlap_variance`` (of T_l given the layers below), the
        last two with theirs.

        Under another ``optimizer`` than descent, or with ``scales`` (docs/theory.md section 24), at its learning rate
        1: ``update_energy`` under the whole error, ``label_term`` and ``output_term`` under the labels' and the
        outputs' alone, which add up to it under descent only, ``relative_update_energy`` S_l / c_l,
        ``output_update_energy``, ``mean_update_energy`` and the scales ``learning_rate_scale``, ``relative_``,
        ``last_``, ``output_`` and ``label_learning_rate_scale``, with logarithms. Of several samples or sites errors at
        the outputs are drawn, always the same: the attribute ``relative_error`` says how much that leaves open.

        `DenseNet` has the same as plain nets for plain labels and squared loss, and with smooth activations no output
        term; label terms under a pooled readout where those of plain nets are. ``left_out`` says why there is no more.

        Transformers, over ``layer`` = 1 .. 2 depth: ``overlap_energy``, ``label_term`` and
        ``label_learning_rate_scale``, for one sample or given inputs ``output_term``, ``update_energy``,
        ``mean_update_energy`` and ``learning_rate_scale``, all with their logarithms, ``stream_variance`` and, of two
        tokens or more, ``token_correlation``. The output term is that of few outputs, with a `PremiseWarning` where
        they are many; of any number of them under a readout of one token, and at attention scale "inverse" where pairs
        of tokens are followed (docs/theory.md section 19): those of given inputs, under a causal mask, or of several
        samples with smooth or gated activations, up to 143 tokens, without ``overlap_energy``. The attribute
        ``left_out`` says why a quantity is left out. Under pre-norm there are, over ``step`` = 1 .. 2 depth, the
        energies of loops. Nets with tied blocks, and those with rotary positions at attention scale "inverse_sqrt",
        have these, ``stream_variance`` and ``token_correlation`` alone, in O(depth^2) (docs/theory.md section 22).

        Loops instead over ``step``: ``residual_energy``, ``initial_energy`` (1), ``cross_term`` (0) and
        ``correlation_term``, and with ``correlations``, over ``step`` and ``step_other``, ``increment_correlation`` and
        ``feature_overlap``; with log_NAME of all but the cross term, finite where the energy overflows to infinity.

    Raises:
        TypeError, ValueError: what is neither net nor loop; a level that does not exist for this net, naming those that
            do; inputs of the wrong shape, that vanish or whose energies no float holds; options of another family or
            level; labels that correlate samples where gates are neither ReLU's nor linear; a loop whose stream leaves
            what averages of its smooth activation are computed for.
        OverflowError: a mean field that leaves the range of floats by more than powers of the weights' variance.
        ArithmeticError: an accuracy of softmaxes that two million points do not reach.
        MemoryError: more pairs of sites or of steps, or more layers under another optimizer, than the machine can hold,
            saying how much they need.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.MLP(depth=8, width=64)
        >>> exact, limit = mf.predict(net, level="exact"), mf.predict(net, level="mean_field")
        >>> round(float(exact["label_learning_rate_scale"] / limit["label_learning_rate_scale"]), 3)
        0.905
        >>> on_a_grid = mf.ConvNet(depth=8, channels=64, readout="convolution")
        >>> levels = ("finite_channels", "mean_field")
        >>> [round(float(mf.predict(on_a_grid, level=level)["label_term"][-1]), 1) for level in levels]
        [27.3, 20.3]
        >>> signs = mf.predict(mf.MLP(depth=8, width=512), level="mean_field", optimizer="adamw")
        >>> f"{float(signs['relative_learning_rate_scale']):.1e}"
        '8.0e-04'
    """
    net = _predictable(net, level)
    for name, value in {"spread": spread, "correlations": correlations, "by_site": by_site, "scales": scales}.items():
        require_flag(name, value)
    require_choice("loss", loss, LOSS_NAMES)
    step = FirstStep(optimizer)
    if loss != "squared":  # outputs are counted by a walk over all units
        require_classes(loss, net.output_shape[1])
    checked: Any = inputs if isinstance(net, Loop) else checked_inputs(net, inputs)
    level_asked = _level(net, level, Options() if isinstance(net, Loop) else Options(inputs=checked))
    options = Options(
        inputs=checked,
        batch=batch,
        loss=loss,
        pairs=pairs,
        spread=spread,
        correlations=correlations,
        by_site=by_site,
        scales=scales,
        step=step,
        accuracy=None if accuracy is None else require_positive("accuracy", accuracy, why="it is a standard error"),
    )
    if why := level_asked.serves(net, options):
        raise ValueError(why)
    return level_asked.predict(net, options)


def _predictable(net: Any, level: str) -> Sequential | DenseNet | Staged | Loop | TokenStream:
    """The net of a family that this is, or that a chain of its units is; or TypeError, ValueError."""
    net = as_family(net)
    if isinstance(net, Net) and not isinstance(net, Sequential | DenseNet | Staged | Loop | TokenStream):
        layers, why = listed_layers(net)
        if layers is not None:
            return layers
        require_predictable(net)
        raise ValueError(
            f"level for {type(net).__name__} is {level!r}; there is none for lists of units that are no family's: the "
            "second moment of the tangent kernel between channels, from which update energies follow, is known for "
            "layers of one stencil, one behind the other or in blocks of one activation, for nets whose blocks "
            f"concatenate, loops and Transformers, and here {why}; take a chain of the units of one, or simulate this "
            "net instead"
        )
    if not isinstance(net, TokenStream | DenseNet | Staged):
        require_net(net, loops=True)
    return net


def _level(net: Sequential | DenseNet | Staged | Loop | TokenStream, name: str, options: Options) -> Level:
    """The level of this name for a net or loop and its inputs; ValueError names those that serve if it does not."""
    levels = [level for level in LEVELS if isinstance(net, level.family)]
    refusals = {level.name: level.serves(net, options) for level in levels}
    serving = [level.name for level in levels if refusals[level.name] is None]
    kind = type(net.listed if isinstance(net, ListedLayers) else net).__name__
    if isinstance(net, Loop):
        kind = f"TiedLoop of tied={net.tied} and activation={net.activation!r}"
    if not isinstance(name, str) or name not in serving:
        why = next((f": {why}" for each, why in refusals.items() if isinstance(name, str) and each == name), "")
        allowed = f"choose one of {', '.join(map(repr, serving))}" if serving else "none serves it"
        raise ValueError(f"level for {kind} is {name!r}; {allowed}{why}")
    return next(level for level in levels if level.name == name)
