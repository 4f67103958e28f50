"""Recipes of a GPT as data, without PyTorch: sizes, roles, and numbers that follow any powers of width and depth."""

from meanfield.parameterizations.recipes import ModelWeight, Recipe

BASE = {"learning_rate": 0.01, "weight_decay": 0.1, "epsilon": 1e-8, "std": 0.02, "multiplier": 1.0}
# Roles of the weights outside of blocks and in them, with their shapes over the width.
OUTSIDE = {"wte.weight": ("embedding", lambda n: (96, n)), "wpe.weight": ("position", lambda n: (24, n))}
INSIDE = {
    "ln_1.weight": ("norm_gain", lambda n: (n,)),
    "attn.weight": ("query_key_value", lambda n: (3 * n, n)),
    "proj.weight": ("projection", lambda n: (n, n)),
    "proj.bias": ("bias", lambda n: (n,)),
    "fc.weight": ("ffn", lambda n: (4 * n, n)),
}
BEHIND = {"ln_f.weight": ("norm_gain", lambda n: (n,)), "head.weight": ("matrix", lambda n: (96, n))}
COLUMNS = {"embedding": "input", "position": "input", "matrix": "output", "norm_gain": "bias", "bias": "bias"}


def gpt(width, depth, numbers=lambda name, column, in_block: {}, *, optimizer="adamw", heads=None):
    """A recipe in which `numbers` (name, column, whether in a block) change what `BASE` has."""
    listed = [(name, name, None, *of) for name, of in OUTSIDE.items()]
    for block in range(depth):
        listed += [(f"h.{block}.{name}", f"h.*.{name}", block, *of) for name, of in INSIDE.items()]
    listed += [(name, name, None, *of) for name, of in BEHIND.items()]
    weights = []
    for name, kind, block, role, shape in listed:
        column = COLUMNS.get(role, "hidden")
        own = BASE | {"multiplier": 1.0 if kind.startswith(("h.*.proj", "head")) else None}
        if column == "bias":
            own |= {"weight_decay": 0.0, "std": 1.0 if role == "norm_gain" else 0.0}
        own |= {key: own[key] * factor for key, factor in numbers(kind, column, block is not None).items() if own[key]}
        by = optimizer[column == "hidden"] if isinstance(optimizer, tuple) else optimizer
        own["epsilon"] = own["epsilon"] if by in ("adamw", "sophia", "soap", "shampoo") else None
        looked_up = role in ("embedding", "position")
        how = {"outputs_axis": int(looked_up), "block": block, "optimizer": by}
        weights.append(ModelWeight(name=name, kind=kind, shape=shape(width), role=role, **how, **own))
    return Recipe(tuple(weights), depth, heads)


def by_powers(powers, width_ratio, depth_ratio):
    """`numbers` of `gpt`, from (column, number) -> powers of the two ratios; of biases outside of blocks in width."""

    def numbers(name, column, in_block):
        cells = {key: of for (place, key), of in powers.items() if place == column}
        depth = depth_ratio if in_block else 1.0
        return {key: width_ratio**width * depth**of_depth for key, (width, of_depth) in cells.items()}

    return numbers


# AdamW's table 6, by hand: (column, number) -> powers of r_n and r_L.
ADAMW = {
    ("input", "epsilon"): (-1, 0),
    ("hidden", "multiplier"): (0, -1),
    ("hidden", "std"): (-0.5, 0),
    ("hidden", "learning_rate"): (-1, 0),
    ("hidden", "weight_decay"): (1, 0),
    ("hidden", "epsilon"): (-1, -1),
    ("bias", "multiplier"): (0, -1),
    ("bias", "epsilon"): (-1, -1),
    ("output", "multiplier"): (-1, 0),
    ("output", "epsilon"): (-1, 0),
}
