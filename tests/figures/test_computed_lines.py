"""What figures compute, which no dataset has as it is drawn: computed once more from the dataset, another way."""

import json
from importlib import import_module

import numpy as np
import pytest

from meanfield.verification import measured_slopes
from tests.shown import first_runs


@pytest.fixture(scope="module")
def shown(smoke_runs):
    """The dataset of a simulation, and its panels."""

    def of(name):
        dataset = smoke_runs[first_runs(smoke_runs)[name]]
        return dataset, import_module(f"figures.{name}").draw(dataset).axes

    return of


def lines_of(axes):
    """Label -> numbers of what stands there, errors too."""
    bars = {container[0]: container for container in axes.containers if len(container) == 3}
    return {bars.get(line, line).get_label(): np.asarray(line.get_ydata(), float) for line in axes.lines}


def alike(drawn, expected):
    np.testing.assert_allclose(np.asarray(drawn, float), expected, rtol=1e-9, atol=1e-12)


def test_scales_of_drifting_nets(shown):
    """Lines are the mean field over its first; points tend to the limit of infinite width, without what is as 1/n."""
    dataset, axes = shown("activation_drift")
    name, (narrow, wide) = "label_learning_rate_scale", dataset["width"].values
    first, last = int(dataset["depth"][0]), 30
    rules = dict(zip(("fan_in", "he", "energy"), ("1/q", "2 (He)", "1/E[$\\sigma^2$]"), strict=True))
    for below in axes[len(axes) // 2 :]:
        above = {"GELU": "gelu", "SiLU": "silu"}.get(
            title := axes[list(axes).index(below) - len(axes) // 2].get_title(), title
        )
        cases = {"ReLU, 2 (He)": "relu"} | {label: f"{above}, {rule}" for rule, label in rules.items()}
        points = [container[0].get_ydata() for container in below.containers]
        for (label, case), point in zip(cases.items(), points, strict=True):
            at = dataset.sel(case=case)
            theory = at[f"{name}_mean_field"].values[first - 1 : last]
            alike(lines_of(below)[label], theory / theory[0])
            # ln (sqrt(n) eta*) is a + b / n at both widths; at n of the wide one eta* has a - ln(n) / 2.
            logs = np.log(at[name].transpose("width", "depth").values) + np.log([[narrow], [wide]]) / 2
            limit = (wide * logs[1] - narrow * logs[0]) / (wide - narrow)
            alike(point, np.exp(limit - np.log(wide) / 2) / theory[0])


def test_costs_of_carried_rates(shown):
    """Mean over draws of the loss, chance at most, less that at the rate tuned at the same size; and its error."""
    dataset, axes = shown("learning_rate_transfer")
    loss = np.minimum(dataset["loss"].fillna(np.inf), dataset.attrs["chance_loss"]).where(dataset["loss"].notnull())
    cost = (loss - loss.sel(rule="tuned")).isel(size=slice(1, None))
    draws, families = dataset.sizes["draw"], list(dataset["family"].values)
    means = {
        (str(f), str(r)): cost.sel(family=f, rule=r).values.mean(axis=-1) for f in families for r in cost["rule"].values
    }
    looks = import_module("figures.learning_rate_transfer").LOOKS
    for family, below in zip(families, axes[len(families) :], strict=True):
        for rule in (rule for rule in looks if rule in cost["rule"].values):
            (bars,) = [bars for bars in below.containers if bars.get_label() == looks[rule][2]]
            alike(bars[0].get_ydata(), means[str(family), rule])
            segments = [np.asarray(segment) for segment in bars[2][0].get_segments()]
            lengths = np.array([np.ptp(segment[:, 1]) / 2 if len(segment) else 0.0 for segment in segments])
            spread = cost.sel(family=family, rule=rule).values.std(axis=-1, ddof=1) / np.sqrt(draws)
            alike(lengths, np.nan_to_num(spread))


def test_ratios_of_paddings(shown):
    """Dotted: lambda^l, that ends where the mean field does; of long lines lambda = 1 - (pi / (N + 1))^2 / 3."""
    dataset, axes = shown("cnn_padding")
    _, _, ratios, far = axes
    dotted = [line.get_ydata() for line in ratios.lines if line.get_linestyle() == ":" and len(line.get_ydata())]
    for grid, law in zip(dataset["grid"].values, dotted, strict=True):
        zero, circular = (
            dataset["label_term_mean_field"].sel(grid=grid, padding=padding) for padding in ("zero", "circular")
        )
        alike(law[1:] / law[:-1], float(dataset["transport_eigenvalue"].sel(grid=grid)))
        alike(law[-1], float(zero[-1] / circular[-1]))
    (line,) = [line for line in far.lines if line.get_linestyle() == ":"]
    sites, time = 20_000, np.asarray(line.get_xdata())
    eigenvalue = (1 + 2 * np.cos(np.pi / (sites + 1))) / 3
    np.testing.assert_allclose(line.get_ydata(), eigenvalue ** (2 * time * (sites + 1) ** 2), rtol=1e-6)


def test_scales_of_paddings(shown):
    """eta* of the label term under zero padding over that under circular padding; dashed: one exponent."""
    dataset, (scales, *_) = shown("cnn_padding")
    name = "label_learning_rate_scale"
    over = {end: dataset[f"{name}{end}"].sel(padding="zero") / dataset[f"{name}{end}"].sel(padding="circular")
            for end in ("", "_mean_field")}  # fmt: skip
    shares = (dataset[f"{name}_stderr"] / dataset[name]) ** 2
    errors = over[""] * np.sqrt(shares.sum("padding"))
    lines = [line for line in scales.lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 1]
    for place, (line, bars) in enumerate(zip(lines, scales.containers, strict=True)):
        alike(line.get_ydata(), over["_mean_field"][place].values)
        alike(bars[0].get_ydata(), over[""][place].values)
        alike([np.ptp(np.asarray(bar)[:, 1]) / 2 for bar in bars[2][0].get_segments()], errors[place].values)


def test_terms_over_their_limits(shown):
    dataset, axes = shown("mlp_depth")
    growth, ratio, nets = ({panel.get_title("left")[:1]: panel for panel in axes}[letter] for letter in "abc")
    limit, lines = dataset["label_term_mean_field"].values, lines_of(growth)
    for name, letter in (("label_term", "B"), ("output_term", "A")):
        alike(lines[f"{letter}, exact"], dataset[f"{name}_exact"].values / limit)
        drawn = dataset[name].values
        for axes, unit in ((growth, limit), (ratio, dataset[f"{name}_exact"].values)):
            points = np.concatenate([np.asarray(container[0].get_ydata(), float) for container in axes.containers])
            assert np.isclose(points[:, None], (drawn / unit)[None], rtol=1e-9).any(axis=0).all()
    single, exact = lines_of(nets), dataset["update_energy_exact"].values
    for label, share in (("1 in 10 below", 0.1), ("median net", 0.5), ("1 in 10 above", 0.9)):
        alike(single[label], dataset["update_energy_quantile"].sel(quantile=share).values / exact)
    # A log-normal number of mean 1 whose logarithm spreads by s has its median where the logarithm has its mean.
    alike(np.log(single["median if log-normal"]), -(dataset["update_energy_log_spread"].values ** 2) / 2)


def test_local_slopes_of_scales(shown):
    """They add up to the logarithm of the scale: by the trapezoid rule up to what the depths between would tell."""
    dataset, axes = shown("learning_rate_scale")
    lines, depth = lines_of(axes[3]), np.log(dataset["depth"].values)
    for name in ("mlp", "mlp linear", "cnn 1d", "cnn 2d"):
        scale = np.log(dataset["label_learning_rate_scale"].sel(family=name).values)
        known = np.isfinite(scale)
        rises = np.diff(depth[known]) * (lines[name][1:] + lines[name][:-1])[known[1:]] / 2
        np.testing.assert_allclose(np.cumsum(rises), (scale - scale[0])[1:], rtol=0.01, atol=0.01)


def test_measured_slopes_reach_over_their_depths(shown):
    _, (*_, slopes) = shown("learning_rate_scale")
    for bars, measured in zip(slopes.containers, measured_slopes(), strict=True):
        across, upright = (np.asarray(part.get_segments()[0]) for part in bars[2])
        alike(across, [[measured.depths[0], measured.slope], [measured.depths[-1], measured.slope]])
        alike(upright[:, 1], measured.slope + np.array([-1, 1]) * measured.stderr)


def bars_of(axes):
    """Label, heights, and lower and upper ends of the error bars, of every series that has some."""
    for container in (container for container in axes.containers if len(container[0].get_xdata())):
        ends = [np.asarray(segment)[:, 1] for segment in container[2][-1].get_segments()]
        yield container.get_label(), np.asarray(container[0].get_ydata(), float), np.transpose(ends)


def test_base_rates_in_octaves_of_the_base_model(shown):
    """log2 of the rate over that of the base model, whose error is part of theirs; open where the loss is too high."""
    dataset, axes = shown("hyperparameter_transfer")
    tables = {"condition 3.1 (muP)": "many", "condition B.1 (muP)": "one", "standard (SP)": "standard"}
    columns = [(f, o) for f in dataset["family"].values for o in dataset["optimizer"].values]
    places = [(direction, *column) for direction in ("width", "depth") for column in columns]
    for panel, (direction, family, optimizer) in zip(axes, places, strict=True):
        drawn = list(bars_of(panel))
        assert len(drawn) == (2 if direction == "width" else 3)
        for label, moves, (low, high) in drawn:
            at = dataset.sel(family=family, optimizer=optimizer, table=tables[label])
            name = f"tuned_rate_log10_by_{direction}"
            rates, errors = 10.0 ** at[name].values, at[f"{name}_stderr"].values
            alike(2.0**moves, rates / rates[0])
            spread = np.sqrt(errors**2 + errors[0] ** 2) / np.log10(2)
            alike((high - low)[1:] / 2, spread[1:])
            alike((high + low) / 2, moves)
        marks = [line for line in panel.lines if line.get_marker() == "o" and len(line.get_xdata())]
        opened = sum(len(line.get_xdata()) for line in marks if line.get_markerfacecolor() == "none")
        of_panel = dataset.sel(family=family, optimizer=optimizer, table=[tables[label] for label, *_ in drawn])
        losses = of_panel[f"tuned_loss_by_{direction}"].values.mean(axis=-1)
        assert opened == int((~(losses < float(of_panel["learned_loss"]))).sum())


def test_means_over_lengths_and_batches(shown):
    """Of logarithms, over the nets that have a rate; the error of a scale is one for all numbers of steps."""
    dataset, axes = shown("training_length")
    optimizers = list(dataset["optimizer"].values)
    for place, panel in enumerate(axes):
        row, column = divmod(place, len(optimizers))
        at = dataset.sel(optimizer=optimizers[column]).transpose("family", "schedule", "steps", "batch_size", ...)
        series = [at.isel(family=f, schedule=s) for f in range(at.sizes["family"]) for s in range(at.sizes["schedule"])]
        opened = filled = 0
        for (_, middle, (low, high)), of_series in zip(bars_of(panel), series, strict=True):
            logs, errors = of_series["tuned_rate_log10"].values, of_series["tuned_rate_log10_stderr"].values
            learns, over, shared = of_series["learns"].values, 1, 0.0
            if row:
                scale, of_scale = of_series["outputs_scale"].values, of_series["outputs_scale_stderr"].values
                logs, over, shared = np.log10(scale) - logs, 0, of_scale / scale / np.log(10)
            alike(np.log10(middle), np.nanmean(logs, axis=over))
            counts = np.isfinite(logs).sum(axis=over)
            spread = np.sqrt(np.nansum(errors**2, axis=over) / counts**2 + shared**2)
            alike([np.log10(low), np.log10(high)], np.log10(middle) + np.array([[-1], [1]]) * spread)
            hardly = (np.isfinite(logs) & ~learns).any(axis=over)
            opened, filled = opened + int(hardly.sum()), filled + int((~hardly).sum())
        marks = [line for line in panel.lines if line.get_marker() == "o" and len(line.get_xdata())]
        white = [line.get_markerfacecolor() == "white" for line in marks]
        assert sum(len(line.get_xdata()) for line, is_white in zip(marks, white, strict=True) if is_white) == opened
        assert sum(len(line.get_xdata()) for line in marks) == opened + filled


def halves(bars, along):
    """Half the lengths of error bars along x, 0, or y, 1, of points that have them along this axis alone."""
    return [np.ptp(np.asarray(segment)[:, along]) / 2 for segment in bars[2][0].get_segments()]


def rows_of(axes):
    """The words at the ticks of an upright axis, by their places."""
    return dict(zip(axes.get_yticks().tolist(), (text.get_text() for text in axes.get_yticklabels()), strict=True))


def test_averages_over_labels_and_what_means_violate(shown):
    """B as printed lacks 1/M; exact zeros stand at 1e-16; norms are sorted, under a triangle's bound and the largest
    eigenvalue of what LayerNorm's Jacobian projects on."""
    dataset, (labels, means, norms) = shown("identities")
    expected = dataset["enumerated"] + (dataset.attrs["outputs"] - 1) * dataset["label_term"]
    # Drawn: a kernel by differences; expected: labels enumerated.
    np.testing.assert_allclose(lines_of(labels)["with B as eq. 19 prints it"], expected, rtol=1e-6)
    for line in labels.lines:
        alike(line.get_xdata(), dataset["layer"].values)
    rows = rows_of(means)
    assert [line.get_label() for line in means.lines] == list(dataset["property"].values)
    for line in means.lines:
        names = [rows[place] for place in np.round(line.get_ydata())]
        violated = dataset["violation"].sel(property=line.get_label(), aggregator=names).values
        np.testing.assert_array_equal(line.get_xdata(), np.where(violated == 0, 1e-16, violated))
        alike(np.diff(line.get_ydata()), 1.0)
    ratios, (drawn, *_) = dataset["norm_ratio"].values, norms.lines
    for place, value in zip(*drawn.get_data(), strict=True):
        assert (ratios < value).sum() <= place < (ratios <= value).sum()
    deviation = np.array([3.0, -1.0, -2.0, 0.0])
    centring, along = np.eye(4) - 1 / 4, np.outer(deviation, deviation) / (deviation @ deviation)
    alike(lines_of(norms)["bound of eq. 39"], np.linalg.norm(centring, 2) + np.linalg.norm(along, 2))
    alike(lines_of(norms)["bound by eigenvalues"], np.linalg.norm(centring - along, 2))


def test_cells_that_scale_with_sizes(shown):
    """Printed: as nets at the ends of a ladder were given. Shown: cells with a power, or 1/4 and more off it."""
    dataset, axes = shown("table_cells")
    for panel, direction in zip(axes, ("width", "depth"), strict=True):
        given = dataset[f"value_by_{direction}"].isel({direction: [0, -1]})
        rises = (np.log(given).diff(direction) / np.log(dataset[direction][-1] / dataset[direction][0])).squeeze()
        printed = {}
        for cell in map(str, dataset["cell"].values):
            optimizer, name, role = cell.replace(": ", "|").replace(" of ", "|").removesuffix(" weights").split("|")
            at = {"optimizer": optimizer, "hyperparameter": name.replace(" ", "_"), "role": role}
            needed = float(dataset[f"needed_power_of_{direction}"].sel(cell=cell))
            if abs(power := float(rises.sel(at))) > 1e-9 or abs(power - needed) >= 0.25:
                printed[cell] = power
        of_cells = dataset.sel(cell=list(printed))
        (bars,) = [container for container in panel.containers if len(container) == 3]
        places = -np.arange(len(printed))
        assert rows_of(panel) == dict(zip(places, printed, strict=True))
        (line,) = [line for line in panel.lines if line.get_label() == "printed"]
        for drawn, expected in (line, list(printed.values())), (bars[0], of_cells[f"needed_power_of_{direction}"]):
            alike(drawn.get_xdata(), expected)
            alike(drawn.get_ydata(), places)
        alike(halves(bars, 0), 2 * of_cells[f"needed_power_stderr_of_{direction}"])
        ends = [(box.get_x(), box.get_x() + box.get_width()) for box in panel.patches]
        alike(ends, np.add.outer(list(printed.values()), [-0.25, 0.25]))


def test_slopes_by_stencil(shown):
    """Normal equations of lines through logarithms, each weighted by its error, and what the errors make of them."""
    dataset, (*_, slopes, prefactors) = shown("cnn_finite_channels")
    name, fits = "label_learning_rate_scale", []
    scales = dataset[[name, f"{name}_mean_field", f"{name}_stderr"]].transpose("stencil", "depth").to_array().values
    for drawn, theory, stderr in zip(*scales, strict=True):
        design = np.stack([np.ones(len(drawn)), np.log(dataset["depth"].values)]) * drawn / stderr
        covariance = np.linalg.inv(design @ design.T)
        _, fitted = covariance @ design @ (np.log([drawn, theory]) * drawn / stderr).T
        fits.append([*fitted, np.sqrt(covariance[1, 1])])
    stencils = dict(enumerate(dataset["stencil"].values))
    for panel, (drawn, theory, stderr) in ((slopes, np.transpose(fits)), (prefactors, scales[:, :, 0])):
        (bars,), (line,) = panel.containers, [line for line in panel.lines if line.get_label() == "mean field"]
        alike(bars[0].get_xdata(), drawn)
        alike(halves(bars, 0), stderr)
        alike(line.get_xdata(), theory)
        for of_stencils in (bars[0], line):
            alike(of_stencils.get_ydata(), list(stencils))
    assert rows_of(slopes) == stencils
    (one,) = [line for line in prefactors.lines if line.get_label() == "papers, one prefactor"]
    alike(one.get_xdata(), scales[0, 0, 0])


def test_bounds_of_residual_overlaps(shown):
    """From the first overlap on, with c = 2 and q = 1/2: e^(1/K) a block, and as law 1 + 1/K."""
    dataset, (upper, _) = shown("residual_overlap")
    net = json.loads(dataset.attrs["architecture"])
    assert net.items() >= {"activation": "relu", "scaling": "init", "block_depth": 1, "stem": 1, "tail": 0}.items()
    drawn = [line for line in upper.lines if line.get_marker() in ("None", "") and len(line.get_xdata())]
    bounds, laws = ([line for line in drawn if line.get_linestyle() == kind] for kind in ("--", "-"))
    points = [container for container in upper.containers if len(container[0].get_xdata())]
    for bound, law, point in zip(bounds, laws, points, strict=True):
        assert law.get_color() == point[0].get_color()
        begun = max(int(end.split(",")[0]) for end in point.get_label().split(":"))
        first = float(dataset["overlap"].sel(pair=point.get_label(), layer=begun))
        blocks = np.where(dataset["layer"] < begun, np.nan, dataset["layer"] - begun)
        alike(bound.get_ydata(), first * np.exp(blocks / net["depth"]))
        alike(law.get_ydata(), first * (1 + 1 / net["depth"]) ** blocks)
        for line in (bound, law):
            alike(line.get_xdata(), dataset["layer"].values)


def test_ratios_of_convolutional_scales_and_terms(shown):
    """Over L^(-3/2), with theory that begins at 1; over the mean field, with sums of minima that begin there."""
    dataset, (_, _, flat, ratio) = shown("cnn_overlap")
    papers, depth = dataset.sel(setting="pooled, 10, fan_in"), dataset["depth"].values
    solid = [line for line in flat.lines if line.get_linestyle() == "-" and line.get_marker() in ("None", "")]
    cases = (
        (dataset, "adjusted_learning_rate_scale", "learning_rate_scale_finite_channels"),
        (dataset, "label_learning_rate_scale_limit", "label_learning_rate_scale_mean_field"),
        (papers, "setting_learning_rate_scale", "setting_learning_rate_scale_finite_channels"),
    )
    for (of, drawn, theory), line, bars in zip(cases, solid, flat.containers, strict=True):
        over = of[theory].values[0] * (depth[0] / depth) ** 1.5
        assert line.get_color() == bars[0].get_color()
        alike(line.get_ydata() * over, of[theory].values)
        alike(bars[0].get_ydata() * over, of[drawn].values)
        alike(halves(bars, 1) * over, of[f"{drawn}_stderr"].values)
        for along_depth in (line, bars[0], flat.lines[-1]):
            alike(along_depth.get_xdata(), depth)
    deepest = dataset.isel(depth=-1)
    layer, limit = deepest["layer"].values, deepest["label_term_mean_field"].values
    (law,) = [line for line in ratio.lines if line.get_linestyle() == "--"]
    minima = [np.minimum.outer(layer[:top], layer[:top]).sum() for top in layer]
    alike(law.get_ydata() * limit, limit[0] * np.array(minima))
    (theory,) = [line for line in ratio.lines if "theory" in line.get_label()]
    alike(theory.get_ydata() * limit, deepest["label_term_finite_channels"].values)
    for bars, name in zip(ratio.containers, ("adjusted_label_term", "label_term_limit"), strict=True):
        alike(bars[0].get_ydata() * limit, deepest[name].values)
        alike(halves(bars, 1) * limit, deepest[f"{name}_stderr"].values)
    for line in (law, theory, *(bars[0] for bars in ratio.containers)):
        alike(line.get_xdata(), layer)
    assert [set(line.get_ydata()) for line in (flat.lines[-1], ratio.lines[0])] == [{1.0}, {1.0}]


def test_ratios_of_both_losses(shown):
    """eta* is E^(-1/2), so that logarithms of energies are told apart twice as far; papers' lines: p = 1/C."""
    dataset, (scales, ratios, errors) = shown("cross_entropy")
    cases = {"He head": "he", "muP head": "mup", "1/fan-in head": "fan_in"}
    words = {bars[0].get_color(): bars.get_label().split(", ") for bars in scales.containers}
    assert len(words) == len(ratios.containers) == 5
    for bars in ratios.containers:
        net, head, _ = words[bars[0].get_color()]
        of_losses = dataset.sel(net=net, head=cases[head]).sel(loss=["squared", "cross_entropy"])
        energy, stderr = (of_losses[f"update_energy{end}"].transpose("loss", ...).values for end in ("", "_stderr"))
        alike(bars[0].get_xdata(), dataset["depth"].values)
        alike(2 * np.log(bars[0].get_ydata()), -np.diff(np.log(energy), axis=0)[0])
        alike(np.square(2 * np.array(halves(bars, 1)) / bars[0].get_ydata()), np.sum((stderr / energy) ** 2, axis=0))
    classes = dataset.attrs["classes"]
    uniform, label = np.full(classes, 1 / classes), np.eye(classes)[0]
    alike(lines_of(errors)["papers, 1 - 1/C"], np.sum((uniform - label) ** 2))
    alike(lines_of(ratios)["small outputs: (C - 1)$^{-1/2}$"], np.sqrt(1 / (classes - 1)))
