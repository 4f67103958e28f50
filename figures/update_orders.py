"""The orders of a block's update in the change of the stream, against width and depth, for both tables."""

import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, by_size, legend_below, log_values, styled

TITLES = {"many": "k $\\geq$ 2 table", "one": "k = 1 table"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Rows by optimizer; columns by table and ladder; colours by order, open marks one step, full marks the last."""
    optimizers = [str(name) for name in dataset["optimizer"].values]
    columns = [(table, direction) for direction in ("width", "depth") for table in map(str, dataset["table"].values)]
    figure = Figure(figsize=(10.0, 2.5 * len(optimizers)))
    grid = figure.subplots(len(optimizers), len(columns), squeeze=False, sharey="row")
    for row, optimizer in zip(grid, optimizers, strict=True):
        for axes, (table, direction) in zip(row, columns, strict=True):
            sizes = dataset[direction].values
            norms = dataset[f"order_norm_by_{direction}"].sel(optimizer=optimizer, table=table)
            sizes_of = ((norms**2).mean("draw") ** 0.5).transpose("step", "order", direction).values
            for step, orders in zip(dataset["step"].values, sizes_of, strict=True):
                first = step == dataset["step"].values[0]
                for order, values in enumerate(orders):
                    look = {"mfc": "white", "ls": ":"} if first else {"ls": "-"}
                    label = f"order {order}, step {step}"
                    axes.plot(sizes, values, marker="o", color=FURTHER[order], label=label, **look)
            by_size(axes, sizes, direction)
            axes.set_title(f"{optimizer}, {TITLES[table]}".replace("_", " "), fontsize=9)
        log_values(row[0], "$|\\epsilon_j(L)|$ of order j")
    legend_below(figure, grid[0, 0])
    return figure


if __name__ == "__main__":
    command("update_orders", draw)
