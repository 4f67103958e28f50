"""`python -m sims.coordinate_check`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("coordinate_check")
