"""What judges of batches and of losses grant beside standard errors."""

from functools import partial

import numpy as np

from sims import cross_entropy
from sims.batch_size import claims as batch_sizes
from tests.verification.grants.made import exactly, power_law


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


def prefactors_of_losses(dataset, share):
    """A tenth in the energy: a twentieth in eta*."""
    squared = dataset["update_energy"].sel(head="mup", loss="squared")
    law = (dataset.attrs["classes"] - 1) * np.exp(0.1 * share) * squared
    for loss, values in (("squared", squared), ("cross_entropy", law)):
        dataset = exactly(dataset, "update_energy", values.values, head="mup", loss=loss)
    return dataset


def exponents_with_outputs(dataset, share):
    """A twentieth of an exponent of eta*: twice that of the energy."""
    squared = dataset["update_energy"].sel(net="MLP", head="he", loss="squared").values
    for loss, power in (("squared", 0.0), ("cross_entropy", -0.1 * share)):
        law = squared * power_law(dataset["depth"], power)
        dataset = exactly(dataset, "update_energy", law, net="MLP", head="he", loss=loss)
    return dataset


def output_terms_of_softmax(dataset, share):
    """Relatively 2 (C + 5) L / n, for C classes."""
    place = {"net": "MLP", "head": "he", "loss": "cross_entropy"}
    at = dataset.sel(place)
    granted = 2 * (dataset.attrs["classes"] + 5) * dataset["depth"] / dataset.attrs["width"]
    law = at["label_term"] * at["output_term_mean_field"] / at["label_term_mean_field"] * (1 + granted) ** share
    dataset = exactly(dataset, "label_term", at["label_term"].values, **place)
    return exactly(dataset, "output_term", law.values, **place)


def terms_by_batch(dataset, share, cases):
    """A tenth of the mean field, where finite width is said to make so much."""
    law = dataset["label_term_mean_field"]
    made = dataset.assign(label_term_allowance=0.1 * law)
    return exactly(made, "label_term", (law.sel(case=cases) * (1 + 0.1 * share)).values, case=cases)


def slopes_by_batch(dataset, share):
    """A tenth of an exponent."""
    return dataset.assign(depth_slope=-1.5 + 0.1 * share + 0 * dataset["depth_slope"])


DRAWN = {
    "exponents of losses": ("cross_entropy", exponents_of_losses, cross_entropy.judge_exponent),
    "errors of softmax": (
        "cross_entropy",
        errors_of_softmax,
        partial(cross_entropy.judge_error, head="mup"),
    ),
    "scales by batch": ("batch_size", scales_by_batch, batch_sizes.judge_square_root),
    "outputs by batch": ("batch_size", outputs_by_batch, batch_sizes.judge_output_share),
    "prefactors of losses": ("cross_entropy", prefactors_of_losses, cross_entropy.judge_prefactor),
    "exponents with outputs": ("cross_entropy", exponents_with_outputs, cross_entropy.judge_exponent_with_outputs),
    "output terms of softmax": ("cross_entropy", output_terms_of_softmax, cross_entropy.judge_output_term),
    "terms by batch": ("batch_size", partial(terms_by_batch, cases=slice(None)), batch_sizes.judge_mean_field),
    "floors by batch": (
        "batch_size",
        partial(terms_by_batch, cases=[batch_sizes.WITH_MEAN, batch_sizes.TAUGHT]),
        batch_sizes.judge_floor,
    ),
}

COMPUTED = {
    "slopes by batch": ("batch_size", slopes_by_batch, batch_sizes.judge_depth),
}
