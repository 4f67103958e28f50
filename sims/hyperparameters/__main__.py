"""The hyperparameters of a wide and deep residual net, from those tuned on a small one, for any of nine optimizers.

Prints, for every role (weights of input, hidden and output layers, biases, norms), the numbers to copy into a training
run: base value times powers of the width ratio r_n and the depth ratio r_L, as Zheng et al. 2026 tabulate them, with
the table that they come from, whether they follow from the optimizer's update norms, and a warning where the table's
premises do not hold, with what to do about it.
Hyperparameters without a base value are printed as factors. Optimizers of matrices usually step hidden weights only:
--others names the optimizer of all other parameters. Nothing is drawn.
"""

import argparse
from pathlib import Path
from typing import Any

from meanfield.common import require_choice, require_file, require_positive, write_text_whole
from meanfield.parameterizations import MUON_VARIANTS, OPTIMIZER_NAMES, hyperparameters_of
from sims.common.blocks import base_option, own_values
from sims.common.command import CommandParser, Service
from sims.hyperparameters import report

LISTED = "the hyperparameters of a large net from those of a small one"

FORMATS = ("text", "markdown", "json")


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--optimizer", required=True, help="sgd, adamw, lion, sophia, muon, muon_kimi, shampoo, soap or sso")
    add("--width", type=int, required=True, metavar="N", help="units of every layer of the net to train")
    add("--depth", type=int, required=True, metavar="L", help="its residual blocks, of a Transformer its layers")
    add("--base-width", type=int, required=True, metavar="N", help="width of the net that the base values suit")
    add("--base-depth", type=int, required=True, metavar="L", help="its residual blocks, or layers")
    block = "layers of a residual branch, 1 or more (default: 2; attention and feed-forward branches have 2 or more)"
    add("--block-depth", type=int, default=2, metavar="K", help=block)
    add(
        "--parameterization",
        default="spectral",
        help="spectral (default), or standard: nothing scales (nor do rates carry over depth)",
    )
    add("--input-dimension", type=int, metavar="D", help="of dense inputs (images); divides their initial variance")
    add("--output-dimension", type=int, metavar="D", help="outputs (vocabulary), for warnings and --muon-variant")
    variant = "what Muon's step U V^T is multiplied by: plain (default: 1), spectral: sqrt(n_out/n_in), original: "
    variant += (
        "sqrt(max(1, n_out/n_in)), match_rms_adamw: 0.2 sqrt(max(n_out, n_in)) (torch.optim.Muon: the last two); "
    )
    add(
        "--muon-variant",
        default="plain",
        help=f"{variant}without --input-dimension, inputs are one-hot, as many as outputs",
    )
    base = parser.add_argument_group("base values")
    base.add_argument("--base-lr", type=float, metavar="RATE", help="learning rate")
    base.add_argument("--base-weight-decay", type=float, metavar="DECAY")
    base.add_argument("--base-epsilon", type=float, metavar="EPS", help="of adamw, sophia, shampoo or soap")
    base.add_argument("--base-variance", type=float, metavar="VAR", help="initial variance of every parameter")
    base.add_argument("--base-multiplier", type=float, default=1.0, metavar="A", help="block multiplier (default: 1)")
    base_option("hidden_bias.initial_variance=0").add_to(base)
    group = parser.add_argument_group("all parameters but hidden weights")
    group.add_argument("--others", metavar="OPTIMIZER", help="optimizer that steps them (default: the same)")
    group.add_argument("--others-lr", type=float, metavar="RATE")
    group.add_argument("--others-weight-decay", type=float, metavar="DECAY")
    group.add_argument("--others-epsilon", type=float, metavar="EPS")
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    output.add_argument("--out", type=Path, help="file to write (default: print)")
    output.add_argument("--force", action="store_true", help="replace a file that exists")


def run(options: argparse.Namespace) -> int:
    """Print the table, or write it."""
    _check(options)
    record = report.assemble(_parts(options), _common(options), options.muon_variant, own_values(options.base))
    text = getattr(report, options.format)(record)
    if options.out is None:
        print(text)
        return 0
    require_file(options.out)
    if options.out.exists() and not options.force:
        raise FileExistsError(f"{options.out} exists; give another --out, or --force to replace it")
    write_text_whole(options.out, text + "\n")
    print(f"table    {options.out}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse optimizers by the option that names them, and a multiplier under which a block does nothing."""
    for name in ("optimizer", "others"):
        if getattr(options, name) is not None:
            require_choice(f"--{name}", getattr(options, name), OPTIMIZER_NAMES)
    require_choice("--muon-variant", options.muon_variant, MUON_VARIANTS)
    require_positive("--base-multiplier", options.base_multiplier, why="at 0 blocks pass nothing on and never learn")


def _common(options: argparse.Namespace) -> dict[str, Any]:
    """What all roles share, as `transfer_hyperparameters` and `unmet_premises` name it."""
    names = ("width", "depth", "base_width", "base_depth", "block_depth", "parameterization", "input_dimension")
    return {name: getattr(options, name) for name in (*names, "output_dimension")}


def _parts(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One part per optimizer, that of hidden weights first: its name, and its base values."""
    shared = {"block_multiplier": options.base_multiplier, "initial_variance": options.base_variance}
    own = _base_values("--base", options.optimizer, options, "base")
    if options.others is None:
        for name in ("lr", "weight_decay", "epsilon"):
            if getattr(options, f"others_{name}") is not None:
                raise ValueError(f"--others-{name.replace('_', '-')} is given, but no optimizer for it; add --others")
        return [{"optimizer": options.optimizer, "base_values": shared | own}]
    of_others = _base_values("--others", options.others, options, "others")
    return [
        {"optimizer": options.optimizer, "base_values": shared | own},
        {"optimizer": options.others, "base_values": shared | of_others},
    ]


def _base_values(flag: str, optimizer: str, options: argparse.Namespace, prefix: str) -> dict[str, float | None]:
    """The optimizer's own base values; an epsilon only where it has one that scales."""
    given = {name: getattr(options, f"{prefix}_{name}") for name in ("lr", "weight_decay", "epsilon")}
    values = {"learning_rate": given["lr"], "weight_decay": given["weight_decay"]}
    epsilon = f"{optimizer}_epsilon"
    if epsilon in hyperparameters_of(optimizer, options.block_depth):
        return values | {epsilon: given["epsilon"]}
    if given["epsilon"] is not None:
        raise ValueError(f"{flag}-epsilon is {given['epsilon']:g}, but {optimizer!r} has no epsilon; drop it")
    return values


COMMAND = Service(name="hyperparameters", description=__doc__, add=add_options, work=run)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
