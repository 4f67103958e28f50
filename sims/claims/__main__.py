"""The referee's report: every published claim with its verdict, the numbers behind it, and what replaces it.

Runs the simulations that the claims rest on (a finished one is read, an interrupted one continued), judges each claim
on their datasets, and writes the verdicts as Markdown, JSON and one HTML page that leads to those of the runs. The exit
status is 1 where a verdict differs from the recorded one of this preset, which `--record` replaces. With `--seeds 20`
it counts how many seeds give each verdict, and says which claims none decides; `--times 8` repeats them with eight
times the draws. Claims that take long to decide rest on the preset evidence, and are judged at no other but smoke.
What hours have made a later version of the judges may judge: `--as-they-are` reads it and runs nothing, and of runs
that are not in the folder it takes the recorded findings. With `--page docs/verdicts.md` it runs nothing either, and
writes the recorded verdicts as a page. Records name the commit of the code, which must have no other changes than
records and page.
"""

import argparse
from pathlib import Path

from sims.common.command import CommandParser, Preset, Service, add_worker_options

LISTED = "every published claim with its verdict, from runs of all these"

# With how long they take.
PRESETS = {"smoke": "3 min", "default": "19 min", "evidence": "16 h", "paper": "80 h"}
DIFFERENT = 1


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--only", metavar="ID[,ID...]", help="claims to judge, e.g. A3,L2 (default: all)")
    add("--preset", choices=PRESETS, default="default", help="sizes of the simulations (default: default)")
    add("--seed", type=int, default=0, help="root of all random streams (default: 0)")
    add("--seeds", type=int, default=1, help="judge with so many seeds, and count their verdicts (default: 1)")
    add("--times", type=int, default=1, help="times the nets of the preset, drawn and tuned on (default: 1)")
    add_worker_options(parser)
    add("--out", type=Path, help="folder of datasets and reports (default: results/claims-PRESET-SEED)")
    add("--force", action="store_true", help="simulate anew, also what another version has written to the folder")
    add(
        "--as-they-are",
        action="store_true",
        help="judge the finished datasets of --out, whatever version made them, and run nothing",
    )
    add("--record", action="store_true", help="record these verdicts with their evidence; with --seeds, their counts")
    add("--page", type=Path, metavar="FILE", help="write the preset's recorded verdicts as a page, and run nothing")


def run(options: argparse.Namespace) -> int:
    """Simulate what is missing, judge, write, compare with the record."""
    from meanfield.common import require_count, write_text_whole
    from sims.claims import record, report, seeds
    from sims.claims.recorded_page import recorded_page
    from sims.claims.runs import RunOptions, as_they_are, chosen_claims, evidence, judged

    if options.page is not None:
        _require_page_alone(options)
        write_text_whole(options.page, recorded_page(options.preset))
        print(f"written {options.page}")
        return 0
    if options.as_they_are:
        _require_nothing_to_run(options)
    require_count("--seed", options.seed, minimum=0)
    require_count("--seeds", options.seeds, minimum=1)
    require_count("--times", options.times, minimum=1)
    if options.record:
        _require_recordable(options)
        record.clean_commit()
    claims = chosen_claims(options.only, options.preset)
    folder = options.out or Path("results") / f"claims-{options.preset}-{options.seed}{_times(options, '-times-')}"
    shared = RunOptions(options.preset, options.seed, options.workers, options.force, options.times)
    if options.seeds > 1:
        counts = seeds.counted(claims, shared, options.seeds, folder)
        print(seeds.text(counts))
        if options.record:
            print(f"\nrecorded {record.keep_counts(counts, options.preset, options.times)}")
        return 0
    evidence_by_run = as_they_are(claims, shared, folder) if options.as_they_are else evidence(claims, shared, folder)
    claims = [claim for claim in claims if evidence_by_run.keys() & set(claim.runs)]
    entries = record.recorded(options.preset) if options.as_they_are and options.times == 1 else {}
    kept = {claim.id: record.kept_findings(claim, entries.get(claim.id, {}), options.seed) for claim in claims}
    results = [judged(claim, evidence_by_run, kept[claim.id]) for claim in claims]
    print(report.document(results, evidence_by_run).text())
    written = report.write(
        results,
        evidence_by_run,
        folder,
        title=f"preset {options.preset}, seed {options.seed}{_times(options, ', draws times ')}",
    )
    changed: list[str] = []
    if options.record:
        print(f"\nrecorded {record.keep(results, evidence_by_run, options.preset, options.seed)}")
    else:
        changed = record.differences(results, options.preset)
        print("\n".join(["", *changed] if changed else ["", "Every verdict is the recorded one."]))
    print("\n" + "\n".join(f"{name:9}{path}" for name, path in written.items()))
    return DIFFERENT if changed else 0


def _times(options: argparse.Namespace, before: str) -> str:
    return f"{before}{options.times}" if options.times > 1 else ""


def _require_recordable(options: argparse.Namespace) -> None:
    if options.times > 1 and options.seeds == 1:
        raise ValueError(
            f"--times is {options.times}, and the verdict that is recorded for a preset has the preset's draws; drop "
            "--times, or count the verdicts of several seeds with --seeds"
        )


def _require_nothing_to_run(options: argparse.Namespace) -> None:
    if given := [flag for flag, value in {"--force": options.force, "--seeds": options.seeds > 1}.items() if value]:
        raise ValueError(f"--as-they-are reads finished runs and makes none; drop {', '.join(given)}")


def _require_page_alone(options: argparse.Namespace) -> None:
    others = {
        "--only": options.only,
        "--seeds": options.seeds > 1,
        "--times": options.times > 1,
        "--record": options.record,
    }
    if given := [flag for flag, value in others.items() if value]:
        raise ValueError(f"--page writes the verdicts recorded of all claims and runs nothing; drop {', '.join(given)}")


COMMAND = Service(
    name="claims",
    description=__doc__,
    presets={name: Preset(takes, preset=name) for name, takes in PRESETS.items()},
    compiles="45 s",
    add=add_options,
    work=run,
)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
