"""The command on tuned base rates: numbers of the library, a table without its rate, verdicts on made-up rates."""

import numpy as np
import pytest

import meanfield as mf
from figures import hyperparameter_transfer as figure
from meanfield.verification import Verdict
from sims.claims.catalogue import CLAIMS
from sims.hyperparameter_transfer import __main__ as study
from sims.hyperparameter_transfer import claims
from sims.hyperparameter_transfer.__main__ import STUDY as simulation
from sims.hyperparameter_transfer.nets import NetPlace, data_of, learned_loss, net_of, role_factors_of
from tests.sims.claim_controls import ERROR
from tests.sims.commands import finished_run

SMALL = ["--families", "residual", "gpt", "--optimizers", "adamw", "muon-adamw", "--widths", "16", "32"]
SMALL += ["--depths", "1", "2", "--tokens", "4", "--samples", "60", "--steps", "4", "--batch-size", "4"]
SMALL += ["--decays", "0.25", "8", "--tuning-seeds", "2", "--draws", "3", "--spacing", "0.5", "--workers", "1"]
BASE = (16, 1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(simulation, SMALL, tmp_path_factory.mktemp("tables") / "run.nc")


@pytest.fixture(scope="module")
def searches():
    options = simulation.parse(SMALL)
    tunings = simulation.checked(options)["tunings"]
    return dict(zip(study.distinct_places(options), tunings, strict=True))


def test_larger_nets_are_so_many_times_wider_and_deeper_and_the_base_model_stays():
    options = simulation.parse([*SMALL, "--widths", "16", "32", "64", "--larger", "3"])
    assert study.sizes_of(options, "width") == [(16, 1), (96, 1), (192, 1)]
    assert study.sizes_of(options, "depth") == [(16, 1), (16, 6)]
    assert study.base_of(options) == BASE


def test_larger_nets_stand_at_their_own_sizes(tmp_path):
    """In the dataset, by which moves are judged and shown."""
    larger = [word for word in SMALL if word not in ("gpt", "muon-adamw")]
    dataset = finished_run(simulation, [*larger, "--larger", "2"], tmp_path / "run.nc")
    assert (dataset["width"].values.tolist(), dataset["depth"].values.tolist()) == ([16, 64], [1, 4])
    assert claims.moves_of(dataset, "residual", "adamw", "many", "width").sizes.tolist() == [64]


def test_a_table_alone_has_the_numbers_that_it_has_beside_others(finished, tmp_path):
    """And verdicts on it alone; what others say has no number."""
    alone = ["--families", "gpt", "--optimizers", "muon-adamw", "--tables", "one"]
    dataset = finished_run(simulation, [*SMALL, *alone], tmp_path / "run.nc")
    for along in claims.DIRECTIONS:
        for name in ("tuned_rate_log10", "tuned_loss", "carried_loss"):
            one = finished[f"{name}_by_{along}"].sel(family=["gpt"], optimizer=["muon-adamw"], table=["one"])
            np.testing.assert_array_equal(dataset[f"{name}_by_{along}"], one)
    assert [finding.claim.split(" moves")[0] for finding in claims.findings(dataset)] == [
        "Under condition B.1 the tuned base rate of GPTs by muon-adamw"
    ]
    lost = claims.judge_stays(dataset, "gpt", "muon-adamw", "many", "width")
    assert (lost.verdict, lost.evidence) == (Verdict.INCONCLUSIVE, "many was not run")
    assert {place[2:] for place in study._places(dataset)} == {("width", "one"), ("depth", "one")}
    assert [len(axes.containers) for axes in figure.draw(dataset).axes] == [1, 1]


def test_a_table_says_what_the_net_is_and_how_it_trains():
    """Twice as wide and four times as deep as the base model, by tables 4, 6, 10, 12 and by none."""
    sizes = {"width": 32, "depth": 4}
    for table, multiplier, rate in (("many", 1 / 4, 1 / 2), ("one", 1 / 2, 1 / 4), ("standard", 1.0, 1.0)):
        place = NetPlace("residual", "adamw", table, **sizes)
        net, own = net_of(place, BASE, 4), role_factors_of(place, BASE)
        head, variance = (1.0, 1 / 16) if table == "standard" else (1 / 2, 1 / 32)
        assert net.multipliers == pytest.approx((1.0, multiplier, head))
        assert net.variances == pytest.approx((1 / 64, variance, 1 / 16))
        assert own["hidden"]["learning_rate"] == pytest.approx(rate)
        assert own["hidden"]["weight_decay"] == pytest.approx(1.0 if table == "standard" else 2.0)
        assert (own["input"]["learning_rate"], own["output"]["learning_rate"]) == (1.0, 1.0)
    muon = role_factors_of(NetPlace("gpt", "muon-adamw", "one", **sizes), BASE)
    rates = {role: factors["learning_rate"] for role, factors in muon.items()}
    assert rates == pytest.approx({"input": 0.1, "hidden": 1 / 2, "output": 0.1})


def test_gpts_have_the_variances_and_multipliers_of_their_table():
    net = net_of(NetPlace("gpt", "adamw", "many", 32, 4), BASE, 4)
    plain = net_of(NetPlace("gpt", "adamw", "standard", 32, 4), BASE, 4)
    hidden = [name for name in net.weights if net.role_of(name) == "hidden"]
    for name in hidden:
        assert plain.weights[name].variance == pytest.approx(2 * net.weights[name].variance)
    blocks = [(own.multiplier, other.multiplier) for own, other in zip(net.units[1:], plain.units[1:], strict=True)]
    assert blocks == [(1 / 4, 1.0)] * 8
    assert (net.readout_unit.multiplier, plain.readout_unit.multiplier) == (1 / 2, 1.0)


def test_tables_that_give_the_same_numbers_train_the_same_nets(searches, finished):
    """All of the base model, and both conditions over the width."""
    sizes = [
        (place.table, place.width, place.depth)
        for place in searches
        if (place.family, place.optimizer) == ("gpt", "adamw")
    ]
    assert sizes == [
        ("many", 16, 1),
        ("many", 32, 1),
        ("standard", 32, 1),
        ("many", 16, 2),
        ("one", 16, 2),
        ("standard", 16, 2),
    ]
    for name in ("tuned_rate_log10", "tuned_loss", "carried_loss"):
        wide, deep = finished[f"{name}_by_width"], finished[f"{name}_by_depth"]
        np.testing.assert_array_equal(wide.sel(table="one"), wide.sel(table="many"))
        np.testing.assert_array_equal(deep.sel(depth=1, table="standard"), wide.sel(width=16, table="many"))
        assert not np.array_equal(deep.sel(depth=2, table="one"), deep.sel(depth=2, table="many"), equal_nan=True)
    np.testing.assert_array_equal(
        finished["carried_loss_by_depth"][..., 0, :], finished["tuned_loss_by_depth"][..., 0, :]
    )


@pytest.mark.parametrize(
    "place", [NetPlace("residual", "muon-adamw", "one", 16, 2), NetPlace("gpt", "adamw", "many", 32, 1)]
)
def test_numbers_are_those_of_the_library(place, searches, finished):
    """At the decay that suits the base model best, on nets that were not tuned on."""
    of_net, search = finished.sel(family=place.family, optimizer=place.optimizer), searches[place]
    along = "width" if place.depth == 1 else "depth"
    decay = float(of_net["base_decay"])
    means = of_net["decay_loss"].mean("draw", skipna=False).fillna(np.inf)
    assert decay == float(means["decay"][means.argmin("decay")])
    how = {"steps": 4, "batch_size": 4, "optimizer": place.optimizer, "precision": "float32", "epsilon": 1e-16}
    how |= {"weight_decay": decay, "role_factors": role_factors_of(place, BASE)}
    net, seeds = net_of(place, BASE, 4), search.each_seed
    data = data_of(place.family, net, 60, 16, 0)
    tuned = mf.tuned_rate(net, data, seeds=seeds, spacing=0.5, **how)
    at = of_net.sel(table=place.table, **{along: getattr(place, along)})
    np.testing.assert_array_equal(at[f"tuned_rate_log10_by_{along}"], tuned["tuned_rate_log10"])
    rates = [float(tuned["tuned_rate"]), 10.0 ** float(of_net["decay_rate_log10"].sel(decay=decay))]
    others = range(seeds[-1] + 1, seeds[-1] + 4)
    for name, rate in zip(("tuned", "carried"), rates, strict=True):
        trained = mf.train(net, data, rates=[rate], seeds=others, **how)
        np.testing.assert_array_equal(at[f"{name}_loss_by_{along}"], trained["final_loss"].isel(rate=0))


def test_the_answer_says_how_far_the_largest_nets_are_off_and_what_carrying_costs(finished):
    """Of nets that have learned: of each table what lies farthest from 0, of either sign, with its error."""
    sized = {f"{name}_loss_by_{of}" for name in ("tuned", "carried") for of in claims.DIRECTIONS}
    low = 0.01 * finished["chance_loss"]
    made = finished.assign({name: 0 * finished[name].fillna(0.0) + low for name in sized})
    rates = {
        f"tuned_rate_log10_by_{of}": 0 * finished[f"tuned_rate_log10_by_{of}"].fillna(0.0) for of in claims.DIRECTIONS
    }
    made = made.assign(rates | {f"{name}_stderr": 0 * of + 0.1 * np.log10(2) for name, of in rates.items()})
    draws = np.array([0.1, 0.2, 0.3])
    place = {"family": "residual", "optimizer": "adamw", "depth": 2}
    for name, off in {"many": -draws * 0.01, "standard": draws}.items():
        made["carried_loss_by_depth"].loc[place | {"table": name}] += off
    made["tuned_rate_log10_by_depth"].loc[place | {"table": "many"}] -= 2 * np.log10(2)
    error = draws.std(ddof=1) / np.sqrt(3)
    said = study._answer(made, claims.findings(made))
    assert "factors of 2): condition 3.1 -2.0 +- 0.1, condition B.1 +0.0 +- 0.1, the standard +0.0 +- 0.1;" in said
    assert f"condition 3.1 -0.002 +- {error / 100:.3f}, condition B.1 +0.000 +- 0.000, the standard +0.200 +- " in said
    unlearned = {
        f"tuned_loss_by_{of}": 0 * made[f"tuned_loss_by_{of}"] + made["chance_loss"] for of in claims.DIRECTIONS
    }
    without = study._answer(made.assign(unlearned), claims.findings(made))
    assert without.endswith("none of the largest nets has learned beside its base model.")


def test_pairs_of_letters_are_counted():
    """Entropy of the next of two characters: after a, a or b alike; after b, always a."""
    inputs = np.zeros((2, 95, 2))
    inputs[0, [0, 1], [0, 1]] = inputs[1, [0, 0], [0, 1]] = 1.0
    following = np.array([[0, 0], [1, 1]])
    counts = {(0, 0): 1, (1, 0): 1, (0, 1): 2}
    firsts = {0: 3, 1: 1}
    by_hand = -sum(count / 4 * np.log(count / firsts[pair[0]]) for pair, count in counts.items())
    assert learned_loss("gpt", (inputs, following)) == pytest.approx(by_hand)
    assert learned_loss("residual", (inputs, following)) == pytest.approx(np.log(10) / 3)


def test_a_table_without_its_rate_is_seen_to_drift():
    """Negative control: AdamW's table 6 over four times the width, and the same with the hidden rate left as it is."""
    how = {"steps": 16, "batch_size": 8, "optimizer": "adamw", "precision": "float32", "epsilon": 1e-16, "seeds": 3}

    def octaves(width, **rate):
        """log2 of the tuned base rate, seed by seed."""
        place = NetPlace("gpt", "adamw", "many", width, 1)
        net, factors = net_of(place, BASE, 4), role_factors_of(place, BASE)
        factors["hidden"] |= rate
        data = data_of("gpt", net, None, 64, 0)
        made = mf.tuned_rate(net, data, role_factors=factors, spacing=0.25, **how)
        return made["seed_tuned_rate_log10"].values / np.log10(2)

    base, by_table, without = octaves(16), octaves(64), octaves(64, learning_rate=1.0)
    missing = without - by_table
    assert missing.mean() < -1.0
    assert missing.mean() < -10 * missing.std(ddof=1) / np.sqrt(3)
    assert without.mean() - base.mean() < -claims.STAYS < by_table.mean() - base.mean()


@pytest.fixture
def made_up(finished):
    """Base rates that move by so many octaves with every doubling, by table; all nets have learned."""

    def world(per_doubling):
        sizes = {"width": np.array([32, 64, 256]), "depth": np.array([4, 8, 32])}
        changed = {}
        for along, ladder in sizes.items():
            shape = (*(finished.sizes[dim] for dim in ("family", "optimizer", "table")), 3)
            moves = np.array([per_doubling[table] for table in map(str, finished["table"].values)])[:, None]
            dims = ("family", "optimizer", "table", along)
            logs = np.broadcast_to(moves * np.log10(ladder / ladder[0]) - 2, shape)
            changed[f"tuned_rate_log10_by_{along}"] = (dims, logs)
            changed[f"tuned_rate_log10_by_{along}_stderr"] = (dims, np.full(shape, 0.01))
            changed[f"located_by_{along}"] = (dims, np.full(shape, 24))
            changed[f"tuned_loss_by_{along}"] = ((*dims, "draw"), np.full((*shape, 3), 0.1))
        kept = finished[["chance_loss", "learned_loss"]]
        sizes |= {dim: finished[dim].values for dim in ("optimizer", "table")}
        return kept.assign(changed).assign_coords(sizes).assign_attrs(tuning_seeds=24)

    return world


AS_STATED = {"many": 0.05, "one": 1.0, "standard": -1.0}


def test_rates_that_stay_and_rates_that_move_are_told_apart(made_up):
    judged = claims.findings(made_up(AS_STATED))
    assert len(judged) == len(claims.JUDGES) == 16
    assert [finding.verdict for finding in judged] == [Verdict.CONFIRMED] * 16
    exchanged = claims.findings(made_up({"many": 1.0, "one": 0.05, "standard": -0.05}))
    assert [finding.verdict for finding in exchanged] == [Verdict.REFUTED] * 16


@pytest.mark.parametrize(
    ("octaves", "stays", "moves"),
    [
        (0.0, Verdict.CONFIRMED, Verdict.REFUTED),
        (-0.4, Verdict.CONFIRMED, Verdict.INCONCLUSIVE),
        (0.6, Verdict.CONFIRMED, Verdict.INCONCLUSIVE),
        (-1.2, Verdict.REFUTED, Verdict.CONFIRMED),
        (1.5, Verdict.REFUTED, Verdict.CONFIRMED),
    ],
)
def test_the_band_is_half_an_octave_up_or_down(made_up, octaves, stays, moves):
    """From the base model to the largest size, eight times as large, to 0.047 octaves."""
    world = made_up(dict.fromkeys(AS_STATED, octaves / 3))
    at = {"family": "gpt", "optimizer": "adamw", "table": "many", "direction": "depth"}
    assert claims.judge_stays(world, **at).verdict is stays
    assert claims.judge_moves(world, **at).verdict is moves


def test_sizes_that_have_not_learned_say_nothing(made_up):
    world = made_up(AS_STATED)
    at = {"family": "residual", "optimizer": "adamw", "table": "many", "direction": "width"}
    for place, said in ((0, "the base model has not learned"), (2, "nets of width 256 have not learned")):
        losses = world["tuned_loss_by_width"].copy()
        losses[..., place, :] = np.inf
        for judge in (claims.judge_stays, claims.judge_moves):
            finding = judge(world.assign(tuned_loss_by_width=losses), **at)
            assert finding.verdict is Verdict.INCONCLUSIVE
            assert said in finding.evidence
    losses = world["tuned_loss_by_width"].copy()
    losses[..., 1, :] = 1.0
    finding = claims.judge_stays(world.assign(tuned_loss_by_width=losses), **at)
    assert finding.verdict is Verdict.CONFIRMED
    assert "left out 64" in finding.evidence
    missing = claims.judge_stays(world, **at | {"optimizer": "muon_kimi-adamw"})
    assert (missing.verdict, missing.evidence) == (Verdict.INCONCLUSIVE, "muon_kimi-adamw was not run")


def test_a_rate_that_no_seed_has_decides_nothing(made_up):
    world = made_up(AS_STATED)
    lost = world["tuned_rate_log10_by_depth"].copy()
    lost[..., 2] = np.nan
    at = {"family": "residual", "optimizer": "adamw", "table": "many", "direction": "depth"}
    finding = claims.judge_stays(world.assign(tuned_rate_log10_by_depth=lost), **at)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "fewer than two nets of depth 32" in finding.evidence


def test_errors_of_a_move_are_those_of_both_sizes(made_up):
    world = made_up(AS_STATED)
    errors = world["tuned_rate_log10_by_depth_stderr"].copy()
    errors[..., 0], errors[..., 2] = 0.03, 0.04
    moves = claims.moves_of(world.assign(tuned_rate_log10_by_depth_stderr=errors), "residual", "adamw", "one", "depth")
    np.testing.assert_allclose(moves.stderr[1], 0.05 / np.log10(2))
    np.testing.assert_allclose(moves.octaves, [1.0, 3.0])
    welch = (0.03**2 + 0.04**2) ** 2 / ((0.03**4 + 0.04**4) / 23)
    np.testing.assert_allclose(moves.freedom[1], welch)


def test_what_a_carried_rate_lacks_is_of_the_same_nets(made_up):
    """A net that diverges counts as one of equal probabilities."""
    world = made_up(AS_STATED)
    carried = world["tuned_loss_by_width"] + 0.2
    carried[..., 2, 0] = np.inf
    at = world.assign(carried_loss_by_width=carried).sel(family="residual", optimizer="adamw", table="many")
    lacks, errors = claims.lacks_of(at, "width")
    np.testing.assert_allclose(lacks, [0.2, 0.2, (np.log(10) - 0.1 + 0.4) / 3])
    np.testing.assert_allclose(errors[:2], 0, atol=1e-12)


def test_report_and_figure(finished):
    printed = simulation.document(finished).text()
    assert max(map(len, printed.splitlines())) <= 100
    for words in ("Weight decays of the base models", "GPTs by muon-adamw, over the depth", "not learned", "lack"):
        assert words in printed
    panels = figure.draw(finished).axes
    assert len(panels) == 8
    moves = claims.moves_of(finished, "gpt", "adamw", "one", "depth")
    drawn = [np.asarray(line.get_ydata()) for axes in panels for line in axes.lines]
    assert any(line.shape == (2,) and np.array_equal(line, [0.0, *moves.octaves]) for line in drawn)


# Worlds in which claims of this study get another verdict: their negative controls.


def base_rates_move(family, *names):
    """In these runs, of this family, which has learned: under every table by an octave with every doubling."""

    def moved(run):
        dataset = run.isel(family=[0])
        changed = {}
        for along in claims.DIRECTIONS:
            sizes, name = dataset[along] / dataset[along][0], f"tuned_rate_log10_by_{along}"
            changed[name] = (0 * dataset[name] + np.log10(sizes)).transpose(*dataset[name].dims)
            changed[f"{name}_stderr"] = 0 * dataset[f"{name}_stderr"] + ERROR
            changed[f"located_by_{along}"] = 0 * dataset[f"located_by_{along}"] + 64
            changed[f"tuned_loss_by_{along}"] = 0 * dataset[f"tuned_loss_by_{along}"]
        return dataset.assign(changed).assign_coords(family=[family])

    return lambda runs: {name: moved(runs[name]) for name in names}


CONTROLS = {
    name: base_rates_move("residual" if name in ("E5a", "E5b") else "gpt", *CLAIMS[name].runs)
    for name in CLAIMS
    if name.startswith("E5")
}
