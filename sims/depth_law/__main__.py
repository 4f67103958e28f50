"""Run `python -m sims.depth_law`."""

from sims.common.study import run_as_command

if __name__ == "__main__":
    run_as_command("depth_law")
