"""`python -m sims.looped_transformer`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("looped_transformer")
