"""Measure the depth law of convolutional nets: label term, output term, update energy, overlap energy by layer.

Draws networks at initialisation, computes for every draw the exact one-step change of every pre-activation, and
holds the result against the mean field and the papers' sum-of-minima law, with a verdict for each.
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

INPUT_LAYOUTS = """An image file holds (grid), (channels, grid) or (samples, channels, grid), channels first or last;
  with --samples n or --input-channels 1, an array (n, grid) is n grey samples. Images are standardised."""

PRESETS = {
    "smoke": {
        "depth": 4,
        "channels": 32,
        "grid": [8],
        "kernel": [3],
        "outputs": 10,
        "draws": 160,
        "precision": "float32",
    },
    "default": {
        "depth": 12,
        "channels": 256,
        "grid": [16],
        "kernel": [3],
        "outputs": 100,
        "draws": 640,
        "precision": "float32",
    },
    "paper": {
        "depth": 16,
        "channels": 256,
        "grid": [16, 16],
        "kernel": [3],
        "outputs": 100,
        "draws": 2048,
        "precision": "float32",
    },
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--channels", type=int, metavar="C", help="channels of every hidden layer")
    add("--grid", type=int, nargs="+", metavar="N", help="sites along the one or two axes")
    add("--kernel", type=int, nargs="+", metavar="K", help="taps along each axis, odd or even; one number for all axes")
    add("--padding", default="circular", help="circular (default) or zero")
    add("--activation", default="relu", help="relu (default), linear, gelu or tanh")
    readout = "convolution (default; theory has its label term at finite channels) or pooled, the papers' head"
    add("--readout", default="convolution", help=readout)
    head = "variance of the readout's weights: he (default) 1/(q fan_in), fan_in 1/fan_in, mup 1/fan_in^2"
    add("--head", default="he", help=head)
    add("--outputs", type=int, metavar="M", help="output channels, classes of a label")
    add = parser.add_argument_group("input", INPUT_LAYOUTS).add_argument
    source = "gaussian (default: fresh white noise), photo (crops of a photograph), or FILE[::ARRAY] (.npy, .npz, .nc)"
    add("--input", default="gaussian", metavar="SOURCE", help=source)
    channels = "channels of the input (gaussian: as the hidden layers; photo: 3 for RGB, 1 for grey; a file: its own)"
    add("--input-channels", type=int, metavar="C", help=channels)
    add("--samples", type=int, metavar="B", help="samples in the batch (default: 1; a file: its own)")


COMMAND = Experiment("cnn_overlap", __doc__, add_options, PRESETS, arrays=True)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
