"""Figures from saved datasets: one module per simulation, same stem, ``draw(dataset) -> Figure``."""
