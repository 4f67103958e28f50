"""Zheng et al. 2026: every cell of a table has the powers that norms of weights, gradients and updates ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from meanfield.common.validation import Array
from meanfield.optimizers import optimizer_of_role
from meanfield.parameterizations import BIASES, OPTIMIZER_NAMES, WEIGHTS, hyperparameter_table
from meanfield.verification.claims import Check, Claim, Kind
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.series import OFF, LadderSlope, labelled, ladder_slope, ladder_values
from meanfield.verification.verdicts import Deviation, Finding
from meanfield.verification.zheng_2026.coordinate_checks import DIRECTIONS

# Powers in tables are halves and wholes. A printed one stands while it is the nearest of these to what is measured, so
# that a quarter is left for what finite sizes change.
NEAREST = OFF / 2


def named(optimizer: str, role: str, hyperparameter: str) -> str:
    """A cell of an optimizer's table in words."""
    of = f"{role.removesuffix('_bias')} biases" if role in BIASES else f"{role} weights"
    return f"{optimizer}: {hyperparameter.replace('_', ' ')} of {of}"


def cells(optimizer: str, block_depth: int, biases: bool = False) -> list[tuple[str, str]]:
    """(role, hyperparameter) of all cells of weights, or of biases, whether they scale or not.

    Of hybrids, every role has the cells of the optimizer that steps it. Multipliers of biases are those of their
    weights, and no cells of their own.
    """
    pairs = []
    for role in BIASES if biases else WEIGHTS:
        by = optimizer_of_role(optimizer, role)
        names = hyperparameter_table(by, block_depth).hyperparameters(by)
        pairs += [(role, name) for name in names if not (biases and name == "block_multiplier")]
    return pairs


@dataclass(frozen=True)
class Cell:
    """One cell along one ladder: the power that is printed, and the one that the condition asks of it as measured.

    Attributes:
        printed: of the width or of the depth, read off the values that the nets were given.
        slope: of what the condition asks to be flat, which has the cell as a factor.
    """

    optimizer: str
    role: str
    hyperparameter: str
    direction: str
    printed: float
    slope: LadderSlope

    @property
    def name(self) -> str:
        return named(self.optimizer, self.role, self.hyperparameter)

    @property
    def needed(self) -> float:
        """The power at which that would be flat."""
        return self.printed - self.off

    @property
    def off(self) -> float:
        """Printed less needed: a straight line's slope, of which finite sizes change less than a quarter."""
        return self.slope.plain

    @property
    def stderr(self) -> float:
        return self.slope.plain_stderr

    @property
    def stands(self) -> bool:
        """Whether the printed power is the nearest half or whole one."""
        return abs(self.off) < NEAREST


def measured_cells(dataset: xr.Dataset, *optimizers: str) -> list[Cell]:
    """Of every cell of the tables for these optimizers, along both ladders.

    Raises:
        ValueError: an optimizer that was not run.
    """
    run = run_optimizers(dataset)
    block_depth, biases = int(dataset.attrs["block_depth"]), bool(dataset.attrs["biases"])
    for optimizer in optimizers:
        if optimizer not in run:
            raise ValueError(f"the run has {', '.join(run)} and not {optimizer}; run all optimizers")
    return [
        _measured(Scales(dataset, optimizer, role, direction), name)
        for direction, optimizer in product(DIRECTIONS, optimizers)
        for role, name in cells(optimizer, block_depth, biases)
    ]


def _measured(scales: "Scales", name: str) -> Cell:
    sizes = scales.sizes
    printed = np.polyfit(np.log(sizes), np.log(scales.value(name)), 1)[0]
    slope = ladder_slope(sizes, scales.asked_to_be_flat(name))
    # Adding zero makes no power of minus zero, and what is no more than rounding is none.
    return Cell(scales.optimizer, scales.role, name, scales.direction, round(float(printed), 9) + 0.0, slope)


@dataclass(frozen=True)
class Scales:
    """What was measured of one role along one ladder, (sizes, draws), and the values that it was given, (sizes,)."""

    dataset: xr.Dataset
    optimizer: str
    role: str
    direction: str

    @property
    def sizes(self) -> Array:
        return np.asarray(self.dataset[self.direction].values)

    def value(self, hyperparameter: str, role: str = "") -> Array:
        at = {"optimizer": self.optimizer, "role": role or self.role, "hyperparameter": hyperparameter}
        return np.asarray(labelled(self.dataset, f"value_by_{self.direction}", at).values)

    def norm(self, name: str) -> Array:
        at = {"optimizer": self.optimizer, "role": self.role}
        return ladder_values(self.dataset, f"role_{name}", self.direction, **at)

    def asked_to_be_flat(self, hyperparameter: str) -> Array:
        """What a condition of Zheng et al. 2026 asks to be of order one, with the hyperparameter as a factor.

        |.| are RMS operator norms, of biases root mean squares, W the weights, A the first direction, G the gradient, a
        the multiplier; T = 1, in blocks of k layers T = 1/L. Of initial variances that is |W|^2, of output weights over
        n^2 (eq. 6); of multipliers a |W|, in blocks a |W|^k over T, at k = 1 over T^(1/2) (C1.1, C1.2, B.1); of
        learning rates a rate |A| |W|^(k - 1) over T (C2.1, C2.2, B.3); of weight decays decay |W| / |A| (C.1); of
        epsilons the epsilon over the root mean square of G's elements (C.6), of Shampoo's over |G|_2^2 (C.9).
        """
        value, weights = self.value(hyperparameter)[:, None], self.norm("weight_norm")
        if hyperparameter == "adamw_epsilon":
            return value / self.norm("gradient_element")
        if hyperparameter == "shampoo_epsilon":
            return value / self.norm("gradient_norm") ** 2
        if hyperparameter == "initial_variance":
            return np.asarray(weights / self._rule_for_norms()) ** 2
        if hyperparameter == "weight_decay":
            return np.asarray(value * weights / self.norm("direction_norm"))
        layers = int(self.dataset.attrs["block_depth"]) if self.role == "hidden" else 1
        if hyperparameter == "block_multiplier":
            return np.asarray(value * weights**layers / self._share() ** (0.5 if layers == 1 else 1.0))
        multiplier = self.value("block_multiplier", self.role.removesuffix("_bias"))[:, None]
        return np.asarray(multiplier * value * self.norm("direction_norm") * weights ** (layers - 1) / self._share())

    def _rule_for_norms(self) -> Array:
        """n of output weights, 1 of the others, (sizes, 1)."""
        grows = self.role == "output" and self.direction == "width"
        return (self.sizes if grows else np.ones(len(self.sizes)))[:, None].astype(float)

    def _share(self) -> Array:
        """1/L in blocks, 1 outside, (sizes, 1)."""
        falls = self.role.startswith("hidden") and self.direction == "depth"
        return 1.0 / (self.sizes if falls else np.ones(len(self.sizes)))[:, None]


# The judges of `sims.table_cells`.
JUDGES = Judges()


def run_optimizers(dataset: xr.Dataset) -> list[str]:
    """Those that were run."""
    return list(map(str, dataset["optimizer"].values))


def findings(dataset: xr.Dataset) -> list[Finding]:
    """For every optimizer that was run, one on its decays and one on all else."""
    judges = (judge_cells, judge_decays)
    return [judge(dataset, (name,)) for name in run_optimizers(dataset) for judge in judges]


@JUDGES.decide
def judge_cells(dataset: xr.Dataset, optimizers: Sequence[str]) -> Contest:
    """Every multiplier, variance, learning rate and epsilon of the tables for {names} has the powers of width and depth
    that its condition asks for; rival: one is off by half a power; measured: slopes in width and in depth of what the
    condition asks to be flat, from norms of weights, of gradients and of first directions, each a quarter power at
    most."""
    of_cells = [cell for cell in measured_cells(dataset, *optimizers) if cell.hyperparameter != "weight_decay"]
    return contest_of(dataset, of_cells, ", ".join(optimizers))


@JUDGES.decide
def judge_decays(dataset: xr.Dataset, optimizers: Sequence[str]) -> Contest:
    """Every weight decay of the tables for {names} has the powers of width and depth that keep it as large as its
    optimizer's direction; rival: one is off by half a power; measured: slopes in width and in depth of the norm of
    weights, times their decay, over that of the first direction, each a quarter power at most."""
    of_cells = [cell for cell in measured_cells(dataset, *optimizers) if cell.hyperparameter == "weight_decay"]
    return contest_of(dataset, of_cells, ", ".join(optimizers))


def contest_of(dataset: xr.Dataset, of_cells: Sequence[Cell], names: str = "") -> Contest:
    """Printed powers against needed ones, and against half a power off, by the cell that is nearest to that."""
    off, stderr = (np.array(values) for values in zip(*((c.off, c.stderr) for c in of_cells), strict=True))
    claim = Deviation(off, stderr, NEAREST)
    beyond = Deviation(np.maximum(OFF - np.abs(off), 0.0), stderr, NEAREST)
    weakest = int(np.argmin(beyond.excess))
    rival = Deviation(beyond.difference[weakest], stderr[weakest], NEAREST)
    farthest = of_cells[int(np.argmax(np.abs(off)))]
    words = (
        f"farthest of {len(of_cells)}: {farthest.name}, printed {farthest.printed:+g}, measured {farthest.needed:+.3f} "
        f"+- {farthest.stderr:.3f} in {farthest.direction}"
    )
    rows = ", in their rows of biases," if dataset.attrs["biases"] else ""
    made = Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(of_cells))
    return made.saying(words, names=f"{names} at k = {dataset.attrs['block_depth']}{rows}")


# What the default preset runs.
RUN = "linear blocks, eight samples and four outputs, before the first step, widths 32 .. 256 and 4 .. 32 blocks"
READING = f"what the derivations assume is checked on nets: gradients of ranks above one; {RUN}"
CONVENTION = f"{READING}; that decays scale is a convention which keeps decay at work (appendices C.1, D)"


def of_all(judge: Callable[..., Finding], *arguments: str) -> Check:
    """All optimizers at once."""
    return Check("table_cells", partial(judge, optimizers=OPTIMIZER_NAMES), arguments)


def of_biases(judge: Callable[..., Finding]) -> tuple[Check, ...]:
    """At k = 2 and k = 1; the optimizers of matrices leave biases to AdamW."""
    optimizers = ("sgd", "adamw", "lion", "sophia")
    run = ("--biases", "--optimizers", *optimizers)
    judged = partial(judge, optimizers=optimizers)
    return tuple(Check("table_cells", judged, (*run, *more)) for more in ((), ("--block-depth", "1")))


CLAIMS = (
    Claim(
        id="S5e",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 3-7 and 9-13, appendices C and D",
        statement="every multiplier, variance, learning rate and epsilon of the tables has the powers of width and "
        "depth that its condition asks for, as norms of weights, gradients and first updates of nets are measured, and "
        "none half a power off",
        printed='"Entries in purple indicate differences between muP and SP, while gray shows the corresponding SP '
        'choices" (table 3)',
        hypotheses=f"{READING}; all nine optimizers at k = 2 and k = 1, every cell of weights, scaling or not",
        checks=(of_all(judge_cells), of_all(judge_cells, "--block-depth", "1")),
    ),
    Claim(
        id="S5g",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 3-7 and 9-13, appendix C.1",
        statement="every weight decay of the tables has the powers of width and depth that keep it as large as the "
        "optimizer's direction, as both are measured on nets, and none half a power off",
        printed='"it keeps weight decay active in the update dynamics without letting it dominate the '
        'optimizer-driven term" (appendix C.1)',
        hypotheses=f"{CONVENTION}; all nine optimizers at k = 2 and k = 1, weights alone",
        checks=(of_all(judge_decays), of_all(judge_decays, "--block-depth", "1")),
    ),
    Claim(
        id="S5j",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 5, 6, 11 and 12, appendix C.5.2",
        statement="every variance, learning rate and epsilon of biases has the powers of width and depth that "
        "condition B.3 asks for, as norms of biases, gradients and first updates of nets are measured, and none half a "
        "power off",
        printed='"Requiring |Delta b_l|_R = eta_(b_l) |nabla_(b_l) L|_R = Theta(1) according to update condition in '
        'Equation (13) leads to the learning rate" (appendix C.5.2)',
        hypotheses=f"{READING}; SGD, AdamW, Lion and Sophia at k = 2 and k = 1",
        checks=of_biases(judge_cells),
    ),
    Claim(
        id="S5k",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 5, 6, 11 and 12, appendix C.5.2",
        statement="every weight decay of biases has the powers of width and depth that keep it as large as the "
        "optimizer's direction, as both are measured on nets, and none half a power off",
        printed='"For the weight decays, we need to satisfy lambda_(b_l) |b_l|_R = |nabla_(b_l) L|_R" (appendix C.5.2)',
        hypotheses=f"{CONVENTION}; SGD, AdamW, Lion and Sophia at k = 2 and k = 1",
        checks=of_biases(judge_decays),
    ),
)
