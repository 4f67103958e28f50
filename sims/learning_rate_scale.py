"""How the learning-rate scale eta*(L) falls with depth in theory: local slopes, and the slopes that a fit would find.

No net is drawn: the mean field gives the label term's scale for every family and depth, the exact recursion the scale
of the whole update for fully-connected nets. Slopes over the depths that the papers print stand beside those that they
measured, with no fitted constant; a table says how far the power law misses a carried rate, and the claims on eta*(L)
get their verdicts. With --transfer, carries a learning rate to another depth.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sims._command import Results, add_output_options, command_parser, run_command

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.architectures import MLP

NAME = "learning_rate_scale"


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__)
    add = parser.add_argument
    add("--depth", type=int, default=1000, metavar="L", help="deepest net (default: 1000)")
    add("--width", type=int, default=1024, metavar="N", help="channels of every layer (default: 1024)")
    add("--outputs", type=int, default=10, metavar="M", help="outputs, for the exact scale (default: 10)")
    add("--transfer", type=float, metavar="RATE", help="a tuned learning rate to carry to another depth")
    add("--from", type=int, dest="start", metavar="L0", help="depth at which the rate was tuned")
    add("--to", type=int, dest="end", metavar="L", help="depth to carry it to")
    add("--family", default="mlp", help="net of the transfer: mlp (default), mlp linear, cnn 1d or cnn 2d (cnn)")
    add_output_options(parser)
    return parser.parse_args(argv)


def families(depth: int, width: int, outputs: int) -> dict[str, Any]:
    """The nets whose scales are shown, by name: white inputs, he heads, convolutional readouts."""
    from meanfield.architectures import MLP, ConvNet

    conv: dict[str, Any] = {"depth": depth, "channels": width, "outputs": outputs, "readout": "convolution"}
    return {
        "mlp": MLP(depth=depth, width=width, outputs=outputs),
        "mlp linear": MLP(depth=depth, width=width, outputs=outputs, activation="linear"),
        "cnn 1d": ConvNet(grid=(32,), kernel=(3,), **conv),
        "cnn 2d": ConvNet(grid=(16, 16), kernel=(3, 3), **conv),
    }


def run(options: argparse.Namespace) -> int:
    """Print the tables and write the dataset and its figure; or print one transferred learning rate."""
    from meanfield.validation import require_count

    if options.transfer is not None:
        print(_transfer(options))
        return 0
    for name, value in (("--from", options.start), ("--to", options.end)):
        if value is not None:
            raise ValueError(f"{name} is {value}, but there is no rate to carry; give one with --transfer")
    require_count("--depth", options.depth, minimum=2, why="a slope needs two depths")
    from figures import learning_rate_scale as figure
    from meanfield.execution.provenance import code_digest, digest
    from sims import _scale_report as report

    nets = families(options.depth, options.width, options.outputs)
    key = digest(nets=[net.describe() for net in nets.values()], code=code_digest())[:8]
    results = Results(NAME, key, options)
    return results.deliver(lambda: _scales(nets), report.text, figure.draw)


def _scales(nets: dict[str, Any]) -> xr.Dataset:
    """The label term's scale by family and depth from the mean field; the exact scale of the whole update for "mlp"."""
    import json

    import numpy as np
    import xarray as xr

    import meanfield as mf
    from meanfield.execution.provenance import provenance
    from meanfield.theory.learning_rate import scales_by_depth

    label = mf.QUANTITIES["label_learning_rate_scale"]
    scales = np.stack([scales_by_depth(net) for net in nets.values()])
    attributes = {"long_name": label.long_name, "source": label.source}
    depths = np.arange(1, nets["mlp"].depth + 1)
    columns = {label.name: (("family", "depth"), scales, attributes)}
    attrs = {
        "architectures": json.dumps([net.describe() for net in nets.values()]),
        "provenance": provenance(),
    }
    families = xr.Dataset(columns, {"family": list(nets), "depth": depths}, attrs)
    return xr.merge([families, _exact_scale(nets["mlp"])], combine_attrs="override")


def _exact_scale(mlp: MLP) -> xr.Dataset:
    """ln eta* of the whole update, exact, with its local slope, at every depth that the report shows or fits."""
    import numpy as np
    import xarray as xr

    from meanfield.theory.depth_scan import energies_by_depth
    from meanfield.verification.depth_laws import local_slopes
    from meanfield.verification.published import measured_slopes
    from sims._scale_report import SHOWN

    wanted = {*SHOWN, *(depth for found in measured_slopes() for depth in found.depths), mlp.depth}
    chosen = sorted(depth for depth in wanted if depth <= mlp.depth)
    near = sorted({n for d in chosen for n in (d - 1, d, d + 1) if 1 <= n <= mlp.depth})
    energies = energies_by_depth(mlp, near)["log_energy"].sel(energy="update_energy", layers="mean").values
    scale, slope = {}, {}
    for depth in chosen:
        around = [place for place, n in enumerate(near) if abs(n - depth) <= 1]
        depths, logs = np.array(near)[around], -0.5 * energies[around]
        centre = depths.tolist().index(depth)
        scale[depth], slope[depth] = logs[centre], local_slopes(depths, np.exp(logs - logs[centre]))[centre]
    return xr.Dataset(
        {
            "log_learning_rate_scale": ("exact_depth", list(scale.values()), {"long_name": "log learning rate scale"}),
            "exact_slope": ("exact_depth", list(slope.values()), {"long_name": "local slope of the exact scale"}),
        },
        {"exact_depth": chosen},
    )


def _transfer(options: argparse.Namespace) -> str:
    """The carried rate by the finite-depth rule and by the power law, and how far they are apart."""
    import meanfield as mf
    from meanfield.validation import require_choice, require_count
    from sims._table import table

    for name, depth in (("--from", options.start), ("--to", options.end)):
        require_count(name, depth, why="--transfer needs both depths")
    nets = families(1, options.width, options.outputs) | {"cnn": families(1, options.width, options.outputs)["cnn 2d"]}
    require_choice("--family", options.family, nets)
    ends = [replace(nets[options.family], depth=depth) for depth in (options.start, options.end)]
    finite, power = (
        mf.transfer_learning_rate(options.transfer, *ends, rule=rule) for rule in ("finite_depth", "power_law")
    )
    rows = [["finite depth, mean field", f"{finite:.6g}"], ["power law L^(-3/2)", f"{power:.6g}"]]
    title = f"{options.family}: learning rate {options.transfer:g} from depth {options.start} to {options.end}"
    return table(["rule", "learning rate"], rows, title) + f"\n\nfinite depth / power law = {finite / power:.4f}"


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
