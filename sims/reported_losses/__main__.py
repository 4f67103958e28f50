"""`python -m sims.reported_losses`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("reported_losses")
