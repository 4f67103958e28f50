"""What counts as a net in this library, and the refusal of anything else."""

from typing import Any

from meanfield.nets.chain import Chain
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.loop import Loop
from meanfield.nets.net import Net

NETS = "an MLP, ConvNet, ResidualMLP or ResidualConvNet"
NETS_OF_UNITS = "an MLP, ConvNet, ResidualMLP, Transformer or ResidualConvNet"


def require_net(architecture: Any, *, loops: bool = False, units: bool = False) -> None:
    """Raise TypeError unless this is a net of layers or, if these are served, a loop or any net of ``units``."""
    if isinstance(architecture, Net if units else (Sequential, Loop) if loops else Sequential):
        return
    served = f"{NETS_OF_UNITS if units else NETS}{', or a TiedLoop' if loops or units else ''}"
    if isinstance(architecture, Chain):
        raise TypeError(
            "architecture is a Chain whose units are those of no family that has what is asked for, as batch "
            f"normalisation, dropout or units of one's own have not; give {served}, or a Chain of the units of one; "
            "meanfield.Energies and what trains serve any units"
        )
    kind = architecture if isinstance(architecture, type) else type(architecture)
    what = f"the class {kind.__name__}" if kind is architecture else f"of type {kind.__module__}.{kind.__qualname__}"
    raise TypeError(
        f"architecture is {what}; give {served} of this library, which says a net's sizes and no more, such as "
        "meanfield.MLP(depth=8, width=512)"
    )
