"""`python -m sims.cnn_finite_channels`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("cnn_finite_channels")
