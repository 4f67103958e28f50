"""Laws over depth, read off the layers of nets whose fields say something else."""

from dataclasses import dataclass

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.layered import Layer
from meanfield.theory import learning_rate_exponent, scales_at
from meanfield.theory.laws import NoPower, branch_powers, power_of, residual_exponent, scaling_with
from meanfield.transfer.carry import is_plain_pre_norm
from meanfield.verification import printed_exponents


@dataclass(frozen=True, kw_only=True)
class Multiplied(mf.ResidualMLP):
    """a = K^(-1), 1 / (1 + K) or 1 / ln K, whatever ``scaling`` says."""

    law: str = "linear"

    @property
    def multiplier(self):
        return {"linear": 1 / self.blocks, "shifted": 1 / (1 + self.blocks), "log": 1 / np.log(1 + self.blocks)}[
            self.law
        ]


@dataclass(frozen=True, kw_only=True)
class OfVariance(mf.ResidualMLP):
    """Branch weights of variance K^(-2) over the fan-in rule, and a = 1."""

    @property
    def branch_variance_factor(self):
        return self.blocks**-2.0


@dataclass(frozen=True, kw_only=True)
class Uneven(mf.ResidualMLP):
    """Every block has another factor than the one below."""

    @property
    def layers(self):
        return tuple(Layer(number, (number + 1) ** -0.5, 1 / self.depth) for number in range(self.depth))


@dataclass(frozen=True, kw_only=True)
class Leaking(mf.MLP):
    """Plain layers of half the fan-in variance, whose field ``weight_variance`` says that they follow the rule."""

    @property
    def layers(self):
        return (Layer(variance_factor=0.5),) * self.depth


@dataclass(frozen=True, kw_only=True)
class Slowed(mf.TiedLoop):
    """Steps of size L^(-2), whatever ``alpha`` says."""

    @property
    def step_size(self):
        return self.depth**-2.0


SQUARE_ROOT = {"scaling": "multiplier_sqrt"}


@pytest.mark.parametrize(
    ("net", "exponent"),
    [
        (Multiplied(depth=4, width=8, **SQUARE_ROOT), 1),
        (Multiplied(depth=4, width=8, scaling="none", stem=1), 0),
        (Multiplied(depth=4, width=8, tail=1), 0.5),
        (OfVariance(depth=4, width=8, scaling="none"), -1),
        (OfVariance(depth=4, width=8, block_depth=2, scaling="none"), 1),
        (mf.ResidualMLP(depth=10**5, width=8, block_depth=2, **SQUARE_ROOT), 0),
        (Slowed(depth=4, width=8), 1),
        (Slowed(depth=4, width=8, tied=False), 1.5),
    ],
    ids=str,
)
def test_exponents_follow_the_layers_and_not_the_names(net, exponent):
    assert learning_rate_exponent(net) == exponent
    if net.depth < 100:
        slopes = np.diff(np.log(scales_at(net, (100, 200, 400)))) / np.log(2)
        assert 2 * slopes[1] - slopes[0] == pytest.approx(exponent, abs=0.01)


def _follows(slopes, exponent):
    """Whether local slopes over doublings of K end at this power: the last is near, and nearer than the first.

    Corrections fall as K^(-1/2) or faster (docs/theory.md section 8), by 0.5 over two doublings.
    """
    first, last = abs(slopes[0] - exponent), abs(slopes[-1] - exponent)
    return last < 0.06 and last < 0.75 * first + 1e-3


@pytest.mark.parametrize("alpha", [0.5, 0.75, 1, 1.5])
@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize(("stem", "tail", "largest"), [(0, 0, np.inf), (1, 0, 0), (0, 1, 0.5)])
def test_any_exponent_of_the_branches_has_its_law(alpha, block_depth, stem, tail, largest):
    """eta* goes as K^(2 alpha - 1), where no stem stops the rise; powers that are off by an eighth are seen."""
    net = mf.ResidualMLP(depth=4, width=64, block_depth=block_depth, scaling=alpha, stem=stem, tail=tail)
    exponent = learning_rate_exponent(net)
    assert exponent == residual_exponent(alpha, block_depth, stem, tail) == min(2 * alpha - 1, largest)
    first = 64 if alpha == 0.75 else 32  # corrections fall slowest at 3/4, as K^(-1/2), and need deeper nets
    slopes = np.diff(np.log(scales_at(net, (first, 2 * first, 4 * first, 8 * first)))) / np.log(2)
    if alpha == 0.75 and stem:  # the stem's share falls as K^(-1/2), and the block depth times that is still seen
        assert np.all(np.diff(slopes) < 0)
        assert slopes[-1] / slopes[0] == pytest.approx(0.5, abs=0.03)
        return
    assert _follows(slopes, exponent)
    assert not any(_follows(slopes, exponent + off) for off in (-0.125, 0.125))


@pytest.mark.parametrize("alpha", [-0.25, 0, 0.25, 0.49])
@pytest.mark.parametrize("stem", [0, 1])
def test_below_one_half_there_is_no_law(alpha, stem):
    """Local slopes grow as K^(1 - 2 alpha) without end; at 1/2 they do not grow."""
    net = mf.ResidualMLP(depth=4, width=64, scaling=alpha, stem=stem)
    assert np.isnan(residual_exponent(alpha, 1, stem))
    assert np.isnan(learning_rate_exponent(net))
    if alpha == 0.25:
        slopes = np.diff(np.log(scales_at(net, (64, 128, 256, 512)))) / np.log(2)
        np.testing.assert_allclose(slopes[1:] / slopes[:-1], 2**0.5, rtol=0.06)
        bounded = scales_at(net.replace(scaling=0.5), (64, 128, 256, 512))
        assert np.ptp(np.log(bounded)) < 0.05


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (Multiplied(depth=4, width=8, law="log", **SQUARE_ROOT), "the factor on its branches is no power of the depth"),
        (Multiplied(depth=4, width=8, law="shifted"), "factor on its branches is no power of the depth: 0.2 at 4"),
        (Uneven(depth=4, width=8, **SQUARE_ROOT), "its blocks differ from one another"),
        (Leaking(depth=4, width=8), "grows or shrinks by a factor"),
        (mf.ResidualMLP(depth=4, width=8, scaling="none"), r"its branches are too large .* about 1 \+ K\^\(0\)"),
        (mf.ResidualMLP(depth=4, width=8, scaling=0.3, stem=1), r"about 1 \+ K\^\(-0.6\), K blocks by more than any"),
        (mf.ResidualMLP(depth=4, width=8, scaling=30), "no net of its family has depth 64: scaling is 30, "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_power_is_refused_and_says_why(net, message):
    assert np.isnan(learning_rate_exponent(net))
    with pytest.raises(ValueError, match=f"no power of its depth: .*{message}"):
        mf.transfer_learning_rate(0.1, net, net.replace(depth=8), rule="power_law")


def test_a_law_must_hold_between_the_nets_that_a_rate_is_carried_between():
    """Powers above 64 blocks, and none at 4: the ends count, too."""

    @dataclass(frozen=True, kw_only=True)
    class Kinked(mf.ResidualMLP):
        @property
        def multiplier(self):
            return max(self.blocks, 32) ** -0.5

    net = Kinked(depth=64, width=8)
    assert learning_rate_exponent(net) == learning_rate_exponent(net.replace(depth=4))
    assert mf.transfer_learning_rate(0.1, net, net.replace(depth=128), rule="power_law") > 0
    with pytest.raises(ValueError, match=r"no power of the depth: .* at 4,"):
        mf.transfer_learning_rate(0.1, net, net.replace(depth=4), rule="power_law")


@pytest.mark.parametrize("scaling", ["init", "multiplier_sqrt", "multiplier_linear", "none"])
@pytest.mark.parametrize("block_depth", [1, 3])
def test_each_scaling_is_recognised_by_its_powers(scaling, block_depth):
    net = mf.ResidualMLP(depth=3, width=8, scaling=scaling, block_depth=block_depth, stem=2, tail=1)
    powers = branch_powers(net)
    assert (powers.stem, powers.tail, len(powers.variances)) == (2, 1, block_depth)
    assert scaling_with(powers) == scaling


def test_papers_are_quoted_for_what_the_layers_are():
    assert printed_exponents(Multiplied(depth=4, width=8, block_depth=2, **SQUARE_ROOT)) == {"Zheng et al. 2026": 1.0}
    assert printed_exponents(OfVariance(depth=4, width=8)) == {}
    assert printed_exponents(mf.ResidualMLP(depth=4, width=8, scaling=0.75)) == {}
    assert printed_exponents(Uneven(depth=4, width=8)) == {}
    assert printed_exponents(Slowed(depth=4, width=8)) == {"Wang et al. 2026": 1.0}


def test_a_rate_is_carried_at_any_exponent_with_its_warnings():
    """By the ratio of the mean fields; a rise is warned of above alpha = 1/2 alone, and not on a stem."""
    for alpha, stem, rises in ((0.75, 0, True), (0.75, 1, False), (0.25, 0, False), (1.5, 0, True)):
        small = mf.ResidualMLP(depth=4, width=1024, scaling=alpha, stem=stem)
        carried = mf.explain_transfer(0.1, small, small.replace(depth=16), rule="finite_depth")
        scales = scales_at(small, (4, 16))
        assert carried.rate == pytest.approx(0.1 * scales[1] / scales[0], rel=1e-12)
        assert any("stops the rise" in warning for warning in carried.warnings) == rises
        assert any("nothing but the blocks learns" in premise for premise in carried.premises) == (not stem)


def test_chains_of_one_factor_at_every_depth_are_not_said_to_rise():
    """As families they have two alphas: no power of the depth joins them, and the factor does not fall with depth."""
    nets = [mf.ResidualMLP(depth=depth, width=512, scaling=-np.log(0.3) / np.log(depth)) for depth in (4, 16)]
    carried = mf.explain_transfer(0.1, *map(mf.Chain.of, nets))
    assert 0 < carried.rate < 0.1
    assert not any("stops the rise" in warning for warning in carried.warnings)
    assert "a power of the depth knows depth alone" in carried.refusals["power_law"]


def test_chains_of_plain_pre_norm_blocks_are_known_by_their_units():
    """A factor of 0.3 at every depth is that of pre-norm blocks that depth leaves alone; one that falls is not."""
    shared = {"width": 64, "tokens": 3, "outputs": 1}
    for constant in (True, False):
        powers = [-np.log(0.3) / np.log(2 * depth) if constant else 0.75 for depth in (2, 4)]
        nets = [
            mf.Transformer(depth=depth, scaling=alpha, **shared) for depth, alpha in zip((2, 4), powers, strict=True)
        ]
        assert is_plain_pre_norm(*nets) == constant


def test_powers_are_fitted_and_others_refused():
    counts = [1, 3, 20, 400]
    for power in (-1.5, 0.0, 1 / 3, 0.123456789012):
        assert power_of(counts, [7 * count**power for count in counts], "x") == pytest.approx(power, rel=1e-12)
    assert power_of(counts, [2 * count ** (1 / 3) for count in counts], "x") == 1 / 3
    for values in ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 1.0, 1.0]):
        with pytest.raises(NoPower, match="the x is no power of the depth: 1 at 1, "):
            power_of(counts, values, "x")
