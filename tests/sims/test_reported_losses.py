"""The command on printed losses: the data, what is read off them, report, figure, refusals."""

import numpy as np
import pytest

from figures import reported_losses as figure
from meanfield.verification.verdicts import Verdict
from sims.reported_losses import claims
from sims.reported_losses.__main__ import BASE, base_scatter, displacements, loss_tables, optima, printed_tables
from sims.reported_losses.__main__ import STUDY as simulation


@pytest.fixture(scope="module")
def tables():
    return loss_tables().assign_attrs(shown="15 21")


# Cells of every fifth table, and those that the text quotes, typed from the page.
CELLS = {
    (15, 4096, -9): 3.516,
    (18, 256, -7): 3.678,
    (19, 256, -5): 3.667,
    (20, 8, -9): np.nan,
    (21, 4, -7): 345.85,
    (25, 256, -3): 3.61,
    (30, 256, -2): 3.72,
    (35, 4, -4): 4.471,
    (36, 2048, -14): 4.157,
    (37, 4096, -12): 4.831,
    (40, 256, -9): 6.009,
}


def test_tables_are_those_of_the_paper(tables):
    assert tables["table"].values.tolist() == list(range(15, 41))
    for printed in printed_tables():
        ladder = [128, 256, 512, 1024, 2048, 4096] if printed["direction"] == "width" else [4 * 2**i for i in range(7)]
        assert printed["sizes"] == ladder
        assert len(printed["losses"]) == len(ladder)
        assert {len(row) for row in printed["losses"]} == {len(printed["log2_values"])}
        assert np.all(np.diff(printed["log2_values"]) == 1)
        assert BASE[printed["direction"]] in ladder
    for (table, size, value), loss in CELLS.items():
        at = tables.sel(table=table)
        row, column = at["ladder"].values.tolist().index(size), at["log2_value"].values.tolist().index(value)
        np.testing.assert_equal(float(at["loss"][row, column]), loss)


def test_optima_of_parabolas_are_exact_and_ends_are_marked():
    grid = np.arange(-6.0, 0.0)
    places, inside = optima(grid, np.array([(grid + 2.7) ** 2, grid, -grid, [9, 9, 1, np.inf, 2, 3]]))
    np.testing.assert_allclose(places, [-2.7, -6, -1, -4])
    assert inside.tolist() == [True, False, False, True]


def test_scatter_is_that_of_equal_runs():
    tables = [
        {"setting": "a", "direction": "depth", "sizes": [4, 8], "log2_values": [0, 1, 2], "losses": [row, [1, 1, 1]]}
        for row in ([3.0, 2.0, None], [3.2, 2.1, 9.0])
    ]
    assert base_scatter(tables, "a") == (np.nan, 0)
    for table in tables:
        table["losses"][0][0] -= 0.9
    assert base_scatter(tables, "a") == pytest.approx((np.sqrt((0.02 + 0.005) / 2), 2))


def test_displacements_are_those_of_a_line_and_of_one_size_that_strays():
    doublings = np.arange(5.0)
    np.testing.assert_allclose(displacements(doublings, 0.5 * doublings - 7), [2.0, 2.0, 2.0])
    stray = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(displacements(doublings, stray), [-1.0, 4 * -0.2, 0.0], atol=1e-12)
    both = displacements(doublings, np.stack([stray, 0 * stray]))
    np.testing.assert_allclose(both[:, 0], displacements(doublings, stray))


# Octaves from the parabola at the smallest size to that at the largest, worked out from the printed rows.
ENDS = {15: -3.37, 28: -2.20, 30: -0.61, 31: -1.77, 39: -0.44}


@pytest.mark.parametrize("table", ENDS)
def test_drifts_are_those_of_the_ends_and_hold_the_choice_of_estimator(tables, table):
    """A line weighted by the errors of optima says -3.9, -1.1, +1.5 and -1.3 of the last four."""
    at = tables.sel(table=table)
    within = np.isfinite(at["ladder"].values)
    first, *_, last = at["optimum"].values[within]
    assert float(at["drift"]) == pytest.approx(last - first) == pytest.approx(ENDS[table], abs=0.005)
    moved = displacements(np.log2(at["ladder"].values[within]), at["optimum"].values[within])
    assert float(at["drift_stderr"]) >= np.ptp(moved) / 2
    assert bool(at["drift_is_bound"]) == (table in (28, 30))


def test_errors_of_optima_are_the_spread_of_noisy_parabolas(tables):
    """A parabola of curvature c through points of scatter s: its vertex has the error s / (c sqrt 2)."""
    at = tables.sel(table=15).isel(size=4)
    a, b, c = at["loss"].values[[1, 2, 3]]
    shift = 0.5 * (a - c) / (a - 2 * b + c)
    gradient = np.array([0.5 - shift, 2 * shift, -0.5 - shift]) / (a - 2 * b + c)
    assert float(at["optimum_stderr"]) == pytest.approx(float(at["scatter"]) * np.linalg.norm(gradient), rel=0.15)


def test_what_the_base_models_best_costs_is_read_off_the_row(tables):
    at = tables.sel(table=19).isel(size=-1)
    assert float(at["carried_cost"]) == pytest.approx(4.025 - 3.667)


def test_a_verdict_turns_where_the_tables_are_exchanged(tables):
    kept, lost = (claims.judge_transfer(tables, given).verdict for given in (claims.DEPTH_MANY, claims.WIDTH_STANDARD))
    assert (kept, lost) == ("CONFIRMED", "REFUTED")
    above, below = claims.SHAMPOO_BY_CONDITION
    assert claims.judge_lower_on_average(tables, above, below).verdict == "CONFIRMED"
    assert claims.judge_lower_on_average(tables, below, above).verdict == "REFUTED"


def test_a_rate_that_moves_less_is_told_from_one_that_moves_more(tables):
    """Negative control: moves of six octaves and of none, which way they go does not matter."""
    other, own = claims.SOPHIA_BY_STANDARD
    assert claims.judge_steadier(tables, other, own).verdict == "INCONCLUSIVE"
    for moved, verdict in (({other: -6.0, own: 0.0}, "CONFIRMED"), ({other: 0.0, own: -6.0}, "REFUTED")):
        drifts = [moved.get(int(number), 0.0) for number in tables["table"].values]
        given = tables.assign(drift=("table", drifts))
        finding = claims.judge_steadier(given, other, own)
        assert finding.verdict == verdict
        assert f"table {own} against {other}" in finding.claim


def test_a_difference_of_two_runs_has_the_scatter_of_both_and_is_one_comparison_of_many(tables):
    above, below = claims.LOWER_THAN_STANDARD[1]
    finding, scatter = claims.judge_lower(tables, above, below), float(tables["scatter"].sel(table=below))
    assert f"+- {2**0.5 * scatter:.4f} nats" in finding.evidence
    assert finding.verdict == "INCONCLUSIVE"  # 4.1 s.e. are enough for one comparison and not for 30


def test_the_report_prints_the_numbers_and_the_figure_shows_them(tables):
    lines = [line.split() for line in simulation.document(tables).text().splitlines()]
    row = tables.sel(table=15).isel(size=1)
    best = [f"{float(row['optimum']):.2f}", f"{float(row['optimum_stderr']):.4g}"]
    assert ["256", "4.552", "4.219", "4.081", "4.053", "4.062", "4.091", *best] in lines
    for number in tables["table"].values:
        at = tables.sel(table=number)
        (line,) = (line for line in lines if line[:1] == [str(number)] and str(at["direction"].values) in line)
        cost = at["carried_cost"].values[np.isfinite(at["ladder"].values)][-1]
        assert line[-1] == f"{cost:.3f}"
    panel = figure.draw(tables).axes[0]
    title = str(tables["setting"].values[0])
    assert panel.get_title() == title
    np.testing.assert_allclose(panel.lines[0].get_ydata(), tables["optimum"].sel(table=15).values[:6])


def test_moves_up_and_down_do_not_cancel(tables):
    chosen = claims.WIDTH_MANY
    drift = tables["drift"].copy()
    drift.loc[{"table": list(chosen)}] = [4.0, -4.0, 4.0, -4.0]
    made = claims.judge_transfer(tables.assign(drift=drift), chosen)
    assert made.evidence.startswith("moves by 4.00 ")
    assert made.verdict is Verdict.REFUTED


def test_best_rates_inside_the_grid_stay_within_an_octave_or_are_refuted(tables):
    large = tables["ladder"].sel(table=21) == 256
    for moved, verdict in ((0.9, Verdict.CONFIRMED), (1.1, Verdict.REFUTED)):
        made = tables.assign(bracketed=0 * tables["bracketed"] + 1, optimum=moved * large + 0 * tables["optimum"])
        assert claims.judge_unnormalised_transfer(made).verdict is verdict


def test_moves_that_may_be_larger_confirm_no_rest(tables):
    """Negative control: the same moves, with an optimum at an end of its grid."""
    still = tables.assign(drift=0 * tables["drift"], drift_stderr=0 * tables["drift_stderr"] + 0.1)
    for bound, verdict in ((False, Verdict.CONFIRMED), (True, Verdict.INCONCLUSIVE)):
        made = claims.judge_transfer(still.assign(drift_is_bound=("table", [bound] * 26)), claims.DEPTH_ONE)
        assert made.verdict is verdict
    assert claims.AT_LEAST in made.evidence


def _lost(tables, table, runs):
    """Of the runs of 32 blocks and more of a table, the first so many lost and the others stable."""
    losses = tables["loss"].copy()
    large, inside = tables["ladder"].sel(table=table) >= 32, np.isfinite(tables["log2_value"].sel(table=table).values)
    rows, columns = np.flatnonzero(large.values), np.flatnonzero(inside)
    values = np.full((len(rows), len(columns)), 4.0)
    values.flat[:runs] = np.nan
    place = tables["table"].values.tolist().index(table)
    losses.values[place, rows[:, None], columns] = values
    return tables.assign(loss=losses)


@pytest.mark.parametrize(
    ("many", "standard", "verdict"),
    [
        (0, 2, "INCONCLUSIVE"),
        (0, 9, "INCONCLUSIVE"),
        (0, 10, "CONFIRMED"),
        (10, 0, "REFUTED"),
        (10, 10, "INCONCLUSIVE"),
    ],
)
def test_stability_is_a_difference_beyond_chance(tables, many, standard, verdict):
    """What is printed, 20 of 20 against 18 of 20, is none; ten of 20 lost by one rule alone is one (controls)."""
    given = _lost(_lost(tables, claims.UNNORMALISED_MANY, many), claims.UNNORMALISED_STANDARD, standard)
    finding = claims.judge_stability(given)
    assert finding.verdict == verdict
    if (many, standard) == (0, 2):
        assert finding.evidence == claims.judge_stability(tables).evidence
        assert "probability 0.24" in finding.evidence
        assert (
            finding.power
            == "that as few are lost by the standard is refuted by 10 or more of them, with 0 under condition 3.1"
        )


# Setting -> nats that condition B.1 ends higher at the carried rate, the mean over six depths of the printed rows.
CARRIED = {"Muon-Kimi": 0.115, "Muon": -0.051, "Shampoo, epsilon 1e-5": 0.126, "Sophia": 0.226}


def test_what_is_paid_at_the_carried_rate(tables):
    verdicts = {}
    for one, many in claims.BY_CONDITION:
        name = str(tables["setting"].sel(table=one).values)
        made = claims.carried(tables, one, many)
        assert made.mean == pytest.approx(CARRIED[name], abs=5e-4)
        assert made.mean == made.choices[made.value]
        assert f"{made.mean:+.3f} +- {made.stderr:.3f}" in simulation.document(tables).text()
        verdicts[name] = claims.judge_carried(tables, one, many).verdict
    assert claims.carried(tables, 30, 29).choices == pytest.approx({-5: 0.113, -4: -0.051, -3: -0.490}, abs=5e-4)
    decided = dict.fromkeys(("Muon-Kimi", "Shampoo, epsilon 1e-5"), Verdict.CONFIRMED)
    assert verdicts == dict.fromkeys(("Muon", "Sophia"), Verdict.INCONCLUSIVE) | decided


def test_exchanged_rules_pay_the_opposite(tables):
    """Negative control."""
    one, many = claims.BY_CONDITION[0]
    assert claims.judge_carried(tables, many, one).verdict is Verdict.REFUTED


# Worlds in which claims of this study get another verdict: their negative controls.


def _printed(**changed):
    """Printed tables of which all optima surely move so far, or of which one rule's losses are so much higher."""

    def control(runs):
        dataset = runs["reported_losses"]
        higher = changed.get("higher", 0.0) * (dataset["parameterization"] == "many")
        given = {"least_loss": dataset["least_loss"] + higher, "loss": dataset["loss"] + higher}
        if "drift" in changed:
            given |= _surely(dataset, changed["drift"])
        return {"reported_losses": dataset.assign(given)}

    return control


def _surely(dataset, drift):
    """Moves of optima inside their grids, known to a tenth of an octave."""
    alike = 0 * dataset["drift"]
    return {"drift": alike + drift, "drift_stderr": alike + 0.1, "drift_is_bound": alike > 0}


def rates_move_but_under_condition(runs):
    """Printed tables of which all optima move by four octaves but those under condition 3.1, as the paper says."""
    dataset = runs["reported_losses"]
    moved = 4.0 * (dataset["parameterization"] != "many")
    return {"reported_losses": dataset.assign(_surely(dataset, moved))}


def runs_are_lost(runs):
    """All nets of 64 and more blocks without LayerNorm, under condition 3.1 alone."""
    dataset = runs["reported_losses"]
    lost = (dataset["table"] == 21) & (dataset["ladder"] >= 64)
    return {"reported_losses": dataset.assign(loss=dataset["loss"].where(~lost, 11.0))}


def best_rates_inside(runs):
    """Best rates with a rate on either side, all at one place."""
    dataset = runs["reported_losses"]
    return {"reported_losses": dataset.assign(bracketed=0 * dataset["bracketed"] + 1, optimum=0 * dataset["optimum"])}


CONTROLS = {
    **{claim: _printed(drift=0.0) for claim in ("S10a", "S10d")},
    **{claim: _printed(drift=4.0) for claim in ("S10b", "S10c", "S10e")},
    **{claim: _printed(higher=2.0) for claim in ("S10f", "S10g")},
    **{claim: _printed(higher=-2.0) for claim in ("S10h", "S10i")},
    **dict.fromkeys((f"S10{letter}" for letter in "jklmnoq"), rates_move_but_under_condition),
    "S10p": _printed(drift=4.0),
    "S10r": runs_are_lost,
    "S10s": best_rates_inside,
    "S10t": _printed(higher=2.0),
}
