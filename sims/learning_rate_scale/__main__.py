"""`python -m sims.learning_rate_scale`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("learning_rate_scale")
