"""`python -m sims.hyperparameter_transfer`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("hyperparameter_transfer")
