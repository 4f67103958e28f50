"""Run all benchmarks and write their table.

    python -m benchmarks [--out docs/benchmarks.md] [--json FILE] [--quick] [--seconds S] [--size NAME=N]

Other options go to pytest, such as -k EXPRESSION to run some of them. JAX and PyTorch take part if they are installed.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.table import markdown

FOLDER = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="Markdown file to write (default: print the table)")
    parser.add_argument("--json", type=Path, help="file to keep all rounds in, as pytest-benchmark writes them")
    options, others = parser.parse_known_args()
    with TemporaryDirectory() as folder:
        written = options.json or Path(folder) / "run.json"
        written.unlink(missing_ok=True)
        status = pytest.main(
            [str(FOLDER), "--benchmark-quiet", "-p", "no:cacheprovider", f"--benchmark-json={written}", *others]
        )
        if not written.exists() or not written.stat().st_size:
            return int(status) or 1
        run = json.loads(written.read_text())
    table = markdown(run, shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]))
    if options.out is None:
        print(table)
    else:
        options.out.write_text(table)
        print(f"table    {options.out}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
