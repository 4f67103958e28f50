"""How fast the library is, beside what the machine allows: `python -m benchmarks` makes the table."""
