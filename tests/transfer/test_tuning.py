"""Tuned rates: the search for the best one, and its edges: nets that no rate trains, minima beside a cliff."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.execution import chunks
from meanfield.execution.chunks import PieceStore
from meanfield.simulation.training.trained import TrainedLosses
from meanfield.transfer.tuning import LATTICE, RateSearch, Tuning, _dataset, minima, rate_of, searched, tune_all

EIGHTH = LATTICE // 8


def search(loss, start=0.0, *, spacing=EIGHTH, most=64):
    """Searches of three seeds carried to their ends on a function of (log10 rate, number of the seed)."""
    begun = [RateSearch(round(start * LATTICE), spacing, most) for _ in range(3)]
    searched(begun, lambda asked: [float(loss(rung / LATTICE, seed)) for seed, rung in asked])
    return begun


def minimum(begun):
    rungs = sorted(set().union(*(of_seed.losses for of_seed in begun)))
    table = np.array([[of_seed.losses.get(rung, np.nan) for of_seed in begun] for rung in rungs])
    return minima(np.array(rungs) / LATTICE, table)[0]


PLACES = np.array([-1.27, -0.93, -1.51])


def parabola(at, seed):
    return np.exp(0.7 * (at - PLACES[seed]) ** 2)


def cliff(at, seed):
    """A wide valley that ends, a third of a decade above its minimum, where training diverges."""
    return np.inf if at > PLACES[seed] + 1 / 3 else parabola(at, seed)


@pytest.mark.parametrize("loss", [parabola, cliff])
@pytest.mark.parametrize("start", [-9.0, -1.2, 4.0])
def test_known_minima_are_found_from_anywhere(loss, start):
    begun = search(loss, start)
    np.testing.assert_allclose(minimum(begun), PLACES, atol=1e-9)
    assert all(of_seed.complete for of_seed in begun)
    assert max(len(of_seed.losses) for of_seed in begun) < 35


def test_the_vertex_is_fitted_to_all_rates_within_its_reach():
    """A dip at the edge of a wide valley is the least loss; the parabola's vertex lies beside it."""
    begun = search(lambda at, seed: parabola(at, seed) * (0.9 if abs(at - PLACES[seed] - 0.4) < 0.07 else 1.0))
    for of_seed, vertex in zip(begun, minimum(begun), strict=True):
        rungs = range(EIGHTH * round((vertex * LATTICE - 24) / EIGHTH), round(vertex * LATTICE + 24), EIGHTH)
        assert set(rungs) <= set(of_seed.losses)


def test_gradient_descent_on_a_quadratic():
    """A quadratic above a floor of 2: twelve directions of curvatures 2^-j, three steps, whose minimum is known.

    Its valley is steeper above than below, so the vertex lies lower, by 0.1 to 0.2 decades. The search finds the vertex
    that an exhaustive grid of the same spacing has.
    """

    def loss(at, seed):
        return 2 + sum(2.0**-j * (1 - 10.0**at * 2.0**-j) ** 6 for j in range(12))

    fine = np.linspace(-1, 0.5, 15001)
    expected = fine[np.argmin([loss(at, 0) for at in fine])]
    for spacing in (EIGHTH, EIGHTH // 4):
        begun = search(loss, -2.0, spacing=spacing)
        grid = np.arange(-2 * LATTICE, LATTICE, spacing) / LATTICE
        vertex, _ = minima(grid, np.array([[loss(at, 0)] for at in grid]))
        np.testing.assert_allclose(minimum(begun), vertex.repeat(3), atol=1e-9)
        np.testing.assert_allclose(vertex, expected - 0.16, atol=0.05)
        least = min(begun[0].losses, key=begun[0].losses.get)
        np.testing.assert_allclose(least, expected * LATTICE, atol=spacing / 2)


def test_the_adaptive_search_finds_what_an_exhaustive_grid_does():
    """Noise of 2 % from rate to rate and seed to seed, the same for both, 12 grids of 80 rates over five decades."""
    apart = []
    for world in range(12):
        noise = np.random.default_rng(world).normal(scale=0.02, size=(20 * LATTICE, 3))

        def loss(at, seed, noise=noise):
            return parabola(at, seed) * np.exp(noise[round(at * LATTICE) + 10 * LATTICE, seed])

        rungs = range(-4 * LATTICE, LATTICE + 1, LATTICE // 16)
        table = [[loss(rung / LATTICE, seed) for seed in range(3)] for rung in rungs]
        grid, _ = minima(np.array(rungs) / LATTICE, np.array(table))
        apart.append(minimum(search(loss)) - grid)
    error = np.std(apart) / np.sqrt(np.size(apart))
    assert abs(np.mean(apart)) < 5 * error
    assert np.std(apart) < 0.05


def test_plateaus_and_losses_that_never_rise():
    """A loss that is flat above its minimum; one that falls for ever, whose minimum is nowhere; one always infinite."""
    begun = search(lambda at, seed: min(parabola(at, seed), parabola(PLACES[seed] + 0.4, seed)))
    np.testing.assert_allclose(minimum(begun), PLACES, atol=0.05)
    endless = search(lambda at, seed: 10.0**-at, most=20)
    assert np.isnan(minimum(endless)).all()
    assert not any(of_seed.complete for of_seed in endless)
    never = search(lambda at, seed: np.inf)
    assert np.isnan(minimum(never)).all()


def test_a_seed_without_a_minimum_leaves_the_others_alone():
    begun = search(lambda at, seed: np.nan if seed == 1 else parabola(at, seed))
    np.testing.assert_allclose(minimum(begun)[[0, 2]], PLACES[[0, 2]], atol=1e-9)
    assert np.isnan(minimum(begun)[1])


# Searches by training.
NET = mf.MLP(depth=2, width=(8, 8), outputs=3, head="fan_in")
HOW = {"epochs": 2, "batch_size": 10}


@pytest.fixture(scope="module")
def tuned(data):
    return mf.tuned_rate(NET, data, seeds=range(12), **HOW)


def test_losses_are_those_of_training(tuned, data):
    """To the bit, of every rate alone; rates lie on the lattice, and the least loss of every seed inside."""
    rates = tuned.rate.values
    at_first = tuned.final_loss.sel(seed=5).dropna("rate")
    trained = mf.train(NET, data, rates=float(at_first.rate[3]), seeds=[5], **HOW)
    np.testing.assert_array_equal(at_first[3], trained.final_loss[0, 0])
    rungs = LATTICE * np.log10(rates)
    assert {rate_of(rung) for rung in np.round(rungs).astype(int)} == set(rates)
    places = np.nanargmin(tuned.final_loss.values, axis=0)
    assert places.min() > 0
    assert places.max() < len(rates) - 1
    assert tuned.attrs["complete"] == 1
    assert tuned.attrs["located"] == 12
    np.testing.assert_allclose(tuned.tuned_rate_log10, tuned.seed_tuned_rate_log10.mean())
    assert 0.2 < float(tuned.tuned_rate / tuned.stable_rate) < 20
    # The search begins at the stable rate.
    middle = float(tuned.stable_rate_quantile.sel(quantile=0.5))
    assert middle / 100 < rates[0] < middle < rates[-1]


def test_a_grid_and_other_seeds_agree_within_errors(tuned, data):
    """One seed's losses have two valleys, of which the search finds the other, whose least loss is 4 % larger."""
    grid = mf.tuned_rate(NET, data, seeds=range(12), grid=np.geomspace(0.03, 30, 49), **HOW)
    apart = (grid.seed_tuned_rate_log10 - tuned.seed_tuned_rate_log10).values
    assert abs(apart.mean()) < 4.5 * apart.std(ddof=1) / 12**0.5
    assert np.sort(abs(apart))[-2] < 0.15
    other = int(np.argmax(abs(apart)))
    least_losses = [float(of.final_loss.isel(seed=other).min()) for of in (tuned, grid)]
    assert least_losses[0] < 1.05 * least_losses[1]
    others = mf.tuned_rate(NET, data, seeds=range(12, 24), **HOW)
    error = np.hypot(others.tuned_rate_log10_stderr, tuned.tuned_rate_log10_stderr)
    assert abs(float(others.tuned_rate_log10 - tuned.tuned_rate_log10)) < 4.5 * error
    assert error < 0.15


def test_a_second_search_reads_what_the_first_has_finished(data, tmp_path):
    """One beside another net, from another guess and on finer rates has the same losses at the same rates."""
    store = PieceStore(tmp_path)
    how = {"data": data, "training": HOW, "seeds": 2}
    first = Tuning(net=NET, **how, guess=0.3)
    finer = Tuning(net=NET, **how, guess=1.0, spacing=1 / 16)
    deeper = Tuning(net=mf.MLP(depth=3, width=(8,) * 3, outputs=3), **how)
    (alone,) = tune_all([first], store=store)
    files = len(list(tmp_path.glob("*.npz")))
    (again,) = tune_all([first], store=store)
    assert len(list(tmp_path.glob("*.npz"))) == files
    assert again.identical(alone)
    together, _ = tune_all([finer, deeper], store=store)
    shared = sorted(set(together.rate.values) & set(alone.rate.values))
    assert len(shared) > 8
    pairs = [searched.final_loss.sel(rate=shared).values for searched in (together, alone)]
    both = np.isfinite(pairs[0]) & np.isfinite(pairs[1])
    assert both.sum() > 12
    np.testing.assert_array_equal(pairs[0][both], pairs[1][both])


def test_a_net_that_has_died_has_no_tuned_rate_there(data):
    """Linear outputs of dead units are 0, and the loss is log M: below that of a net at the start, and no minimum."""
    tuning = Tuning(net=NET, data=data, training=HOW)
    assert tuning.searched_losses(np.array([np.log(3), 0.9])).tolist() == [np.inf, 0.9]
    values = np.random.default_rng(0).normal(size=(60, 3))
    squared = Tuning(net=NET, data=(data[0], values), training=HOW | {"loss": "squared"})
    assert squared.searched_losses(np.array([np.mean(values**2) / 2, 0.9])).tolist() == [np.inf, 0.9]


def test_a_minimum_lies_at_rates_where_the_net_lives(data):
    """Losses that stay above log 3, and are log 3 where the net has died, at the largest rates."""
    logs = np.arange(-16, 5) / 8
    losses = np.where(logs > 0, np.log(3), 1.15 * np.exp(0.7 * (logs + 1) ** 2))
    tuning = Tuning(net=NET, data=data, training=HOW, seeds=2, grid=tuple(10.0**logs))
    finals = {(rate, seed): loss for rate, loss in zip(tuning.rates, losses, strict=True) for seed in range(2)}
    made = _dataset(tuning, True, finals, xr.Dataset(), "")
    np.testing.assert_allclose(made["seed_tuned_rate_log10"], -1.0, atol=1e-9)
    np.testing.assert_array_equal(made["final_loss"][-1], np.log(3))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seeds": 1}, "two or more"),
        ({"spacing": 0.1}, "spacing is 0.1"),
        ({"guess": -1.0}, "guess"),
        ({"grid": 2}, "grid is 2"),
        ({"grid": [0.1, -1.0, 2.0]}, "positive"),
        ({"grid": []}, r"grid has 0 rate\(s\)"),
        ({"grid": [0.1, 0.2, 0.2]}, r"grid has 2 rate\(s\)"),
        ({"seeds": [3, 4, 3]}, "seeds has 3 twice"),
        ({"guess": 1e-300}, "between 1e-15 and 1e15"),
        ({"most_rates": 3}, "most_rates is 3"),
        ({"optimizer": "newton"}, "newton"),
        ({"steps": 3}, "give one of them"),
    ],
)
def test_refusals(data, changed, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mf.tuned_rate(NET, data, **(HOW | changed))


def test_a_loss_that_outputs_of_0_do_not_have_is_refused(data):
    net = mf.MLP(depth=2, width=(8, 8), outputs=1, head="fan_in")
    with pytest.raises(ValueError, match="give it outputs=2 or more, one for each class"):
        mf.tuned_rate(net, (data[0], 0 * data[1]), **HOW)


def test_training_that_memory_does_not_hold_is_refused_before_curvatures_are_drawn(data, monkeypatch):
    monkeypatch.setattr(chunks, "compute_chunk", lambda chunk: pytest.fail("work begins"))
    with pytest.raises(MemoryError):
        mf.tuned_rate(NET, data, steps=10**12, batch_size=10)


def test_three_losses_have_no_parabola():
    """The fourth is that of a net that has left the valley. The minimum lies between the neighbours of the least."""
    logs = np.array([-1.0, -0.4, 0.0, 0.3, 1.0])
    losses = np.array([9.0, 1.2, 1.0, 1.5, 9.0])[:, None]
    places, errors = minima(logs, losses)
    assert places.tolist() == [0.0]
    np.testing.assert_allclose(errors, 0.7 / np.sqrt(12))


def test_a_parabola_that_leads_to_an_end_of_the_rates_leaves_the_least_loss():
    """Where losses are a rough plain, its vertex is at the last rate, and beside that lies no other one."""
    logs = np.array([-0.375, -0.25, 0.0, 0.25, 0.5])
    losses = np.array([1.782, 0.937, 1.461, 0.745, 0.834])[:, None]
    places, errors = minima(logs, losses)
    assert places.tolist() == [0.25]
    np.testing.assert_allclose(errors, 0.5 / np.sqrt(12))


def test_rates_are_searched_down_to_ten_to_the_minus_fifteenth():
    downhill = RateSearch(0, EIGHTH, 200)
    while wanted := downhill.wanted():
        downhill.tell({rung: float(rung + 20 * LATTICE) for rung in wanted})
    assert min(downhill.losses) == -15 * LATTICE


def test_the_ladder_is_of_half_decades_and_what_is_refined_lies_within_one():
    """10^-0.5, 1 and 10^0.5 come first; at the end all rates of the finest spacing up to half a decade around."""
    begun = RateSearch(0, EIGHTH, 64)
    assert sorted(begun.wanted()) == [-LATTICE // 2, 0, LATTICE // 2]
    (found, *_) = search(lambda at, _: np.exp((at - 0.02) ** 2))
    finest = {rung for rung in found.losses if rung % (2 * EIGHTH)}
    assert finest
    assert max(map(abs, finest)) <= LATTICE // 2
    assert set(range(-LATTICE // 2, LATTICE // 2 + 1, EIGHTH)) <= set(found.losses)


def test_the_parabola_weighs_losses_by_their_distance():
    """Its vertex is where the slope vanishes of a fit with the weights (1 - (d / 0.625)^2)^2 about itself."""
    rates = np.linspace(-1, 1, 33)
    losses = np.exp(rates**2 + 0.4 * rates**3)
    vertex = minima(rates, losses[:, None])[0]

    def slope(power):
        away = rates - vertex
        near = np.abs(away) <= 0.5
        weights = (1 - (away[near] / 0.625) ** 2) ** power
        columns = np.vander(away[near], 3)
        return np.linalg.solve(columns.T @ (weights[:, None] * columns), columns.T @ (weights * np.log(losses[near])))[
            1
        ]

    assert abs(slope(2)) < 1e-3
    assert min(abs(slope(power)) for power in (0, 1, 4)) > 3e-3


LOGS = np.arange(-16, 5) / 8


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("net", "scale", "message"),
    [
        (NET, 0.0, "inputs are all 0"),
        (mf.MLP(depth=40, width=2, inputs=1, outputs=3), 1.0, "units of the nets have died"),
        (NET, 1e-15, "rates are searched for between 1e-15 and 1e15"),
    ],
)
def test_nets_that_no_rate_of_the_range_trains_are_refused_before_training(
    data, net, scale, message, precision, monkeypatch
):
    monkeypatch.setattr(TrainedLosses, "draw", lambda *given: pytest.fail("training begins"))
    inputs = scale * data[0][:, : net.first_channels]
    with pytest.raises(ValueError, match=message):
        mf.tuned_rate(net, (inputs, data[1]), seeds=2, precision=precision, **HOW)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_inputs_whose_squares_no_float_holds_are_named(data, optimizer):
    """Their curvature is 0, and no rate within the range of floats moves their outputs."""
    why = r"outputs and gradients are .*e-\d+ or less from all 2 seeds, .*: the inputs or the weights are so small that"
    with pytest.raises(ValueError, match=why):
        mf.tuned_rate(NET, (1e-200 * data[0], data[1]), seeds=2, optimizer=optimizer, **HOW)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_outputs_beyond_the_softmax_have_a_tuned_rate(data, precision):
    """Inputs times 1e6 leave no curvature at the start; the rate is that of a grid around 1e-6, not infinite."""
    large = 1e6 * data[0], data[1]
    how = {"steps": 8, "seeds": 3, "precision": precision, "spacing": 1 / 4}
    tuned = mf.tuned_rate(NET, large, **how)
    assert tuned.attrs["located"] == 3
    assert np.isinf(tuned["stable_rate"])
    grid = mf.tuned_rate(NET, large, grid=10.0 ** np.arange(-9, -2, 0.25), **how)
    least = [float(of["final_loss"].min()) for of in (tuned, grid)]
    assert least[0] <= 1.2 * least[1]
    assert 1e-8 < tuned["tuned_rate"] < 1e-4


def test_a_seed_that_has_died_is_not_searched(data):
    """Of several nets that begin dead or alive; the others have their minima."""
    net = mf.MLP(depth=4, width=3, outputs=3, head="fan_in")
    pair = data[0][:, :3], data[1]
    tuning = Tuning(net=net, data=pair, training=HOW, seeds=6, curvature_draws=0)
    dead = [tuning.is_idle(seed) for seed in range(6)]
    assert 0 < sum(dead) < 6
    (tuned,) = tune_all([tuning])
    asked = tuned["final_loss"].notnull().sum("rate").values
    assert asked[dead].max() == 3
    assert asked[np.invert(dead)].min() > 6
    assert np.isnan(tuned["seed_tuned_rate_log10"][dead]).all()


def test_a_search_without_a_minimum_says_so(data):
    with pytest.warns(RuntimeWarning, match="no seed has a minimum among the 8 rates"):
        tuned = mf.tuned_rate(NET, (1e25 * data[0], data[1]), seeds=2, most_rates=8, **HOW)
    assert np.isnan(tuned["tuned_rate"])


def test_the_error_of_a_minimum_beside_a_cliff_is_its_distance():
    """Losses fall ever faster up to cliffs that lie anywhere; the distance has the stated root mean square.

    Far above a valley the same cliffs leave its vertex without an error of the lattice.
    """
    distances, stated = [], []
    for cliff in np.random.default_rng(0).uniform(-0.5, 0.5, size=200):
        begun, valley = (RateSearch(-64, EIGHTH, 64) for _ in range(2))
        losses = (lambda at: np.exp(-(10.0**at))), (lambda at: np.exp(0.7 * (at + 1.27) ** 2))
        searched(
            [begun, valley],
            lambda asked, cliff=cliff, losses=losses: [
                np.inf if rung > cliff * LATTICE else losses[search](rung / LATTICE) for search, rung in asked
            ],
        )
        (place, error), (vertex, none) = (
            (column[0] for column in minima(np.array(rungs) / LATTICE, np.array([[of.losses[at]] for at in rungs])))
            for of in (begun, valley)
            if (rungs := sorted(of.losses))
        )
        np.testing.assert_allclose([vertex, none], [-1.27, 0.0], atol=1e-9)
        distances.append(place - cliff)
        stated.append(error)
    np.testing.assert_allclose(np.mean(np.square(stated)), np.mean(np.square(distances)), rtol=0.25)
    assert min(stated) > 0


def made_of(losses):
    """The dataset of a search whose seeds have these losses, (rates, seeds)."""
    labels = np.arange(6) % 3
    data = np.ones((6, 8)), labels
    seeds = losses.shape[1]
    tuning = Tuning(net=NET, data=data, training={"steps": 1}, seeds=seeds, grid=tuple(10.0**LOGS))
    finals = {
        (rate, seed): float(losses[place, seed]) for place, rate in enumerate(tuning.rates) for seed in range(seeds)
    }
    return _dataset(tuning, True, finals, xr.Dataset(), "")


def test_seeds_with_equal_minima_have_the_error_of_the_lattice():
    """Beside one cliff all six seeds have the same least rate, whose error does not fall with their number.

    Seeds with vertices of their own have the error over seeds alone, as ever.
    """
    cliff = np.where(LOGS > -0.2, np.inf, 0.5 - 0.1 * LOGS)
    made = made_of(np.repeat(cliff[:, None], 6, axis=1))
    np.testing.assert_allclose(made["seed_tuned_rate_log10"], -0.25)
    np.testing.assert_allclose(made["seed_tuned_rate_log10_stderr"], 0.25 / np.sqrt(12))
    np.testing.assert_allclose(made["tuned_rate_log10_stderr"], 0.25 / np.sqrt(12))
    places = np.array([-1.1, -1.0, -0.8, -0.7, -0.9, -1.2])
    valleys = made_of(0.5 * np.exp(0.7 * (LOGS[:, None] - places) ** 2))
    assert valleys["seed_tuned_rate_log10_stderr"].values.tolist() == [0.0] * 6
    np.testing.assert_allclose(valleys["tuned_rate_log10_stderr"], places.std(ddof=1) / np.sqrt(6))
