"""`python -m sims.training_assumptions`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("training_assumptions")
