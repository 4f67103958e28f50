"""What judges of plain nets, their activations, padding and stencils grant beside standard errors."""

from functools import partial

import numpy as np

from sims import activation_drift
from sims import cnn_finite_channels as finite_channels
from sims.cnn_overlap import claims
from sims.cnn_overlap import claims as growth
from sims.cnn_padding import claims as padding
from tests.sims.claim_controls import SCALE
from tests.verification.grants.made import ERROR, exactly, fitted_slope, power_law


def scales_of_few_channels(dataset, share):
    """Terms may be off by a fifth in the deepest net, scales by the root of it."""
    left = 0.2 * (dataset["depth"] == dataset["depth"][-1]) + 0 * dataset["extrapolation_left"]
    slack = np.log(1.2) / 2 / np.log(dataset["depth"][-1] / dataset["depth"][0])
    law = dataset[f"{SCALE}_mean_field"] * power_law(dataset["depth"], share * float(slack))
    made = dataset.assign(extrapolation_left=left, thin_input_allowance=0 * left)
    return exactly(made, f"{SCALE}_limit", law.values)


def scales_of_lines(dataset, share):
    """Each scale by half of what its term is granted, in opposite directions, on lines of which little is boundary."""
    steps = np.log(dataset["depth"][-1] / dataset["depth"][0])
    for grid in (name for name in map(str, dataset["grid"].values) if name.isdigit()):
        granted = np.log1p(dataset["finite_width_allowance"].sel(grid=grid).max())
        law = power_law(dataset["depth"], float(0.5 * share * granted / steps))
        for padded, ratio in (("circular", 1.0), ("zero", law)):
            dataset = exactly(dataset, SCALE, ratio + 0 * law, grid=grid, padding=padded)
    return dataset


def prefactors(dataset, share):
    """Half the Gram terms of a stencil and of the first one, (sites + 1) / taps over channels."""
    gram = ((dataset["sites"] + 1) / dataset["taps"]).values
    off = share * 0.5 * (gram + gram[0]) / dataset.attrs["slope_channels"] * (np.arange(len(gram)) > 0)
    law = dataset[f"{SCALE}_mean_field"].transpose("stencil", "depth") * np.exp(off)[:, None]
    return exactly(dataset.transpose("stencil", "depth", ...), SCALE, law.values)


def corrections_of_one_site(dataset, share):
    """3 / C for a layer, and (sites + 1) / (C taps) for the Gram matrix."""
    name = "finite_channel_correction"
    one_site, terms = dataset[f"{name}_one_site"], 3 + (dataset.attrs["sites"] + 1) / dataset.attrs["taps"]
    off = share * terms * float((1 / dataset["channels"]).mean()) * (1 + one_site.mean("channels"))
    values = (one_site + off).transpose(*dataset[name].dims)
    errors = {f"{name}_stderr": ERROR * values, "label_term_stderr": ERROR * dataset["label_term"]}
    return dataset.assign({name: values, f"{name}_largest_share": 0 * values, **errors})


def printed_gains(dataset, share):
    gain = (0.912 + 5e-4 * share) / 2
    return exactly(dataset, "gate_energy", gain, case="gelu, he")


def corrections_of_padding(dataset, share):
    lost = 0.01 * dataset["far_layer"] ** (0.15 * share)
    return dataset.assign(far_ratio=1 - lost)


def terms_of_padding(dataset, share):
    """A tenth of the mean field, where finite width is said to make so much."""
    dataset = dataset.assign(finite_width_allowance=0.1 + 0 * dataset["finite_width_allowance"])
    law = dataset["label_term_mean_field"].sel(padding="zero") * (1 + 0.1 * share)
    values = law.transpose(*dataset["label_term"].sel(padding="zero").dims).values
    return exactly(dataset, "label_term", values, padding="zero")


def decays_of_padding(dataset, share):
    """The rise per layer, over the deeper half, of what finite width is granted: ln(1 + 0.3 l / L)."""
    grid, layers = padding._line(dataset, 0), dataset["layer"]
    granted = 0.3 * layers / layers.size
    half = granted[layers >= layers.size // 2]
    rise = np.log1p(half).diff("layer").sum() / (half.size - 1)
    law = np.exp((np.log(dataset["transport_eigenvalue"].sel(grid=grid)) + share * rise) * layers).values
    allowance = (granted + 0 * dataset["finite_width_allowance"]).transpose(*dataset["finite_width_allowance"].dims)
    dataset = dataset.assign(finite_width_allowance=allowance)
    for padded, values in (("zero", law), ("circular", 0 * law + 1)):
        dataset = _by_layer(dataset, "label_term", values, grid=grid, padding=padded)
    return dataset


def _by_width(dataset, law, case, left=0.0):
    """A case's scales, of which wider nets have a share 1/n: ``left`` is that of the second width."""
    wider = (dataset["width"].values / dataset["width"].values[1])[:, None]
    return exactly(dataset, SCALE, law / np.sqrt(wider) * np.exp(-left / wider), case=case)


def slightly_steeper(dataset, share):
    """Slopes by the printed difference of -0.04, and by twice that to either side."""
    for case, slope in (("relu", -1.4), ("gelu, fan_in", -1.44 - 0.08 * share)):
        dataset = _by_width(dataset, power_law(dataset["depth"], slope), case)
    return dataset


def scales_of_activations(dataset, share):
    """f a^2, where the wider of two nets, f times as wide as the other, is off by a: by a tenth here."""
    granted = float(dataset["width"][1] / dataset["width"][0]) * 0.1**2
    for case in map(str, dataset["case"].values):
        law = dataset[f"{SCALE}_mean_field"].sel(case=case, layers=dataset["depth"].values).values
        dataset = _by_width(dataset, law * np.exp(share * granted), case, left=0.1)
    return dataset


def attenuated_slopes(dataset, share):
    """What f a^2 makes of both slopes, where the wider net is off by a: by nothing to a tenth, along the depths."""
    left = np.linspace(0, 0.1, dataset.sizes["depth"])
    granted = fitted_slope(dataset["depth"], float(dataset["width"][1] / dataset["width"][0]) * left**2)
    for case, slope in (("relu", -1.4), ("gelu, he", -1.4 + 2 * share * granted)):
        dataset = _by_width(dataset, power_law(dataset["depth"], slope), case, left=left)
    return dataset


def constant_gains(dataset, share):
    """The square of the correction of order 1/n, which is a twentieth here."""
    name, case = "gate_energy", "gelu, he"
    dataset = dataset.assign({f"{name}_correction": 0.05 + 0 * dataset[f"{name}_correction"]})
    law = dataset[f"{name}_mean_field"].sel(case=case, layers=dataset["layer"].values[-1])
    return exactly(dataset, name, 0.912 / 2 + share * 0.05**2 * law, case=case)


def stationary_energies(dataset, share):
    """A tenth, where finite width makes nothing."""
    name = "pre_activation_energy"
    dataset = dataset.assign({f"{name}_correction": 0 * dataset[f"{name}_correction"]})
    return exactly(dataset, name, 1 - 0.1 * share, case="gelu, fan_in")


def energies_of_gates(dataset, share):
    """The square of the correction of order 1/n: a hundredth where that is a tenth."""
    for name in ("pre_activation_energy", "gate_energy"):
        law = dataset[f"{name}_mean_field"].sel(layers=dataset["layer"].values).rename(layers="layer")
        dataset = dataset.assign({f"{name}_correction": 0.1 + 0 * dataset[f"{name}_correction"]})
        dataset = exactly(dataset, name, (law * (1.1 + 0.01 * share)).transpose(*dataset[name].dims).values)
    return dataset


def output_terms_by_layer(dataset, share):
    """As much as finite channels add to the exponent: 0.1 here."""
    layer = dataset["layer"].astype(float)
    finite = dataset["output_term_mean_field"] * layer**0.1
    dataset = dataset.assign(output_term_finite_channels=finite.transpose(*dataset["output_term_mean_field"].dims))
    return _by_layer(
        dataset, "adjusted_output_term", layer.values ** (2.1 + 0.1 * share), depth=dataset["depth"].values[-1]
    )


def growths_by_layer(dataset, share):
    """What extrapolation leaves more of at the end of the deeper half, a fifth, than where it begins, a tenth."""
    layers = dataset["layer"].values
    left = 0.1 + 0.1 * np.log2(dataset["layer"] / (layers[-1] // 2)) + 0 * dataset["extrapolation_left"]
    made = dataset.assign(extrapolation_left=left, thin_input_allowance=0 * dataset["thin_input_allowance"])
    law = dataset["label_term_mean_field"].isel(depth=-1).values * layers ** (share * np.log2(1.2 / 1.1))
    return _by_layer(made, "label_term_limit", law, depth=dataset["depth"].values[-1])


def _by_layer(dataset, name, values, **where):
    """With these values by layer, and errors of a millionth that are independent."""
    covariance = dataset[f"{name}_covariance"].copy()
    covariance.loc[where] = np.diag((ERROR * values) ** 2)
    return exactly(dataset, name, values, **where).assign({f"{name}_covariance": covariance})


def transfer_rules(dataset, share):
    """As much as finite channels add to the slope."""
    added = claims.steepening(dataset, "learning_rate_scale")
    law = power_law(dataset["depth"], -1.5 + added - share * abs(added))
    return exactly(dataset, "adjusted_learning_rate_scale", law)


def slopes_of_stencils(dataset, share):
    """What finite width does to the slope of one site."""
    dataset = dataset.transpose("stencil", "depth", ...)
    granted = abs(fitted_slope(dataset["depth"], dataset["log_one_site_shift"].values))
    law = dataset[f"{SCALE}_mean_field"].transpose("stencil", "depth").values
    return exactly(dataset, SCALE, law * power_law(dataset["depth"], share * granted))


def one_exponent(dataset, share):
    """As much as the mean field's slopes differ from their mean."""
    dataset = dataset.transpose("stencil", "depth", ...)
    logs = np.log(dataset[f"{SCALE}_mean_field"].transpose("stencil", "depth").values)
    expected = fitted_slope(dataset["depth"], logs.T)
    granted = np.outer(expected - expected.mean(), np.log(dataset["depth"].values))
    return exactly(dataset, SCALE, power_law(dataset["depth"], -1.4) * np.exp(share * granted))


def rates_of_gelu(dataset, share):
    """A fifth of the rival's rate, in the last layer."""
    changed = dataset[f"{SCALE}_mean_field"].copy()
    for case in ("gelu, fan_in", "gelu, he", "gelu, energy"):
        rival = activation_drift.rate_of_gain(activation_drift.far_gain(dataset, case))
        last = float(changed.sel(case=case, layers=59)) * np.exp(0.2 * share * rival)
        changed.loc[{"case": case, "layers": 60}] = last
    return dataset.assign({changed.name: changed})


DRAWN = {
    "scales of few channels": ("cnn_overlap", scales_of_few_channels, growth.judge_label_scale),
    "scales of lines": ("cnn_padding", scales_of_lines, padding.judge_exponent),
    "prefactors": ("cnn_finite_channels", prefactors, finite_channels.judge_prefactors),
    "corrections": ("cnn_finite_channels", corrections_of_one_site, finite_channels.judge_one_site_law),
    "printed gains": ("activation_drift", printed_gains, activation_drift.judge_gain),
    "terms of padding": ("cnn_padding", terms_of_padding, padding.judge_mean_field),
    "decays of padding": ("cnn_padding", decays_of_padding, partial(padding.judge_decay, grid="")),
    "scales of activations": ("activation_drift", scales_of_activations, activation_drift.judge_scales),
    "attenuated slopes": ("activation_drift", attenuated_slopes, activation_drift.judge_attenuation),
    "constant gains": ("activation_drift", constant_gains, activation_drift.judge_constant_gain),
    "slightly steeper": (
        "activation_drift",
        slightly_steeper,
        partial(activation_drift.judge_slightly_steeper, rule="fan_in"),
    ),
    "stationary energies": ("activation_drift", stationary_energies, activation_drift.judge_stationary),
    "energies of gates": ("activation_drift", energies_of_gates, activation_drift.judge_energies),
    "output terms by layer": ("cnn_overlap", output_terms_by_layer, growth.judge_output_term),
    "growths by layer": ("cnn_overlap", growths_by_layer, partial(growth.judge_growth, name="label_term")),
    "transfer rules": ("cnn_overlap", transfer_rules, partial(growth.judge_exponent, name="learning_rate_scale")),
    "slopes of stencils": ("cnn_finite_channels", slopes_of_stencils, finite_channels.judge_slopes),
    "one exponent": ("cnn_finite_channels", one_exponent, finite_channels.judge_one_exponent),
}

COMPUTED = {
    "padding": ("cnn_padding", corrections_of_padding, padding.judge_uniform_correction),
    "rates of GELU": ("activation_drift", rates_of_gelu, activation_drift.judge_asymptote),
}
