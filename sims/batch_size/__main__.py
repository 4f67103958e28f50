"""`python -m sims.batch_size`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("batch_size")
