"""One step of any optimizer from rest at leading order in 1/channels: what the theory of a family returns, in words of
the registry.

Signs and polar factors are not linear in the error. The label term is then the energy of the step that the labels'
error alone would make, the output term that of the outputs' error alone, and the update energy that of the whole
error z_out - y: the first two add up to the third under descent only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanfield.common.validation import Array
from meanfield.nets.net import Net
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import log_mean, with_logarithms


def forms(net: Net, step: FirstStep) -> set[str | None]:
    """What the weights of a net take of their gradients (`FirstStep.form_of`)."""
    return {step.form_of(role) for role in {net.role_of(name) for name in net.weights}}


def form_refusal(net: Net, step: FirstStep) -> str:
    """Why this first step is not predicted at some weight of a net, and what to take; empty if it is."""
    known: dict[str, str | None] = {}  # of a few roles, which many weights share
    for name in net.weights:
        role = net.role_of(name)
        if role not in known:
            known[role] = step.form_of(role)
        if known[role] is None:
            return (
                f"the first step of {step.name} depends on more than the signs or the polar factor of the gradient at "
                f"{name} (an epsilon, iterations, the curvature or the weights): take one of 'adamw', 'lion', 'muon', "
                "'muon_kimi', 'shampoo', 'soap', or draw it with `simulate`"
            )
    return ""


@dataclass(frozen=True, kw_only=True)
class StepTerms:
    """Mean squares of what one step at learning rate 1 changes, in expectation.

    Attributes:
        update: S_l of layers 1 .. L under the whole error, (L,).
        value: c_l, the mean squares of the layers' values themselves, (L,).
        label, output: S_l under the labels' error alone and under the outputs' alone, (L,); None where not predicted.
        outputs: the mean square change of the outputs, the step of the readout's own weights included; None where not
            predicted.
        attrs: what a dataset says of how it was computed, such as the points of an average and their error.
    """

    update: Array
    value: Array
    label: Array | None = None
    output: Array | None = None
    outputs: float | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Array]:
        """Quantities of the registry by name, with their logarithms.

        Raises:
            OverflowError: an energy that no float holds.
        """
        energies = {"update_energy": self.update, "relative_update_energy": self.update / self.value}
        known = {"label_term": self.label, "output_term": self.output, "output_update_energy": self.outputs}
        energies |= {name: np.asarray(energy) for name, energy in known.items() if energy is not None}
        for name, energy in energies.items():
            if not np.all(np.isfinite(energy) & (energy > 0)):
                raise OverflowError(
                    f"the {name.replace('_', ' ')} of this step leaves the range of floats: lower the depth, or bring "
                    "the variance of the weights closer to the fan-in rule"
                )
        logs = {name: np.log(energy) for name, energy in energies.items()}
        logs["mean_update_energy"] = log_mean(logs["update_energy"])
        scales = {
            "learning_rate_scale": logs["mean_update_energy"],
            "relative_learning_rate_scale": log_mean(logs["relative_update_energy"]),
            "last_learning_rate_scale": logs["relative_update_energy"][-1],
        }
        if "label_term" in logs:
            scales["label_learning_rate_scale"] = log_mean(logs["label_term"])
        if "output_update_energy" in logs:
            scales["output_learning_rate_scale"] = logs["output_update_energy"]
        return with_logarithms(logs | {name: -0.5 * energy for name, energy in scales.items()})
