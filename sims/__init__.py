"""Simulations: `python -m sims.NAME --help`."""
