"""Residual nets of blocks: their base values, the ladders of widths and depths that studies run, what they watch,
and the norms by which slopes are cleared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, require_choice, require_count, require_positive
from meanfield.execution import Run
from meanfield.nets import WEIGHT_ROLES, BlockNet, Net
from meanfield.optimizers import optimizer_of_role, require_optimizer
from meanfield.parameterizations import OPTIMIZER_NAMES, Cell, transfer_hyperparameters
from meanfield.simulation import TrainedStreams
from meanfield.verification import LadderSlope, ladder_slope, ladder_values
from sims.common.command import Option, chosen_of, ladder, ladder_of
from sims.common.results import Results

BASE_WIDTH, BASE_DEPTH = 64, 2
# Relative corrections in 1/n of ReLU nets over those of linear ones: the energy of a layer fluctuates by
# E[s^4]/E[s^2]^2 - 1 = 5 against 2.
RELU_OVER_LINEAR = 2.5

INPUT_WIDTH = 16
# Of the base model, by role: the multiplier and the variance of an element. Biases are multiplied with their weights.
BASE_SCALES = {
    "input": (1.0, 1.0 / INPUT_WIDTH),
    "hidden": (1.0 / BASE_DEPTH, 1.0 / BASE_WIDTH),
    "output": (1.0 / BASE_WIDTH, 1.0),
}
BIAS_OF = {"input_bias": "input", "hidden_bias": "hidden"}

# Base learning rates at which the first update moves the stream of the base model by about a tenth of itself.
RATES = {
    "sgd": 0.2,
    "adamw": 0.002,
    "lion": 0.002,
    "sophia": 0.002,
    "muon": 0.06,
    "muon_kimi": 0.04,
    "shampoo": 0.6,
    "soap": 0.03,
    "sso": 0.06,
}
# Base learning rates without momentum, at which ten steps move the stream by about itself. At lower ones the first
# step's overlaps of independent vectors, which fall with the width, still outweigh what further steps add to terms of
# higher order; at higher ones changes grow among each other, as (1 + c / L)^L, whose approach to its limit over L looks
# like a slope. Without momentum AdamW and Lion take one step, the sign, as Sophia does unless curvature is large; and
# Muon, Shampoo and SOAP take another.
PLAIN_RATES = {"sgd": 0.4, "adamw": 0.001, "muon": 0.06, "muon_kimi": 0.04, "sso": 0.06}
PLAIN_RATES |= dict.fromkeys(("lion", "sophia"), 0.001) | dict.fromkeys(("shampoo", "soap"), 0.06)

# SOAP needs an epsilon, of which the paper gives no row: a turned basis has slots where the momentum is not small and
# no squared gradient has come in yet, as gradients of eight samples have a rank of eight or less. There the momentum is
# divided by epsilon alone, so that steps are as large as epsilon is small. It stands beside singular values of
# gradients, Shampoo's beside their squares. The usual value is that of programs, which train on batches of full rank.
SOAP_EPSILON, USUAL_SOAP_EPSILON = 0.002, 1e-8
# Of a typical element (AdamW) or squared singular value (Shampoo) of the base model's gradients, a millionth or less.
EPSILONS = {"adamw": {"adamw_epsilon": 1e-10}, "shampoo": {"shampoo_epsilon": 1e-12}}
# What makes every cell of a table act in the base model: epsilons as large as those elements and squared singular
# values are with eight samples and four outputs; decay that takes this share of a weight in a step; and an output
# learning rate that is so many times the others', as output weights are eight times as large as hidden ones. And biases
# of the hidden weights' variance: their decay would hide all else of those of variance 1.
ACTING_EPSILON, ACTING_DECAY, ACTING_OUTPUT, ACTING_BIAS = 0.006, 0.02, 32.0, 1 / BASE_WIDTH

# Role -> hyperparameter -> number. Every role has those of the optimizer that steps it.
Values = dict[str, dict[str, float]]


def hyperparameters(
    optimizer: str,
    table: str,
    width: int,
    depth: int,
    *,
    rate: float | None = None,
    rates: Mapping[str, float] = RATES,
    biases: bool = False,
    acting: bool = False,
    own: Mapping[Cell, float] | None = None,
    soap_epsilon: float = SOAP_EPSILON,
) -> Values:
    """role -> hyperparameters, each by the table of the optimizer that steps it.

    The base model is of width 64 and depth 2, its streams and outputs O(1).

    Args:
        optimizer: one for all roles or a hybrid, as `optimizer_of_role` takes it.
        rate: base learning rate of all roles; if left out, by optimizer from ``rates``.
        acting: whether weights decay, epsilons are as large as gradients of the base model, output weights alone move
            the outputs, and biases are small; otherwise there is no decay and epsilons are negligible.
        own: base values of single roles in place of these. Decays keep their share of a step unless given as well.
        soap_epsilon: SOAP's in the base model; it scales as the root of Shampoo's.
    """
    of_roles = {role: optimizer_of_role(optimizer, role) for role in (*BASE_SCALES, *(BIAS_OF if biases else ()))}
    given = _by_role(own or {}, list(of_roles))
    chosen = rates if rate is None else dict.fromkeys(rates, rate)
    base = {role: _base_values(role, by, chosen[by], acting, given[role]) for role, by in of_roles.items()}
    return {role: _resolved(role, by, table, width, depth, base[role], soap_epsilon) for role, by in of_roles.items()}


def _by_role(own: Mapping[Cell, float], roles: Sequence[str]) -> Values:
    """The base values given for every role; refuses roles and cells that nets of blocks do not have."""
    for role, name in own:
        require_choice(f"the role of --base {role}.{name}", role, roles)
        if name == "block_multiplier" and role in BIAS_OF:
            weights = f"{BIAS_OF[role]}.{name}"
            raise ValueError(f"--base {role}.{name}: biases are multiplied with their weights; give {weights} alone")
    return {role: {name: value for (place, name), value in own.items() if place == role} for role in roles}


def _base_values(role: str, optimizer: str, rate: float, acting: bool, given: Mapping[str, float]) -> dict[str, float]:
    """Hyperparameters of one role of the base model, those given in place of the usual ones."""
    multiplier, variance = BASE_SCALES[BIAS_OF.get(role, role)]
    rate = given.get("learning_rate", rate * (ACTING_OUTPUT if acting and role == "output" else 1.0))
    if role in BIAS_OF:
        variance = ACTING_BIAS if acting else 1.0
    base = {"block_multiplier": multiplier, "initial_variance": variance}
    epsilons = EPSILONS.get(optimizer, {})
    base |= {"learning_rate": rate} | epsilons
    if acting:
        base |= {"weight_decay": ACTING_DECAY / rate if rate else 0.0} | dict.fromkeys(epsilons, ACTING_EPSILON)
    return {**base, **given}


def _resolved(
    role: str, optimizer: str, table: str, width: int, depth: int, base: Mapping[str, float], soap_epsilon: float
) -> dict[str, float]:
    """One role's, by a table of the paper, or as in the base model."""
    shared: dict[str, Any] = {"width": width, "depth": depth, "base_width": BASE_WIDTH, "base_depth": BASE_DEPTH}
    shared |= {"block_depth": 1 if table == "one" else 2, "roles": (role,)}
    shared |= {"parameterization": "standard" if table == "standard" else "spectral"}
    resolved = transfer_hyperparameters(optimizer, base_values=base, **shared)[role]
    if optimizer == "soap":
        squares = transfer_hyperparameters("shampoo", base_values={"shampoo_epsilon": soap_epsilon**2}, **shared)
        resolved["soap_epsilon"] = squares[role]["shampoo_epsilon"] ** 0.5
    return resolved


# Of `given_soap_epsilon`.
SOAP_EPSILON_OPTION = Option(
    "soap_epsilon",
    f"of SOAP in the base model, beside singular values of gradients (default: {SOAP_EPSILON:g}; programs take "
    f"{USUAL_SOAP_EPSILON:g} for batches of full rank)",
    float,
    metavar="E",
    group="training",
)

BLOCKS_OPTION = Option(
    "blocks",
    "blocks of residual nets, two or more",
    int,
    metavar="K",
    many="+",
    check=ladder_of(2, "a slope", maximum=MOST_LAYERS, why="blocks of residual nets"),
)


def base_option(example: str) -> Option:
    """Of `own_values`."""
    words = f"base value of one role alone, such as {example} (several may follow)"
    return Option("base", words, default=[], metavar="ROLE.NAME=VALUE", many="+", group="training")


def given_soap_epsilon(given: float | None, optimizers: Iterable[str]) -> dict[str, Any]:
    """{"soap_epsilon": of the base model} where SOAP steps any weights, nothing where it does not.

    Raises:
        ValueError: one that is given and not positive, or where no optimizer is SOAP.
    """
    if not any("soap" in optimizer.split("-") for optimizer in optimizers):
        if given is not None:
            raise ValueError(f"--soap-epsilon {given:g} is SOAP's alone; give soap as an optimizer, or leave it out")
        return {}
    why = "SOAP divides momenta by it where a batch has no gradient"
    return {"soap_epsilon": SOAP_EPSILON if given is None else require_positive("--soap-epsilon", given, why=why)}


def own_values(given: Iterable[str]) -> dict[Cell, float]:
    """(role, hyperparameter) -> its own base value, of words ROLE.NAME=VALUE."""
    values: dict[Cell, float] = {}
    for word in given:
        try:
            place, value = word.split("=")
            role, name = place.split(".")
            number = float(value)
        except ValueError:
            raise ValueError(f"--base {word} is not ROLE.NAME=VALUE, such as hidden_bias.initial_variance=0") from None
        if (role, name) in values:
            raise ValueError(f"--base {word} gives {place} a second value; give it once")
        if name == "block_multiplier":
            require_positive(f"--base {place}", number, why="at 0 these weights pass nothing on and never learn")
        values[role, name] = number
    return values


def block_net(by_role: Mapping[str, Mapping[str, float]], width: int, depth: int, **options: Any) -> BlockNet:
    """The net whose multipliers and variances these hyperparameters give."""
    multipliers, variances = (
        tuple(by_role[role][name] for role in WEIGHT_ROLES) for name in ("block_multiplier", "initial_variance")
    )
    if options.get("biases"):
        first, bias_variance = (by_role[role]["initial_variance"] for role in BIAS_OF)
        if first != bias_variance:
            raise ValueError(
                f"initial_variance of input_bias is {first:g} and of hidden_bias {bias_variance:g}; nets of blocks "
                "have one for both: give both the same"
            )
        options = options | {"bias_variance": bias_variance}
    shared: dict[str, Any] = {"input_width": INPUT_WIDTH, "multipliers": multipliers, "variances": variances}
    return BlockNet(width=width, depth=depth, **(shared | options))


# Tables for blocks of k >= 2 layers (condition 3.1), of one layer (condition B.1), and none: nothing scales.
TABLES = {"many": "k >= 2 table", "one": "k = 1 table", "standard": "standard"}
TABLES_OPTION = Option(
    "tables",
    f"of {', '.join(TABLES)} (default: all)",
    default=list(TABLES),
    metavar="NAME",
    many="+",
    check=chosen_of(TABLES),
    group="training",
)
DIRECTIONS = ("width", "depth")

# The least ladders on which a slope has a correction, and those at which conditions are judged: beside either end sizes
# where a fit of log y = a + s log x + c / x learns most about s for its cost, in the lower half. Twice the draws of a
# ladder of doublings would say as much. Depths are even, as streams are looked at after half of the blocks.
SMOKE: dict[str, Any] = {"widths": [16, 32, 64], "depths": [2, 4, 8], "width": 32, "depth": 4, "draws": 12}
DEFAULT: dict[str, Any] = {"widths": [64, 96, 128, 192, 512], "depths": [2, 4, 10, 12, 32], "width": 128, "depth": 4}
PAPER = DEFAULT | {"widths": [64, 128, 256, 512, 1024], "depths": [2, 4, 8, 16, 32, 64], "optimizers": ["all"]}

# Options of batches, and of nets that need not be linear.
BATCH = ("samples", "outputs")
NETS = (*BATCH, "activation")
# Options that count something.
COUNTS = ("samples", "outputs", "tokens", "steps")

# Of both ladders, and of who trains on them.
LADDER_OPTIONS = (
    Option(
        "optimizers",
        "default: see the preset; all for all nine; a hybrid such as muon-adamw has hidden matrices stepped by the "
        "first, all else by the second",
        metavar="NAME",
        many="+",
        group="nets",
    ),
    Option("widths", "widths of the ladder in width, three or more", int, metavar="N", many="+", group="nets"),
    Option(
        "depths", "numbers of blocks of the ladder in depth, three or more", int, metavar="L", many="+", group="nets"
    ),
    Option("width", "width of the ladder in depth (default: see the preset)", int, group="nets"),
    Option("depth", "blocks of the ladder in width (default: see the preset)", int, group="nets"),
)
# The same of simulations whose blocks have linear or ReLU layers, as many as one likes.
BLOCK_OPTIONS = (
    *LADDER_OPTIONS,
    Option("block_depth", "transformations of a block", int, 2, metavar="K", group="nets"),
    Option("rate", "base learning rate (default: one that moves the base model by about a tenth)", float, group="nets"),
)
# Of simulations whose nets need not be the linear ones of the paper's derivations.
ACTIVATION = Option(
    "activation",
    "linear (default) or relu behind every matrix (Zheng et al. 2026, eq. 28)",
    default="linear",
    group="nets and batches",
)
# Of simulations that train.
PRECISION = Option(
    "precision",
    "of weights and passes: float32 (default; SSO in float64), as in practice, or float64",
    default="float32",
    choices=("float32", "float64"),
    group="training",
)


def batch_options(samples: int = 8, outputs: int = 4) -> tuple[Option, ...]:
    """Options of batches, whose gradients are of a rank above one by default."""
    words, group = "outputs, for as many classes; one: for labels +-1", "nets and batches"
    return (
        Option("samples", "samples of the batch", int, samples, metavar="B", group=group),
        Option("outputs", words, int, outputs, metavar="M", group=group),
    )


def training_precision(options: argparse.Namespace, optimizer: str) -> str:
    """That of --precision, if there is such an option; double for SSO, alone or in a hybrid.

    Its steps have all singular values of the momentum alike, down to those that single precision does not tell from
    rounding, so that it would train other nets.
    """
    return "float64" if _has_sso(optimizer) else getattr(options, "precision", "float64")


def trained_in(attributes: Mapping[str, Any]) -> str:
    """The precision of a dataset's training, as reports name it."""
    optimizers, precision = attributes["optimizers"].split(), attributes["precision"]
    double = list(filter(_has_sso, optimizers))
    if double == optimizers:
        return "float64"
    return f"{precision} ({', '.join(double)}: float64)" if double and precision != "float64" else precision


def _has_sso(optimizer: str) -> bool:
    return "sso" in optimizer.split("-")


def planned_ladders(options: argparse.Namespace, *own: str) -> dict[str, Any]:
    """What all numbers of a run on nets of blocks depend on: `checked_ladders`, the block depth and the rate."""
    require_count("--block-depth", options.block_depth)
    if options.rate is not None and not 0 < options.rate < float("inf"):
        raise ValueError(f"--rate {options.rate} must be positive and finite: it is a learning rate")
    return checked_ladders(options, "block_depth", *own) | {"rate": options.rate or "by optimizer"}


def checked_ladders(options: argparse.Namespace, *own: str) -> dict[str, Any]:
    """The optimizers and the ladders, checked, in order and expanded, and the options named.

    Refuses ladders too short for a slope with a correction, and names that no table has.
    """
    for name, most in (("widths", None), ("depths", MOST_LAYERS)):
        sizes = ladder(f"--{name}", getattr(options, name), 3, "a slope with its correction", maximum=most)
        setattr(options, name, sizes)
    for name in ("width", "depth", *(name for name in COUNTS if name in own)):
        require_count(f"--{name.replace('_', '-')}", getattr(options, name))
    if options.optimizers == ["all"]:
        options.optimizers = list(OPTIMIZER_NAMES)
    # A name given twice is one line of the tables, as a size given twice is one rung.
    options.optimizers = list(dict.fromkeys(options.optimizers))
    for optimizer in options.optimizers:
        require_optimizer("--optimizers", optimizer)
    names = ("optimizers", "widths", "depths", "width", "depth", *own)
    return {name: getattr(options, name) for name in names}


def rungs(options: argparse.Namespace, direction: str) -> list[tuple[int, int]]:
    """(width, depth) of every net of one ladder."""
    if direction == "width":
        return [(width, options.depth) for width in options.widths]
    return [(options.width, depth) for depth in options.depths]


def worded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same, as a file can hold them: lists as words."""
    return {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in values.items()}


def run_under(
    options: argparse.Namespace,
    measure: Callable[..., Any],
    optimizer: str,
    given: Values,
    width: int,
    depth: int,
    **training: Any,
) -> Run:
    """A net that an optimizer trains under these hyperparameters."""
    own = {name: getattr(options, name) for name in NETS if hasattr(options, name)}
    own["biases"] = "hidden_bias" in given
    net = block_net(given, width, depth, block_depth=options.block_depth, **own)
    training["precision"] = training_precision(options, optimizer)
    whole_measure = measure(optimizer=optimizer, hyperparameters=given, **training)
    return Run(net, whole_measure, options.draws, options.seed)


def require_rate(options: argparse.Namespace) -> None:
    """Refuse a --rate under which the smallest nets leave the range of floats within two steps."""
    if options.rate is None:
        return
    table = "one" if options.block_depth == 1 else "many"
    for optimizer, along in product(options.optimizers, DIRECTIONS):
        width, depth = rungs(options, along)[0]
        given = hyperparameters(optimizer, table, width, depth, rate=options.rate)
        net = block_net(given, width, depth, block_depth=options.block_depth)
        how: dict[str, Any] = {"momentum": False, "steps": 2, "precision": training_precision(options, optimizer)}
        measure = TrainedStreams(optimizer=optimizer, hyperparameters=given, **how)
        moved = measure.draw(net, options.seed, range(1))["feature_norm"]
        if not np.isfinite(moved).all():
            raise ValueError(
                f"--rate {options.rate:g}: with {optimizer} a net of width {width} and depth {depth} leaves the range "
                "of floats within two steps; leave --rate out for one that moves the base model by a tenth"
            )


def measure_ladders(
    options: argparse.Namespace,
    results: Results,
    run_of: Callable[..., Run],
    axes_of: Callable[[str], Mapping[str, Sequence[str]]],
    read: Callable[[xr.Dataset, Any], xr.Dataset],
) -> xr.Dataset:
    """NAME_by_width and NAME_by_depth of all that ``read`` takes from the runs, over the axes and the sizes.

    Args:
        run_of: (name on each axis, width, depth) -> the run.
        axes_of: direction of a ladder -> the names on each axis.
        read: (what a run has measured, its net) -> the variables that are kept, which are the same for all runs.
    """
    axes = {along: axes_of(along) for along in DIRECTIONS}
    runs = {
        along: [run_of(*at, *size) for at in product(*axes[along].values()) for size in rungs(options, along)]
        for along in DIRECTIONS
    }
    measured = iter(results.draw([run for along in DIRECTIONS for run in runs[along]]))
    parts: dict[str, xr.Variable] = {}
    coords: dict[str, Any] = {}
    for along in DIRECTIONS:
        sizes = getattr(options, f"{along}s")
        kept = [read(next(measured), run.net) for run in runs[along]]
        shape = (*(len(names) for names in axes[along].values()), len(sizes))
        for name in kept[0].data_vars:
            first = kept[0].variables[name]
            values = np.stack([part.variables[name].values for part in kept]).reshape(*shape, *first.shape)
            parts[f"{name!s}_by_{along}"] = xr.Variable((*axes[along], along, *first.dims), values, first.attrs)
        own = {str(name): values.values for name, values in kept[0].coords.items()}
        coords |= {**axes[along], along: sizes, **own}
    return xr.Dataset(parts, coords)


def at_places(measured: xr.Dataset, net: Net) -> xr.Dataset:
    """The stream below all blocks, after half of them and after all, and the roles by name."""
    above = len(net.units) - 1
    places = {"input": 0, "middle": (above + 1) // 2, "last": above}
    streams = {}
    for name in measured.data_vars:
        at = measured.variables[name].isel(block=list(places.values()), missing_dims="ignore")
        streams[name] = xr.Variable(["place" if dim == "block" else dim for dim in at.dims], at.values, at.attrs)
    coords = {name: values.variable for name, values in measured.coords.items() if "block" not in values.dims}
    coords["place"] = list(places)
    if "role" in measured.dims:
        coords["role"] = list(dict.fromkeys(map(net.role_of, net.weights)))
    return xr.Dataset(streams, coords)


# By the dim along which it is: a place in the stream, or the role of the weights that change it.
WATCHED = {"feature_norm": "place", "feature_update_norm": "place", "output_update_norm": "", "own_change": "role"}


@dataclass(frozen=True)
class Watched:
    """One of the numbers that are watched: a variable, after a step, at a place of the stream or of one role.

    Attributes:
        dim, at: the dim of the dataset and the place or role on it; both empty for the outputs.
    """

    variable: str
    step: int
    dim: str = ""
    at: str = ""

    @property
    def selection(self) -> dict[str, Any]:
        return {"step": self.step} | ({self.dim: self.at} if self.dim else {})

    @property
    def symbol(self) -> str:
        """In the words of the report."""
        if self.variable == "output_update_norm":
            return "|Delta f|"
        if self.variable == "own_change":
            whose = self.at.replace("_bias", " biases") if self.at.endswith("_bias") else f"{self.at} weights"
            return f"|Delta {'f' if self.at == 'output' else 'h_L'}| by {whose} alone"
        letter = {"input": "h_0", "middle": "h_(L/2)", "last": "h_L"}[self.at]
        return f"|{letter}|" if self.variable == "feature_norm" else f"|Delta {letter}|"

    def slope(self, dataset: xr.Dataset, optimizer: str, table: str, direction: str) -> LadderSlope:
        """Over one ladder."""
        values = ladder_values(dataset, self.variable, direction, optimizer=optimizer, table=table, **self.selection)
        return ladder_slope(dataset[direction].values, values)


def watched(dataset: xr.Dataset) -> list[Watched]:
    """All numbers that are watched, after the first and the last step."""
    steps = dict.fromkeys((1, int(dataset["step"].values[-1])))
    numbers = []
    for step, name in product(steps, WATCHED):
        dim = WATCHED[name]
        numbers += [Watched(name, step, dim, str(at)) for at in dataset[dim].values] if dim else [Watched(name, step)]
    return numbers


def gaussian_norm(outputs: int, inputs: int) -> float:
    """Mean RMS operator norm of a matrix of unit variance, up to o(n^(-2/3)) (Johnstone, Tracy-Widom mean -1.2065)."""
    if min(outputs, inputs) == 1:
        return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))
    edge = (np.sqrt(outputs) + np.sqrt(inputs)) ** 2
    width = np.sqrt(edge) * (1 / np.sqrt(outputs) + 1 / np.sqrt(inputs)) ** (1 / 3)
    return float(np.sqrt(inputs / outputs) * np.sqrt(edge - 1.2065 * width))


def limit_norm(outputs: int, inputs: int) -> float:
    """Theta's argument in eq. 6 with the larger root alone: what the norm is proportional to at infinite width."""
    return float(np.sqrt(inputs / outputs) * np.sqrt(max(outputs, inputs)))
