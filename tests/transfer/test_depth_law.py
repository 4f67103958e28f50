"""A law of one's own: right laws stand and wrong ones fall, by every quantity; what is asked badly is refused."""

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import derived_seed
from meanfield.nets.maps import Linear, Pointwise, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.transfer.depth_law import LawQuestion
from meanfield.transfer.law_quantities import LAW_QUANTITIES
from meanfield.verification.laws import LAWS_APART, drawn_series, law_findings
from meanfield.verification.verdicts import Verdict

SIZES = [2, 4, 8, 16]


def _mlp(depth):
    return mf.MLP(depth=depth, width=256)


def _exact(name):
    """The exact expectation, as a law that a user may write."""
    return lambda depth: float(mf.predict(_mlp(depth), level="exact")[name])


@pytest.fixture(scope="module")
def exact_law():
    return mf.depth_law(_mlp, SIZES, claim=_exact("learning_rate_scale"), rival=0.0, draws=2000, seed=1)


def test_the_exact_expectation_is_a_law_that_stands(exact_law):
    (claim, _) = law_findings(exact_law)
    assert exact_law.attrs["verdict"] == Verdict.CONFIRMED
    assert claim.power.together < 0.5
    assert exact_law.attrs["theory"] == "exact"
    off = exact_law.attrs["exponent"] - exact_law.attrs["theory_exponent"]
    assert abs(off) < 4 * exact_law.attrs["exponent_stderr"]


def test_what_is_stored_is_what_is_drawn(exact_law):
    """Every size by a seed of its own, so that errors are independent; the fit is the library's."""
    name = "learning_rate_scale"
    drawn = mf.simulate(_mlp(8), draws=2000, seed=derived_seed(1, "depth 8"))
    assert float(exact_law[name].sel(size=8)) == float(drawn[name])
    law = mf.fit_power_law(SIZES, exact_law[name].values, exact_law[f"{name}_stderr"].values)
    stored = [exact_law.attrs[each] for each in ("exponent", "exponent_stderr", "chi_square", "p_value")]
    assert stored == [law.exponent, law.stderr, law.chi_square, law.p_value]
    slopes = mf.local_slopes(SIZES, exact_law[name].values, exact_law[f"{name}_stderr"].values)
    np.testing.assert_array_equal(exact_law["local_slope"].values, [np.nan, *slopes.slope])
    np.testing.assert_array_equal(exact_law["local_slope_stderr"].values, [np.nan, *slopes.stderr])
    assert exact_law.attrs["drift"] == slopes.drift
    assert exact_law["local_slope"].dims == ("size",)


def test_finite_width_is_the_exact_expectation_less_the_mean_field(exact_law):
    drawn, name = drawn_series(exact_law), "learning_rate_scale"
    exact, wide = (
        np.log([float(mf.predict(_mlp(depth), level=level)[name]) for depth in SIZES])
        for level in ("exact", "mean_field")
    )
    expected = drawn.slope_of("size", exact) - drawn.slope_of("size", wide)
    assert exact_law.attrs["finite_width"] == pytest.approx(expected, abs=1e-12)
    assert exact_law.attrs["finite_width_stderr"] == 0.0
    assert "exact less mean field" in exact_law.attrs["finite_width_of"]


# What each quantity is drawn of, and how often.
DRAWN = {
    "learning_rate_scale": (_mlp, 600),
    "label_learning_rate_scale": (_mlp, 600),
    "relative_learning_rate_scale": (lambda size: mf.MLP(depth=2, width=16 * size), 100),
    "last_learning_rate_scale": (lambda size: mf.MLP(depth=2, width=16 * size), 100),
    "output_learning_rate_scale": (lambda width: mf.MLP(depth=1, width=width, outputs=4), 200),
    "stable_rate": (lambda size: mf.MLP(depth=2, width=8 * size, input_width=8, outputs=2), 32),
}


# The rival's exponent less the claimed one: a few draws have wide bands.
FAR = 3.0


@pytest.mark.parametrize("quantity", LAW_QUANTITIES)
def test_wrong_exponents_are_refuted_with_the_stated_power_and_right_ones_are_not(quantity, tmp_path):
    """Right is what other draws, several times as many, have; wrong what is off by twice what the power states."""
    make, draws = DRAWN[quantity]
    options = {"quantity": quantity, "theory": False}
    other = mf.depth_law(make, SIZES, draws=4 * draws, seed=5, **options).attrs["exponent"]
    right = mf.depth_law(make, SIZES, draws=draws, seed=0, claim=other, rival=other + FAR, **options)
    (finding, _) = law_findings(right)
    assert finding.verdict is Verdict.CONFIRMED
    share = finding.power.together
    assert share < 1
    wrong = mf.depth_law(make, SIZES, draws=draws, seed=0, claim=other - 2 * share * FAR, rival=other, **options)
    assert wrong.attrs["verdict"] == Verdict.REFUTED
    assert wrong.attrs["verdict_of_rival"] == Verdict.CONFIRMED
    wrong.to_netcdf(tmp_path / "law.nc")  # as the command keeps it


def test_a_law_that_bends_is_no_power_law():
    """Of shallow nets: the local slope of the label term's eta* goes from -0.9 to -1.4, its limit is -3/2."""
    law = mf.depth_law(_mlp, [1, 2, 4, 8, 16], quantity="label_learning_rate_scale", draws=4000, seed=0)
    assert law.attrs["power_law_verdict"] == Verdict.REFUTED
    assert law.attrs["drift_p_value"] < 1e-6
    assert law.attrs["limit_exponent"] == -1.5
    assert "verdict" not in law.attrs
    straight = mf.depth_law(lambda width: mf.MLP(depth=1, width=width), [64, 128, 256, 512], draws=4000, seed=0)
    assert straight.attrs["power_law_verdict"] != Verdict.REFUTED


def test_a_claim_without_a_rival_is_held_against_a_tenth_off():
    law = mf.depth_law(_mlp, SIZES, claim=0.0, draws=100, seed=0)
    (claim, _) = law_findings(law)
    assert claim.rival == f"its exponent is {LAWS_APART:g} off"
    assert law.attrs["verdict"] == Verdict.REFUTED


def test_sizes_whose_draws_overflow_are_named_and_the_rest_is_judged():
    def make(depth):
        return mf.ResidualMLP(depth=depth, width=16, scaling="none", activation="linear")

    law = mf.depth_law(make, [1, 2, 3, 4, 1500], draws=4, seed=0, quantity="label_learning_rate_scale", claim=0.0)
    assert law.attrs["overflowed"] == "1500"
    assert np.isnan(law["label_learning_rate_scale"].values).tolist() == [False] * 4 + [True]
    alone = mf.depth_law(make, [1, 2, 3, 4], draws=4, seed=0, quantity="label_learning_rate_scale", claim=0.0)
    assert law.attrs["exponent"] == alone.attrs["exponent"]
    assert law.attrs["verdict"] == alone.attrs["verdict"]
    with pytest.raises(OverflowError, match=r"draws at sizes 1400, 1500 leave .* fewer than three sizes are left"):
        mf.depth_law(make, [1, 2, 1400, 1500], draws=2, seed=0)


def test_a_mean_of_one_draw_is_warned_of_and_decides_nothing():
    with pytest.warns(mf.PremiseWarning, match="one draw makes .* of a mean learning_rate_scale"):
        law = mf.depth_law(lambda depth: mf.MLP(depth=depth, width=4), [4, 8, 24], claim=9.0, draws=12, seed=0)
    assert law.attrs["verdict"] == Verdict.INCONCLUSIVE


def test_any_field_may_be_the_size_and_any_list_of_units_a_net():
    wide = mf.depth_law(lambda width: mf.MLP(depth=2, width=width), [16, 32, 64], draws=20, seed=0)
    assert wide.attrs["along"] == "width"
    assert "where the size is the depth" in wide.attrs["limit_missing"]
    both = mf.depth_law(lambda size: mf.MLP(depth=size, width=8 * size), [2, 4, 8], draws=20, seed=0)
    assert both.attrs["along"] == "size"
    as_units = mf.depth_law(lambda depth: Chain.of(_mlp(depth)), SIZES, draws=20, seed=0)
    np.testing.assert_array_equal(
        as_units["learning_rate_scale"], mf.depth_law(_mlp, SIZES, draws=20, seed=0)["learning_rate_scale"]
    )
    loops = mf.depth_law(lambda depth: mf.TiedLoop(depth=depth, width=16), [2, 4, 8], draws=20, seed=0)
    assert loops.attrs["theory"] == ""


def _of_two_fields(size):
    return mf.MLP(depth=size, width=8 * size)


def _thinner(size):
    return mf.ResidualMLP(depth=2, width=64 // size, stem=1 if size == 4 else 0, scaling="none" if size > 4 else 0.5)


def _no_family(depth):
    maps = (Pointwise("relu"), Linear((Weight("tied", (8, 8), 0.25),)))
    return Chain(units=(Unit(maps),) * depth, readout_unit=Unit(maps), input_channels=8)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_mlp, {"family": "MLP", "width": 256, "activation": "relu"}),
        (_of_two_fields, {"family": "MLP", "depth": "2 .. 8", "width": "16 .. 64", "activation": "relu"}),
        (_thinner, {"depth": 2, "width": "32 .. 8", "stem": "goes with the size", "scaling": "goes with the size"}),
        (_no_family, {"family": "Chain", "units": "2 .. 8", "readout_unit": None, "input_channels": 8, "grid": None}),
    ],
)
def test_fields_that_go_with_the_size_are_no_fields_of_the_first_net(make, said):
    law = mf.depth_law(make, [2, 4, 8], draws=2, seed=0, theory=False)
    spec = json.loads(law.attrs["architecture"])
    assert spec | said == spec
    assert ("depth" in spec) == (law.attrs["along"] != "depth" and make is not _no_family)


def test_results_do_not_depend_on_who_draws_and_continue(tmp_path):
    options = {"draws": 40, "seed": 2, "claim": -1.5}
    first = mf.depth_law(_mlp, SIZES, **options)
    for _ in range(2):
        assert mf.depth_law(_mlp, SIZES, resume_in=tmp_path, **options).identical(first)
    assert list(tmp_path.iterdir())


def test_an_own_family_has_its_own_law():
    """A subclass says its multiplier: the limit is read off its layers, as 2 alpha - 1 where no plain layer stands."""

    @dataclass(frozen=True, kw_only=True)
    class Own(mf.ResidualMLP):
        @property
        def multiplier(self):
            return self.depth**-0.75

    def make(depth):
        return Own(depth=depth, width=64, block_depth=2, activation="gelu", scaling="none")

    law = mf.depth_law(make, [4, 8, 16], draws=50, seed=0)
    assert law.attrs["limit_exponent"] == pytest.approx(0.5)
    assert "mean field" in law.attrs["finite_width_of"]
    assert "output term is predicted for plain nets" in law.attrs["theory_missing"]


def _blocks(depth):
    return mf.ResidualMLP(depth=depth, width=64, scaling="multiplier_sqrt", input_width=8, outputs=3, stem=1)


def _stream(depth):
    return mf.ResidualMLP(depth=depth, width=64, scaling="multiplier_sqrt")


@pytest.mark.parametrize(
    ("optimizer", "right", "wrong"), [("adamw", -0.5, 0.0), ("muon", -0.5, 0.0), ("sgd", 0.0, -0.5)]
)
def test_the_exponent_is_that_of_the_optimizer_that_steps(optimizer, right, wrong):
    """Branches times K^-1/2 move by the rate each under signs and polar factors, so that K of them move by K^1/2."""
    options = {"optimizer": optimizer, "quantity": "relative_learning_rate_scale", "draws": 96, "seed": 0}
    true = mf.depth_law(_stream, [4, 8, 16, 32], claim=right, rival=wrong, **options)
    false = mf.depth_law(_stream, [4, 8, 16, 32], claim=wrong, rival=right, **options)
    assert true.attrs["verdict"] != Verdict.REFUTED
    assert false.attrs["verdict"] == Verdict.REFUTED
    assert true.attrs["optimizer"] == optimizer


def test_what_is_stored_under_an_optimizer_is_what_is_drawn():
    law = mf.depth_law(_mlp, SIZES, draws=8, seed=1, optimizer="lion")
    drawn = mf.simulate(_mlp(8), draws=8, seed=derived_seed(1, "depth 8"), optimizer="lion")
    for name in ("learning_rate_scale", "label_learning_rate_scale"):
        for end in ("", "_stderr", "_largest_share"):
            assert float(law[f"{name}{end}"].sel(size=8)) == float(drawn[f"{name}{end}"])
    assert law.attrs["statistic"] == "mean"
    assert law.attrs["limit_exponent"] == -1.5


def test_theory_under_an_optimizer_stands_beside_its_draws():
    """What it says at these sizes, and in the end; relative changes have no known limit."""
    law = mf.depth_law(_stream, [4, 8, 16], draws=64, seed=0, optimizer="muon")
    assert law.attrs["theory"] == "mean_field"
    assert abs(law.attrs["finite_width"]) < 4 * law.attrs["exponent_stderr"]
    assert law.attrs["limit_exponent"] == -0.5
    relative = mf.depth_law(
        _stream, [4, 8, 16], draws=16, seed=0, optimizer="muon", quantity="relative_learning_rate_scale"
    )
    assert relative.attrs["theory"] == "mean_field"
    assert np.isnan(relative.attrs["limit_exponent"])
    assert "relative changes" in relative.attrs["limit_missing"]
    softened = mf.depth_law(_stream, [4, 8, 16], draws=4, seed=0, optimizer="adamw", epsilon=1e-3)
    assert softened.attrs["theory_missing"] == "draws have an epsilon, and theory has none"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((96, 8)), rng.integers(0, 3, 96)


def test_on_data_it_is_the_median_over_draws_of_the_first_step_of_training(data):
    options = {"optimizer": "adamw", "batch_size": 16, "draws": 64}
    law = mf.depth_law(_blocks, [4, 8, 16], data=data, claim=-0.5, rival=0.0, seed=3, **options)
    drawn = mf.step_scales(_blocks(8), data, seed=derived_seed(3, "depth 8"), **options)
    name = "learning_rate_scale"
    assert float(law[name].sel(size=8)) == float(drawn[f"{name}_quantile"].sel(quantile=0.5))
    assert law.attrs["statistic"] == "median"
    assert law.attrs["loss"] == "cross_entropy"
    assert law.attrs["batch_size"] == 16
    assert law.attrs["theory_missing"].startswith("draws are on data")
    assert not [each for each in law if "mean_field" in str(each) or "label" in str(each)]
    assert law.attrs["verdict"] == Verdict.CONFIRMED
    of_size = mf.depth_law(_blocks, [4, 8, 16], data=lambda depth: data, claim=-0.5, rival=0.0, seed=3, **options)
    assert of_size[name].identical(law[name])


def test_sizes_at_which_a_tenth_of_the_nets_die_are_said(data):
    """Their median is finite, and how they scatter is not."""

    def make(depth):
        return mf.MLP(depth=depth, width=8 if depth < 8 else 4, input_width=8, outputs=3)

    dying = mf.step_scales(make(8), data, optimizer="adamw", batch_size=2)["learning_rate_scale_quantile"].values
    assert np.isfinite(dying).tolist() == [True, True, False]
    options = {"data": data, "optimizer": "adamw", "batch_size": 2, "draws": 64, "seed": 0}
    law = mf.depth_law(make, [1, 2, 3, 8], **options)
    assert law["learning_rate_scale"].isnull().values.tolist() == [False, False, False, True]
    assert law.attrs["overflowed"] == "8"
    message = "draws at sizes 8, 9 leave the range of floats or have nets that do not move, and fewer than three"
    with pytest.raises(OverflowError, match=message):
        mf.depth_law(make, [1, 2, 8, 9], **options)


def test_theory_that_takes_long_is_not_begun_unasked():
    def make(depth):
        return mf.Transformer(depth=depth, width=8, tokens=64, causal=True)

    law = mf.depth_law(make, [8, 16, 32], draws=2, seed=0)
    assert "takes about 21 minutes, and more than 15 are not begun unasked" in law.attrs["theory_missing"]
    given = {"quantity": "learning_rate_scale", "claim": None, "rival": None}
    assert not LawQuestion.of(make, [8, 16, 32], theory=True, **given).without_theory
    assert not LawQuestion.of(make, [2, 4, 8], **given).without_theory


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantity": "stable_rate", "optimizer": "adamw"}, "stable_rate is the largest rate of gradient descent"),
        ({"quantity": "stable_rate", "data": ()}, "data is of type tuple; give a pair"),
        ({"quantity": "label_learning_rate_scale"}, "that of random labels, and data have labels of their own"),
        ({"quantity": "stable_rate"}, "stable_rate takes a fixed batch as inputs, and no data"),
        ({"optimizer": "newton"}, "optimizer is 'newton'; choose one of"),
        ({"optimizer": 3}, "optimizer is 3; give a name"),
        ({"optimizer": "adamw", "epsilon": -1.0}, "epsilon is -1"),
        ({"epsilon": 1e-3}, "epsilon is 0.001, and sgd divides no weight of this net by the size of its gradient"),
        ({"optimizer": "lion", "epsilon": 0.1}, "epsilon is 0.1, and lion divides no weight"),
        ({"quantity": "stable_rate", "data": None, "epsilon": 0.1}, "epsilon is 0.1, and sgd divides no weight"),
        ({"batch_size": 97}, "batch_size is 97"),
        ({"data": None, "batch_size": 8}, "batch_size is 8, and no data are given"),
        ({"inputs": np.ones((2, 8))}, "inputs are given, and data, which have inputs of their own"),
        ({"data": lambda depth: depth.up}, "data raises AttributeError at size 2"),
        ({"data": (np.ones((4, 5)), np.zeros(4, int))}, "inputs have shape"),
        ({"data": (np.ones((4, 8)), np.full(4, 3))}, "3"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"theory": "yes"}, "theory is 'yes'"),
    ],
)
def test_bad_steps_are_refused_before_any_draw(options, message, data):
    with pytest.raises((TypeError, ValueError), match=message):
        mf.depth_law(_blocks, SIZES, **{"draws": 2, "seed": 0, "data": data} | options)


def _beyond_floats(depth):
    """Of more digits than Python prints at size 16."""
    return 10 ** (400 * depth)


@pytest.mark.parametrize(
    ("make", "sizes", "options", "message"),
    [
        (lambda depth: {}[depth], SIZES, {}, "make raises KeyError at size 2: 2"),
        (lambda depth: sys.exit(3), SIZES, {}, "make raises SystemExit at size 2: 3"),
        (_mlp, SIZES, {"claim": lambda depth: sys.exit("no law")}, "claim raises SystemExit at size 2: no law"),
        (lambda depth: "net", SIZES, {}, "make returns str at size 2; give a function that returns a net"),
        (
            lambda size: mf.MLP(depth=size, width=4) if size < 9 else mf.ConvNet(depth=2, channels=4),
            SIZES,
            {},
            "different families, MLP at size 2, ConvNet at size 16",
        ),
        (_mlp, [4, 8, 8], {}, r"sizes are \[4, 8\]; give three different ones or more"),
        (_mlp, [0, 4, 8], {}, "an entry of sizes is 0"),
        (_mlp, [4.5, 8, 9], {}, "make raises TypeError at size 4.5: depth is 4.5; it must be a whole number"),
        (_mlp, SIZES, {"claim": np.inf}, "claim is inf; it must be a finite exponent"),
        (_mlp, SIZES, {"claim": lambda depth: -depth}, "claim returns -2 at size 2; a law returns a positive"),
        (_mlp, SIZES, {"claim": lambda depth: 0.0}, "claim returns 0 at size 2; a law returns a positive finite"),
        (_mlp, SIZES, {"claim": lambda depth: np.inf}, "claim returns inf at size 2; a law returns a positive finite"),
        (_mlp, SIZES, {"claim": _beyond_floats}, r"claim returns a number beyond 1.8e\+308 at size 2, which no"),
        (_mlp, SIZES, {"claim": 1.0, "rival": _beyond_floats}, "rival returns .* at size 2, .* positive finite number"),
        (_mlp, SIZES, {"claim": lambda depth: [depth]}, r"claim returns \[2\] at size 2"),
        (_mlp, SIZES, {"claim": lambda depth: depth.up}, "claim raises AttributeError at size 2"),
        (_mlp, SIZES, {"claim": 1.0, "rival": lambda depth: 3.0 * depth}, "say the same at these sizes"),
        (_mlp, SIZES, {"rival": 1.0}, "a rival is given and no claim"),
        (_mlp, SIZES, {"claim": 1e4}, "which no float holds"),
        (_mlp, SIZES, {"quantity": "loss"}, "quantity is 'loss'; choose one of 'learning_rate_scale'"),
        (_mlp, SIZES, {"draws": 1}, "one draw has no standard error"),
    ],
)
def test_bad_questions_are_refused_before_any_draw(make, sizes, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mf.depth_law(make, sizes, **{"draws": 2, "seed": 0} | options)


def test_momentum_moves_the_stable_rate_and_not_its_law():
    make, draws = DRAWN["stable_rate"]
    options = {"quantity": "stable_rate", "draws": draws, "seed": 0}
    plain, fast = (mf.depth_law(make, SIZES, optimizer=name, **options) for name in ("sgd", "sgd_momentum"))
    for level in ("stable_rate", "stable_rate_mean_field"):
        np.testing.assert_allclose(fast[level], 1.9 * plain[level], rtol=1e-9)
    assert fast.attrs["exponent"] == pytest.approx(plain.attrs["exponent"])
