"""Fully-connected nets by layer: drawn against the exact expectation at finite width, and what it says of depth.

Draws with lazily revealed weights where these are cheaper, compares every layer's label, output and update energy with
the exact expectation (no allowance is needed), and tabulates from the recursion alone: the finite-width correction as a
function of l/n, the output term over the label term against head, outputs and depth, and the slope of eta*(L).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sims._beside import heavy_tail_notes, predictions
from sims._command import Results, add_run_options, fill_from_preset, run_command

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.architectures import MLP

NAME = "mlp_depth"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depth": 8, "width": 128, "draws": 256},
    "default": {"depth": 32, "width": 512, "draws": 2048},
    "paper": {"depth": 128, "width": 1024, "draws": 4096},
}
RATIOS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
WIDTHS = (256, 1024, 4096)
DEPTHS = (10, 100, 1000, 10_000)
TERMS = ("label_term", "output_term", "update_energy")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m sims.{NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument_group("network").add_argument
    add("--depth", type=int, metavar="L", help="hidden layers")
    add("--width", type=int, metavar="N", help="units of every layer")
    add("--outputs", type=int, default=10, metavar="M", help="outputs (default: 10)")
    add("--activation", default="relu", help="relu (default) or linear: those with an exact expectation")
    add("--head", default="he", help="he (default), fan_in or mup")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import mlp_depth as figure
    from meanfield.architectures import MLP
    from meanfield.execution.provenance import code_digest, digest

    net = MLP(
        depth=options.depth,
        width=options.width,
        outputs=options.outputs,
        activation=options.activation,
        head=options.head,
    )
    key = digest(net=net.describe(), draws=options.draws, seed=options.seed, code=code_digest())[:8]
    results = Results(NAME, key, options.out, options.force)
    dataset = results.finished()
    if dataset is None:
        dataset = _measure(options, net, results)
        results.keep(dataset)
    print(
        "\n\n".join([_layer_table(dataset), _notes(dataset), _width_table(net), _ratio_table(net), _verdicts(dataset)])
    )
    results.keep_figure(lambda: figure.draw(dataset))
    print(f"\ndataset  {results.dataset_path}\nfigure   {results.figure_path}")
    return 0


def _measure(options: argparse.Namespace, net: MLP, results: Results) -> xr.Dataset:
    """Draws, with the exact expectation (NAME_exact), the mean field (NAME_mean_field) and the exact spread of F."""
    import xarray as xr

    from meanfield.execution.runs import Run, simulate_all
    from meanfield.theory.exact import relative_spread

    spread = xr.Dataset({"overlap_energy_relative_spread": ("layer", relative_spread(net))})
    run = Run(net, options.draws, options.seed)
    measured = simulate_all([run], workers=options.workers, store=results.pieces)[0]
    return xr.merge([measured, *predictions(net, ("exact", "mean_field")), spread], combine_attrs="override")


def _layer_table(dataset: xr.Dataset) -> str:
    from meanfield.verification.comparison import score
    from sims._table import measured, number, signed, table

    rows = []
    for layer in dataset["layer"].values:
        at = dataset.sel(layer=layer)
        cells = [str(layer)]
        for name in TERMS:
            value, stderr, exact = (at[column] for column in (name, f"{name}_stderr", f"{name}_exact"))
            cells += [
                measured(float(value), float(stderr)),
                number(float(exact)),
                signed(float(score(value, stderr, exact))),
            ]
        rows.append([*cells, number(float(at["overlap_energy_relative_spread"]))])
    header = ["layer", "label term B", "exact", "s.e.", "output term A", "exact", "s.e."]
    header += ["update energy S", "exact", "s.e.", "spread of F"]
    title = "By layer (s.e.: measured minus exact, in standard errors; spread: of one draw of F over its mean, exact)"
    return table(header, rows, title)


def _notes(dataset: xr.Dataset) -> str:
    notes = [f"{dataset.attrs['draws']} draws, seed {dataset.attrs['seed']}, {dataset.attrs['weights']} weights."]
    notes += heavy_tail_notes(dataset, TERMS)
    scale, exact = dataset["learning_rate_scale"], dataset["learning_rate_scale_exact"]
    error = dataset["learning_rate_scale_stderr"]
    notes.append(f"eta* = {float(scale):.4g} +- {float(error):.2g}, exact {float(exact):.4g}")
    return "\n".join(notes)


def _width_table(net: MLP) -> str:
    """F_l over its leading order: a function of l/n alone (A6)."""
    import meanfield as mf
    from sims._table import table

    rows = []
    for width in WIDTHS:
        wide = replace(net, depth=width, width=width)
        ratio = (mf.predict(wide, level="exact") / mf.predict(wide, level="mean_field"))["overlap_energy"].values
        rows.append([str(width), *(f"{ratio[int(width * share) - 1]:.4f}" for share in RATIOS)])
    title = "Finite width: exact F_l over its leading order, at l/n (not a uniform O(1/n))"
    return table(["width n", *(f"l/n = {share:g}" for share in RATIOS)], rows, title)


def _ratio_table(net: MLP) -> str:
    """A/B at the last layer, and the local slope of the exact eta*, against head, outputs and depth (A4)."""
    import numpy as np

    import meanfield as mf
    from sims._table import table

    rows = []
    wide = 10**6
    for head in ("he", "fan_in", "mup"):
        for outputs in (1, 10, wide):
            row = [head, f"{outputs:g}"]
            for depth in DEPTHS:
                nets = [
                    replace(net, depth=d, width=wide, outputs=outputs, head=head) for d in (depth, round(1.1 * depth))
                ]
                near, far = (mf.predict(end, level="exact") for end in nets)
                ratio = float(np.exp(near["log_output_term"][-1] - near["log_label_term"][-1]))
                logs = [float(end["log_learning_rate_scale"]) for end in (near, far)]
                slope = (logs[1] - logs[0]) / np.log(nets[1].depth / nets[0].depth)
                row.append(f"{ratio:.3g} ({slope:.3f})")
            rows.append(row)
    title = f"Output over label term at the last layer, and (local slope of eta*), exact, width {wide:g}"
    return table(["head", "outputs", *(f"L = {depth}" for depth in DEPTHS)], rows, title)


def _verdicts(dataset: xr.Dataset) -> str:
    from meanfield.verification.exactness import judge_exact

    return "\n".join(["Verdicts", *(judge_exact(dataset, name).sentence() for name in TERMS[:2])])


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
