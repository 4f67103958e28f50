"""What judges grant beside standard errors: numbers a tenth inside are not refuted, a tenth outside they are.

Each case makes the numbers of a run anew, as far from a claim as a ``share`` of what is granted, with errors of a
millionth. The grants stand here in numbers of their own, so that a constant of a judge cannot change unseen.
"""

from functools import partial

import numpy as np
import pytest

from meanfield.verification.wang_2026 import loop_growth, loop_updates, looped_transformers
from meanfield.verification.zhang_2026.batches import batch_sizes, cross_entropies
from meanfield.verification.zhang_2026.plain_nets import (
    activation_drift,
    channel_corrections,
    depth_growth,
    padding,
    stencil_slopes,
)
from meanfield.verification.zhang_2026.residual_nets import overlaps, slopes
from meanfield.verification.zhang_2026.transformers import depth_exponents
from tests.sims.claim_controls.changes import SCALE
from tests.verification.granted import ERROR, assert_computed, assert_drawn, exactly, fitted_slope, power_law


def energies_of_loops(dataset, share):
    energy = dataset["log_energy_mean_field"] + share * 10 / dataset.attrs["width"]
    return dataset.assign(log_energy=energy, log_energy_stderr=ERROR + 0 * energy)


def correlations(dataset, share, deep, looped):
    """Of different steps, in stacks and in loops: 0.05 is none."""
    one, values = np.eye(dataset.sizes["increment"]), dataset["increment_correlation"].copy()
    for model, other in (("deep", deep(share)), ("looped", looped(share))):
        values.loc[{"model": model}] = one + (1 - one) * other
    return dataset.assign(increment_correlation=values, increment_correlation_stderr=ERROR + 0 * values)


def updates_by_width(dataset, share):
    return exactly(dataset, "by_width", power_law(dataset["width"], 0.1 * share), update="aligned")


def energies_of_transformers(dataset, share, model, scaling):
    """A tenth of H, over all loops or over the last three."""
    loops = dataset["loops"].astype(float)
    first = 0 if model == "looped" else -3
    steps = np.log(loops / loops[first]) / np.log(loops[-1] / loops[first])
    law = (1.1 ** (share * steps) + 0 * dataset["update"]).values
    return exactly(dataset, "residual_energy", law, model=model, scaling=scaling)


def explosions(dataset, share):
    grown = 10 ** (1.2 - 0.2 * share) * (dataset["state"] == "after") + (dataset["state"] == "before")
    return exactly(dataset, "energy_by_rate", grown.values, scaling="sqrt")


def damped_stacks(dataset, share):
    loops = dataset["loops"].astype(float)
    law = 0.5 ** ((2 - share) * np.log(loops / loops[0]) / np.log(loops[-1] / loops[0]))
    return exactly(dataset, "correlation_term", (law + 0 * dataset["update"]).values, model="deep", scaling="linear")


def blocks_of_finite_width(dataset, share):
    """ReLU nets are off by 2.5 times what finite width does to the slopes of linear ones, which are exact."""
    logs = {level: dataset[f"log_{SCALE}_{level}"] for level in ("theory", "mean_field")}
    for scaling in ("init", "multiplier_sqrt", "multiplier_linear"):
        for block_depth in dataset["block_depth"].values:
            net = {"scaling": scaling, "block_depth": block_depth}
            finite, limit = (
                fitted_slope(dataset["blocks"], at.sel(activation="linear", **net)) for at in logs.values()
            )
            for activation, power in (("linear", 0.0), ("relu", 2.5 * share * abs(finite - limit))):
                law = np.exp(logs["theory"].sel(activation=activation, **net).values)
                law = law * power_law(dataset["blocks"], power)
                dataset = exactly(dataset, SCALE, law, activation=activation, **net)
    return dataset


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


def deviations_of_gates(dataset, share):
    law = dataset["gate_deviation_law"] * (1 + share * 2 / dataset.attrs["width"])
    return dataset.assign(gate_deviation=law, gate_deviation_stderr=ERROR * abs(law))


def overlaps_of_one_unit(dataset, share):
    granted = (2 + np.log(dataset["growth_bound"])) / dataset.attrs["width"]
    law = dataset["overlap_scale"] * (1 + share * granted)
    return dataset.assign(overlap=law, overlap_stderr=ERROR * abs(law))


def exponents_of_losses(dataset, share):
    squared = dataset["update_energy"].sel(loss="squared", head="mup")
    law = squared * power_law(dataset["depth"], -2 * 0.05 * share)
    for loss, values in (("squared", squared), ("cross_entropy", law)):
        dataset = exactly(dataset, "update_energy", values.values, head="mup", loss=loss)
    return dataset


def errors_of_softmax(dataset, share):
    """Half of the logits' variance that depth over width makes."""
    uniform = 1 - 1 / dataset.attrs["classes"]
    place = {"net": "MLP", "loss": "cross_entropy"}
    gaussian = dataset["output_error_mean_field"].sel(head="he", **place)
    law = uniform + 0.5 * share * dataset["depth"] / dataset.attrs["width"] * (gaussian - uniform)
    return exactly(dataset, "output_error", law.values, head="mup", **place)


def scales_by_batch(dataset, share):
    for case in (batch_sizes.LINEAR, batch_sizes.INDEPENDENT, batch_sizes.CORRELATED):
        dataset = exactly(dataset, "label_term", power_law(dataset["batch"], -2 * (0.5 + 0.05 * share)), case=case)
    return dataset


def outputs_by_batch(dataset, share):
    """Three times what one sample's output term exceeds its leading order by, between the least and largest batch."""
    sizes = (dataset.attrs[name] for name in ("outputs", "depth", "width"))
    outputs, depth, width = sizes
    steps = np.log(dataset["batch"][-1] / dataset["batch"][0])
    power = share * np.log1p(3 * (outputs + 5) * depth / width) / float(steps)
    dataset = exactly(dataset, "label_term", 0 * dataset["batch"] + 1.0, case=batch_sizes.INDEPENDENT)
    return exactly(dataset, "output_term", power_law(dataset["batch"], power), case=batch_sizes.INDEPENDENT)


def printed_gains(dataset, share):
    gain = (0.912 + 5e-4 * share) / 2
    return exactly(dataset, "gate_energy", gain, case="gelu, he")


DRAWN = {
    "energies of loops": ("looped_energy", energies_of_loops, loop_growth.judge_mean_field),
    "correlations in stacks": (
        "looped_energy",
        partial(correlations, deep=lambda share: 0.05 * share, looped=lambda share: 0.9),
        loop_growth.judge_correlations,
    ),
    "correlations in loops": (
        "looped_energy",
        partial(correlations, deep=lambda share: 0.0, looped=lambda share: 0.05 * (2 - share)),
        loop_growth.judge_correlations,
    ),
    "updates by width": ("looped_update", updates_by_width, loop_updates.judge_width),
    "looped energies": (
        "looped_transformer",
        partial(energies_of_transformers, model="looped", scaling="linear"),
        looped_transformers.judge_loops_bounded,
    ),
    "deep energies": (
        "looped_transformer",
        partial(energies_of_transformers, model="deep", scaling="sqrt"),
        looped_transformers.judge_stacks_bounded,
    ),
    "explosions": ("looped_transformer", explosions, looped_transformers.judge_loops_explode),
    "damped stacks": ("looped_transformer", damped_stacks, looped_transformers.judge_stacks_damped),
    "residual slopes": ("residual_depth", blocks_of_finite_width, slopes.judge_theory),
    "scales of few channels": ("cnn_overlap", scales_of_few_channels, depth_growth.judge_label_scale),
    "scales of lines": ("cnn_padding", scales_of_lines, padding.judge_exponent),
    "prefactors": ("cnn_finite_channels", prefactors, stencil_slopes.judge_prefactors),
    "corrections": ("cnn_finite_channels", corrections_of_one_site, channel_corrections.judge_one_site_law),
    "deviations of gates": ("residual_overlap", deviations_of_gates, overlaps.judge_deviation_law),
    "overlaps of one unit": ("residual_overlap", overlaps_of_one_unit, overlaps.judge_one_unit),
    "exponents of losses": ("cross_entropy", exponents_of_losses, cross_entropies.judge_exponent),
    "errors of softmax": (
        "cross_entropy",
        errors_of_softmax,
        partial(cross_entropies.judge_error, head="mup"),
    ),
    "scales by batch": ("batch_size", scales_by_batch, batch_sizes.judge_square_root),
    "outputs by batch": ("batch_size", outputs_by_batch, batch_sizes.judge_output_share),
    "printed gains": ("activation_drift", printed_gains, activation_drift.judge_gain),
}


@pytest.mark.parametrize("name", DRAWN)
def test_no_more_is_granted_than_is_said(name, smoke_run):
    simulation, made, judge = DRAWN[name]
    assert_drawn(smoke_run(simulation), made, judge)


def corrections_of_padding(dataset, share):
    lost = 0.01 * dataset["far_layer"] ** (0.15 * share)
    return dataset.assign(far_ratio=1 - lost)


def slopes_of_transformers(dataset, share, norm, granted):
    changed = dataset["local_slope_mean_field"].copy()
    changed.loc[{"norm": norm}] = -1.5 + granted * share
    changed.loc[{"norm": depth_exponents.OTHER[norm]}] = -1.5
    return dataset.assign(local_slope_mean_field=changed)


def expansions(dataset, share):
    """C = H - H_0 of tied loops as (eps L)^2 L^(0.05 share)."""
    far = dataset["far_loops"].astype(float)
    law = 1e-3 * far ** (2 * (1 - dataset["alpha"]) + 0.05 * share)
    return dataset.assign(log_energy_by_alpha=np.log1p(law))


COMPUTED = {
    "padding": ("cnn_padding", corrections_of_padding, padding.judge_uniform_correction),
    "limits of Transformers": (
        "transformer_depth",
        partial(slopes_of_transformers, norm="post", granted=0.05),
        partial(depth_exponents.judge_limit, norm="post"),
    ),
    "norms in the limit": (
        "transformer_depth",
        partial(slopes_of_transformers, norm="pre", granted=0.15),
        depth_exponents.judge_placement_limit,
    ),
    "expansions": ("looped_energy", expansions, loop_growth.judge_expansion),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_numbers_are_confirmed_within_what_is_said_alone(name, smoke_run):
    simulation, made, judge = COMPUTED[name]
    assert_computed(smoke_run(simulation), made, judge)
