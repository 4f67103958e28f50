"""One step of any optimizer from rest in any net of layers: which theory serves it.

Plain nets of few places have recursions. Those of more, nets with skip connections, and layers that differ are followed
over sampled units. Residual MLPs of one sample and of 'relu' or 'linear' units also have a recursion for errors that
do not depend on features. Sampled units then say by what factor the outputs' own errors change it, which tends to 1
where outputs are few against the width.
"""

from typing import Any

import numpy as np

from meanfield.common.validation import Array, takes
from meanfield.nets.layered import Sequential
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.mean_field.plain_steps import plain_step_refusal, plain_step_terms
from meanfield.theory.mean_field.residual_steps import residual_step_refusal, residual_step_terms
from meanfield.theory.mean_field.sampled_units import sampled_averages, sampled_step_refusal
from meanfield.theory.mean_field.step_terms import StepTerms


@takes(Sequential)
def layered_step_terms(
    net: Sequential, step: FirstStep, inputs: Array | None = None, loss: str = "squared"
) -> StepTerms:
    """The terms of one step of this optimizer from rest, at learning rate 1.

    Raises:
        ValueError: a net, an input or an optimizer without this theory, saying why.
        OverflowError: energies outside the range of floats.

    Source: docs/theory.md section 24.
    """
    if why := layered_step_refusal(net, step, inputs):
        raise ValueError(why)
    if not plain_step_refusal(net, step, inputs):
        return plain_step_terms(net, step, inputs, loss)
    sampled = sampled_averages(net, step, inputs, loss)
    label, output, update = sampled.energies
    value, attrs = sampled.values, dict[str, Any](sampled.attrs)
    error = float((sampled.errors / sampled.energies).max())
    if net.has_skips and not residual_step_refusal(net, step, inputs):
        known: Any = residual_step_terms(net, step, inputs)
        share = known.label[-1] / known.update[-1]  # of the labels' error: 1 where a step does not know its size
        correction = share * np.append(known.update, known.outputs) / label
        if loss == "cross_entropy":  # labels that are no Gaussians
            correction[-1] = correction[-2]
        label, output, update = (each * correction for each in (label, output, update))
        value, attrs = known.value, dict(known.attrs) | attrs
        error = float(np.hypot(error, attrs.get("relative_error", 0.0)))
    return StepTerms(
        update=update[:-1],
        value=value,
        label=label[:-1],
        output=output[:-1],
        outputs=float(update[-1]),
        attrs=attrs | {"relative_error": error},
    )


@takes(Sequential)
def layered_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `layered_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    return plain_step_refusal(net, step, inputs) and sampled_step_refusal(net, step, inputs)
