"""Residual nets and GPTs of any size under a table of hyperparameters: what it says of the net, and what of training.

Values of the base model are 1 but for its variances, which are those of fan-in, and of rates of all but hidden weights
beside Muon's. Under every table it is one net, and where two tables give the same numbers, they train the same net.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

import meanfield as mf
from meanfield.nets import WEIGHT_ROLES, BlockNet, Net, with_hyperparameters
from meanfield.verification import tuned_rates
from sims.common.gpts import loss_of_pairs, text_net
from sims.common.images import CHARACTERS, DIGITS, TEXT
from sims.common.training_data import InputsAndTargets, training_data

# Tables for blocks of k >= 2 layers, of one layer, and none, as Zheng et al. 2026 call them; the first two are muP.
CONDITIONS = {"many": "condition 3.1", "one": "condition B.1", "standard": "the standard"}
RESIDUAL, GPT = "residual", "gpt"
FAMILIES = {RESIDUAL: "residual nets", GPT: "GPTs"}
# By name, what multiplies the base rate of weights that are not hidden: beside Muon AdamW has a tenth of it (appendix
# E.3.3), beside Muon-Kimi the same (appendix E.3.2).
OPTIMIZERS = {"adamw": 1.0, "muon-adamw": 0.1, "muon_kimi-adamw": 1.0}
# AdamW's in the base model (appendix E.3), and the layers of a branch.
BASE_EPSILON, BLOCK_DEPTH = 1e-16, 2
DIGIT_IMAGES, PIXELS = "digits", 64

Factors = dict[str, dict[str, float]]


@dataclass(frozen=True)
class NetPlace:
    """One net: its family, what trains it, the table that it is under, and its size."""

    family: str
    optimizer: str
    table: str
    width: int
    depth: int

    def first_alike(self, base: tuple[int, int]) -> "NetPlace":
        """The same under the first of the tables that give it the same numbers."""
        own = factors_of(self, base)
        others = (replace(self, table=table) for table in CONDITIONS)
        return next(other for other in others if factors_of(other, base) == own)


def factors_of(place: NetPlace, base: tuple[int, int]) -> Factors:
    """role -> hyperparameter -> what the table multiplies that of the base model by."""
    names = ("block_multiplier", "initial_variance", "learning_rate", "weight_decay", "adamw_epsilon")
    return mf.transfer_hyperparameters(
        place.optimizer,
        width=place.width,
        depth=place.depth,
        base_width=base[0],
        base_depth=base[1],
        base_values=dict.fromkeys(names, 1.0),
        block_depth=1 if place.table == "one" else BLOCK_DEPTH,
        parameterization="standard" if place.table == "standard" else "spectral",
        roles=WEIGHT_ROLES,
    )


def net_of(place: NetPlace, base: tuple[int, int], tokens: int) -> Net:
    """The net with the variances and multipliers of its table."""
    return _BUILDERS[place.family](place, base, factors_of(place, base), tokens)


def _residual(place: NetPlace, base: tuple[int, int], factors: Factors, _: int) -> BlockNet:
    """Blocks of two layers with ReLU behind every matrix (eq. 28), on digits."""
    variances = {"input": 1 / PIXELS, "hidden": 1 / base[0], "output": 1 / base[0]}
    return BlockNet(
        width=place.width,
        depth=place.depth,
        block_depth=BLOCK_DEPTH,
        input_width=PIXELS,
        outputs=DIGITS,
        activation="relu",
        multipliers=tuple(factors[role]["block_multiplier"] for role in WEIGHT_ROLES),  # type: ignore[arg-type]
        variances=tuple(factors[role]["initial_variance"] * variances[role] for role in WEIGHT_ROLES),  # type: ignore[arg-type]
    )


def _gpt(place: NetPlace, base: tuple[int, int], factors: Factors, tokens: int) -> Net:
    """Pre-norm decoders of characters with LayerNorm."""
    net, of_base = (text_net(width, place.depth, "layer", tokens=tokens) for width in (place.width, base[0]))
    return with_hyperparameters(net, of_base, factors)


_BUILDERS: Mapping[str, Callable[..., Net]] = {RESIDUAL: _residual, GPT: _gpt}


def role_factors_of(place: NetPlace, base: tuple[int, int]) -> Factors:
    """What training multiplies the base rate, decay and epsilon by, role by role."""
    others = OPTIMIZERS[place.optimizer]
    return {
        role: {
            "learning_rate": factors["learning_rate"] * (1.0 if role == "hidden" else others),
            "weight_decay": factors["weight_decay"],
            "epsilon": factors.get("adamw_epsilon", 1.0),
        }
        for role, factors in factors_of(place, base).items()
    }


def data_of(family: str, net: Net, images: int | None, windows: int, seed: int) -> InputsAndTargets:
    """So many digits, or windows of text."""
    source, samples = (DIGIT_IMAGES, images) if family == RESIDUAL else (TEXT, windows)
    return training_data(source, net, samples=samples, seed=seed)


def chance_loss(family: str) -> float:
    """The loss of equal probabilities."""
    return float(np.log(DIGITS if family == RESIDUAL else len(CHARACTERS)))


def learned_loss(family: str, data: InputsAndTargets) -> float:
    """Below which a net has learned: a third of chance, or what pairs of letters tell of the next one in this text."""
    return tuned_rates.LEARNED * chance_loss(family) if family == RESIDUAL else loss_of_pairs(*data)
