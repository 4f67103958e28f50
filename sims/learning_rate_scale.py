"""How the learning-rate scale eta*(L) falls with depth in theory: local slopes, and the slopes that a fit would find.

No net is drawn: the mean field gives the label term's scale for every family and depth, the exact recursion the scale
of the whole update for fully-connected nets. Fitted slopes over the depths that the papers print stand beside the
slopes that they measured, with no fitted constant. With --transfer, carries a learning rate to another depth.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sims._command import Results, add_output_options, run_command

if TYPE_CHECKING:
    import xarray as xr

NAME = "learning_rate_scale"

# Depths of the papers' fits: P0 table 6 (audio), table 5 (ViT), and the range of a common sweep.
RANGES = {
    "6 10 14 18 (P0 table 6)": (6, 10, 14, 18),
    "6 8 10 20 (P0 table 5)": (6, 8, 10, 20),
    "3 .. 30": tuple(range(3, 31)),
}
MEASURED = """Slopes of tuned learning rates that P0 measured on CIFAR-10, CIFAR-100, ImageNet (table 1):
CNN -1.339, -1.392, -1.329; ResNet -1.435, -1.355, -1.567; ViT -1.441, -1.371, -1.178. Audio (table 6): -1.578."""
SHOWN = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m sims.{NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    if options.transfer is not None:
        print(_transfer(options))
        return 0
    from meanfield.validation import require_count

    require_count("--depth", options.depth, minimum=2, why="a slope needs two depths")
    from figures import learning_rate_scale as figure
    from meanfield.execution.provenance import code_digest, digest

    nets = families(options.depth, options.width, options.outputs)
    key = digest(nets=[net.describe() for net in nets.values()], code=code_digest())[:8]
    results = Results(NAME, key, options.out, options.force)
    dataset = results.finished()
    if dataset is None:
        dataset = _scales(nets)
        results.keep(dataset)
    print(report(dataset))
    results.keep_figure(lambda: figure.draw(dataset))
    print(f"\ndataset  {results.dataset_path}\nfigure   {results.figure_path}")
    return 0


def _scales(nets: dict[str, Any]) -> xr.Dataset:
    """The label term's scale by family and depth from the mean field; the exact scale of the whole update for "mlp"."""
    import json

    import numpy as np
    import xarray as xr

    import meanfield as mf
    from meanfield.execution.provenance import provenance
    from meanfield.theory.learning_rate import scales_by_depth

    mlp = nets["mlp"]
    depths = np.arange(1, mlp.depth + 1)
    chosen = [depth for depth in sorted({*SHOWN, *(d for fit in RANGES.values() for d in fit)}) if depth <= mlp.depth]
    exact = [float(mf.predict(replace(mlp, depth=d), level="exact")["log_learning_rate_scale"]) for d in chosen]
    label = mf.QUANTITIES["label_learning_rate_scale"]
    whole = mf.QUANTITIES["log_learning_rate_scale"]
    scales = np.stack([scales_by_depth(net) for net in nets.values()])
    variables = {
        label.name: (("family", "depth"), scales, {"long_name": label.long_name, "source": label.source}),
        whole.name: (("exact_depth",), exact, {"long_name": whole.long_name, "source": whole.source}),
    }
    command = " ".join(["python -m sims." + NAME, *sys.argv[1:]])
    attrs = {
        "architectures": json.dumps([net.describe() for net in nets.values()]),
        "provenance": provenance(command=command),
    }
    return xr.Dataset(variables, {"family": list(nets), "depth": depths, "exact_depth": chosen}, attrs)


def report(dataset: xr.Dataset) -> str:
    """Scales relative to depth 1 with local slopes, then the slopes that a fit over the papers' depths finds."""
    return "\n\n".join([_scale_table(dataset), _fit_table(dataset), MEASURED])


def _scale_table(dataset: xr.Dataset) -> str:
    import numpy as np

    from sims._table import number, table

    columns = {str(f): dataset["label_learning_rate_scale"].sel(family=f).values for f in dataset["family"].values}
    slopes = {f: np.gradient(np.log(s), np.log(dataset["depth"].values)) for f, s in columns.items()}
    exact = dict(zip(dataset["exact_depth"].values.tolist(), dataset["log_learning_rate_scale"].values, strict=True))
    rows = []
    for depth in (d for d in SHOWN if d <= dataset.sizes["depth"]):
        cells = [f"{columns[f][depth - 1] / columns[f][0]:.4g} ({slopes[f][depth - 1]:.3f})" for f in columns]
        rows.append([str(depth), *cells, number(float(np.exp(exact[depth] - exact[1])))])
    title = "eta*(L) / eta*(1) of the label term (local slope), mean field; last: exact, output term included"
    return table(["depth", *columns, "mlp exact"], rows, title)


def _fit_table(dataset: xr.Dataset) -> str:
    import numpy as np

    from meanfield.estimates import fit_power_law
    from sims._table import table

    rows = []
    for name, depths in RANGES.items():
        if max(depths) > dataset.sizes["depth"]:
            continue
        chosen = dataset["label_learning_rate_scale"].sel(depth=list(depths))
        slopes = [fit_power_law(depths, chosen.sel(family=f).values).exponent for f in dataset["family"].values]
        whole = np.exp(dataset["log_learning_rate_scale"].sel(exact_depth=list(depths)).values)
        rows.append([name, *(f"{slope:.3f}" for slope in [*slopes, fit_power_law(depths, whole).exponent])])
    families_shown = [str(family) for family in dataset["family"].values]
    return table(["fitted slope over", *families_shown, "mlp exact"], rows, "Slopes that a fit finds (papers: -1.5)")


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
