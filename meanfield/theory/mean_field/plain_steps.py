"""One step of any optimizer from rest in plain nets, at leading order in 1/channels."""

from meanfield.common.validation import Array, takes
from meanfield.nets.layered import Sequential
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.mean_field.optimizer_terms import StepTerms


@takes(Sequential)
def plain_step_terms(net: Sequential, step: FirstStep, inputs: Array | None = None) -> StepTerms:
    """The terms of one step of this optimizer from rest."""
    raise ValueError(plain_step_refusal(net, step, inputs))


def plain_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `plain_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    return f"one step of {step.name} has no theory in a {type(net).__name__} yet: draw it with `simulate`"
