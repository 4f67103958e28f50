r"""The tables of Zheng et al. 2026 as printed, cell by cell, with the letters of the base values; and how to read them.

The columns are input weights (& biases), hidden weights, output weights, and hidden biases where there are any. The
input's initial variance is printed "\sigma^2/d_0 or \sigma^2": no ratio in either.
"""

import re
from fractions import Fraction

from meanfield.parameterizations import Scaling

PRINTED = {
    3: {
        "block_multiplier": (r"\alpha", r"\alpha/r_L", r"\alpha/r_n"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2"),
        "learning_rate": (r"\eta", r"\eta/\sqrt{r_n}", r"\eta"),
        "weight_decay": (r"\lambda", r"\lambda\sqrt{r_n}", r"\lambda"),
    },
    4: {
        "block_multiplier": (r"\alpha", r"\alpha/r_L", r"\alpha/r_n"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2"),
        "learning_rate": (r"\eta\sqrt{r_n}", r"\eta", r"\eta\sqrt{r_n}"),
        "weight_decay": (r"\lambda/\sqrt{r_n}", r"\lambda", r"\lambda/\sqrt{r_n}"),
        "shampoo_epsilon": (r"\varepsilon/r_n", r"\varepsilon/r_L^2", r"\varepsilon/r_n"),
    },
    5: {
        "block_multiplier": (r"\alpha", r"\alpha/r_L", r"\alpha/r_n", r"\alpha/r_L"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2", r"\sigma^2"),
        "learning_rate": (r"\eta r_n", r"\eta r_L", r"\eta r_n", r"\eta r_Lr_n"),
        "weight_decay": (r"\lambda/r_n", r"\lambda/r_L", r"\lambda/r_n", r"\lambda/(r_Lr_n)"),
    },
    6: {
        "block_multiplier": (r"\alpha", r"\alpha/r_L", r"\alpha/r_n", r"\alpha/r_L"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2", r"\sigma^2"),
        "learning_rate": (r"\eta", r"\eta/r_n", r"\eta", r"\eta"),
        "weight_decay": (r"\lambda", r"\lambda r_n", r"\lambda", r"\lambda"),
        "adamw_epsilon": (
            r"\varepsilon/r_n",
            r"\varepsilon/(r_L r_n)",
            r"\varepsilon/r_n",
            r"\varepsilon/(r_L r_n)",
        ),
    },
    7: {
        "block_multiplier": (r"\alpha", r"\alpha/r_L", r"\alpha/r_n"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2"),
        "learning_rate": (r"\eta", r"\eta", r"\eta r_n"),
        "weight_decay": (r"\lambda", r"\lambda", r"\lambda/r_n"),
    },
    9: {
        "block_multiplier": (r"\alpha", r"\alpha/\sqrt{r_L}", r"\alpha/r_n"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2"),
        "learning_rate": (r"\eta", r"\eta/\sqrt{r_n r_L}", r"\eta"),
        "weight_decay": (r"\lambda", r"\lambda\sqrt{r_n}", r"\lambda"),
    },
    10: {
        "block_multiplier": (r"\alpha", r"\alpha/\sqrt{r_L}", r"\alpha/r_n"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2"),
        "learning_rate": (r"\eta\sqrt{r_n}", r"\eta/\sqrt{r_L}", r"\eta\sqrt{r_n}"),
        "weight_decay": (r"\lambda/\sqrt{r_n}", r"\lambda", r"\lambda/\sqrt{r_n}"),
        "shampoo_epsilon": (r"\varepsilon/r_n", r"\varepsilon/r_L", r"\varepsilon/r_n"),
    },
    11: {
        "block_multiplier": (r"\alpha", r"\alpha/\sqrt{r_L}", r"\alpha/r_n", r"\alpha/\sqrt{r_L}"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2", r"\sigma^2"),
        "learning_rate": (r"\eta r_n", r"\eta", r"\eta r_n", r"\eta r_n"),
        "weight_decay": (r"\lambda/r_n", r"\lambda/\sqrt{r_L}", r"\lambda/r_n", r"\lambda/(r_n\sqrt{r_L})"),
    },
    12: {
        "block_multiplier": (r"\alpha", r"\alpha/\sqrt{r_L}", r"\alpha/r_n", r"\alpha/\sqrt{r_L}"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2", r"\sigma^2"),
        "learning_rate": (r"\eta", r"\eta/(r_n\sqrt{r_L})", r"\eta", r"\eta/\sqrt{r_L}"),
        "weight_decay": (r"\lambda", r"\lambda r_n", r"\lambda", r"\lambda"),
        "adamw_epsilon": (
            r"\varepsilon/r_n",
            r"\varepsilon/(r_n\sqrt{r_L})",
            r"\varepsilon/r_n",
            r"\varepsilon/(r_n\sqrt{r_L})",
        ),
    },
    13: {
        "block_multiplier": (r"\alpha", r"\alpha/\sqrt{r_L}", r"\alpha/r_n"),
        "initial_variance": (r"\sigma^2", r"\sigma^2/r_n", r"\sigma^2"),
        "learning_rate": (r"\eta", r"\eta/\sqrt{r_L}", r"\eta r_n"),
        "weight_decay": (r"\lambda", r"\lambda", r"\lambda/r_n"),
    },
}

# Tables 2 and 8: which optimizers share a table.
FAMILIES = {
    "muon_kimi": (3, 9),
    "muon": (4, 10),
    "shampoo": (4, 10),
    "soap": (4, 10),
    "sgd": (5, 11),
    "adamw": (6, 12),
    "lion": (6, 12),
    "sophia": (6, 12),
    "sso": (7, 13),
}

# Table 1, the main text's for Muon-Kimi: without weight decay.
TABLE_1 = {name: PRINTED[3][name] for name in ("block_multiplier", "initial_variance")} | {
    "learning_rate": (r"\eta", r"\eta/\sqrt{r_n}", r"\eta")
}


def read(cell):
    """The powers of r_n and r_L in a printed cell."""
    above, _, below = cell.partition("/")
    return Scaling(*(_power(above, ratio) - _power(below, ratio) for ratio in ("r_n", "r_L")))


def by_role(cells):
    """role -> scaling of a row; input biases share the column of the input weights where there is one for biases."""
    row = dict(zip(("input", "hidden", "output", "hidden_bias"), map(read, cells), strict=False))
    return row | ({"input_bias": row["input"]} if "hidden_bias" in row else {})


def _power(text, ratio):
    under_roots = "".join(re.findall(r"\\sqrt\{([^}]*)\}", text))
    plain = re.sub(r"\\sqrt\{[^}]*\}", "", text)
    squares = plain.count(ratio + "^2")
    return Fraction(under_roots.count(ratio), 2) + plain.count(ratio) + squares
