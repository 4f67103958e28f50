"""`python -m sims.optimizer_depth`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("optimizer_depth")
