"""How the activation and the variance of the weights bend the depth law of the learning rate.

ReLU keeps the energy of pre-activations at any variance; GELU, SiLU and tanh do not, and with the energy their gain
per layer, sigma_W^2 E[sigma'^2], drifts (Zhang et al. 2026, appendix F). Fully-connected nets with one input, scaled so
that z^(1) has variance 1, are drawn with each activation and three weight variances sigma_W^2/fan_in: the fan-in rule
1/q, He's 2 and the energy rule 1/E[sigma(G)^2]. Energies of pre-activations and gates are held against the mean field
by layer, and eta* over depths, extrapolated from two widths; the mean field goes on to depths that no width can follow.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

PRESETS = {
    "smoke": {"depths": [3, 5, 8], "width": 1024, "draws": 64},
    "default": {"depths": [3, 5, 8, 12], "width": 8192, "draws": 128},
    "paper": {"depths": [3, 5, 8, 12, 18], "width": 32768, "draws": 1024},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--depths", type=int, nargs="+", metavar="L", help="depths to draw, two or more")
    add("--width", type=int, metavar="N", help="units of a layer; a fourth as many are drawn too")
    add("--outputs", type=int, default=100, metavar="M", help="outputs (default: 100; few blur the labels)")


COMMAND = Experiment("activation_drift", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
