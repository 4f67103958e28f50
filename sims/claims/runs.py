"""The runs that claims rest on, and the verdicts that follow from their datasets."""

import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import xarray as xr
from tqdm import tqdm

from meanfield.common import TERMINATED, require_choice, require_writable, share_machine, terminable, when_terminated
from meanfield.execution import Workers, interrupts_held, one_thread, pool
from meanfield.verification import Check, Claim, Finding, Power, Shares, Verdict, combined
from sims import simulation
from sims.claims.catalogue import CLAIMS
from sims.common.command import worker_arguments
from sims.common.results import MADE, as_it_is


@dataclass(frozen=True)
class RunOptions:
    """What all simulations of a report are run with; ``times`` the draws of the preset."""

    preset: str
    seed: int
    workers: Workers
    force: bool
    times: int = 1


@dataclass(frozen=True)
class Job:
    """A simulation that claims rest on, and what its command line has beyond preset, seed and workers.

    A check without its judge, which other processes could not be sent.
    """

    name: str
    simulation: str
    arguments: tuple[str, ...]

    @property
    def title(self) -> str:
        return shlex.join([f"sims.{self.simulation}", *self.arguments])


@dataclass(frozen=True)
class Evidence:
    """One finished run: its name, the command that makes it, its dataset, page and printed report.

    ``seconds`` are of one processor, as this process counts its own work and that of processes that it has ended.
    """

    run: str
    command: str
    path: Path
    dataset: xr.Dataset
    seconds: float = 0.0

    @property
    def origin(self) -> dict[str, Any]:
        """Draws of every net (None of a run that draws nothing), the digest of the library's code, and of the run.

        Of runs that say so, the machine that ended them, and the seconds that processors drew and trained for them.
        """
        attrs = self.dataset.attrs
        draws = attrs.get("draws")
        code = json.loads(attrs.get("provenance", "{}")).get("code")
        made = json.loads(attrs.get(MADE, "{}"))
        return {"draws": None if draws is None else int(draws), "code": code, "run": attrs["run"]} | made

    @property
    def page(self) -> Path:
        return self.path.with_suffix(".html")


@dataclass(frozen=True)
class Result:
    """A claim with one finding per check, and the verdict that they make."""

    claim: Claim
    findings: tuple[Finding, ...]
    commands: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        return combined(finding.verdict for finding in self.findings)

    def as_data(self) -> list[dict[str, Any]]:
        """The findings in plain values; of a power its words, or its shares to three digits."""
        return [
            {"verdict": str(finding.verdict), "claim": finding.claim, "rival": finding.rival}
            | {"measured": finding.measured, "evidence": finding.evidence, "power": _plain(finding.power)}
            | ({"needed": finding.needed, "made": float(finding.made)} if finding.needed and finding.made else {})
            for finding in self.findings
        ]


def _plain(power: Power | None) -> Any:
    if not isinstance(power, Shares):
        return power
    return {name: share and float(f"{share:.3g}") for name, share in asdict(power).items()}


# At this preset every claim is judged, whichever its verdict rests on.
SMALLEST = "smoke"


def rests_on(claim: Claim, preset: str) -> bool:
    """Whether a claim is judged at a preset: claims with one of their own at no other, but for the smallest."""
    return preset == SMALLEST or preset == claim.preset or not (claim.preset or preset in OWN_PRESETS)


OWN_PRESETS = {claim.preset for claim in CLAIMS.values() if claim.preset}


def chosen_claims(only: str | None, preset: str) -> list[Claim]:
    """Those named in a comma-separated list, in the catalogue's order; without one all that rest on the preset.

    Raises:
        ValueError: a name that is none, or that of a claim which rests on another preset.
    """
    if only is None:
        return [claim for claim in CLAIMS.values() if rests_on(claim, preset)]
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        require_choice("--only", name, CLAIMS)
        if not rests_on(CLAIMS[name], preset):
            other = CLAIMS[name].preset or "default"
            raise ValueError(f"--only has {name}, which rests on runs of another preset: give --preset {other}")
    return [claim for claim in CLAIMS.values() if claim.id in wanted]


def evidence(claims: Sequence[Claim], run: RunOptions, folder: Path) -> dict[str, Evidence]:
    """Every simulation that the claims rest on, run or read."""
    require_writable(folder)
    jobs = _jobs(claims)
    for job in jobs:
        simulation(job.simulation).require_installed()  # an extra that is missing is told before an hour's work
    long, short = split(jobs, run)
    made = {outcome.run: outcome for outcome in (*_one_by_one(long, run, folder), *_side_by_side(short, run, folder))}
    return {job.name: made[job.name] for job in jobs}


def split(jobs: list[Job], run: RunOptions) -> tuple[list[Job], list[Job]]:
    """Those that all processes make together, one by one, and those that they make side by side, longest first.

    A simulation that one process alone would not finish while the others make the rest is for all of them; so is every
    one under a scheduler, whose workers are not counted.
    """
    processes = 1 if run.workers.scheduler else run.workers.here
    seconds = {job: simulation(job.simulation).presets[run.preset].seconds for job in jobs}
    most = sum(seconds.values()) / processes
    long = [job for job in jobs if processes == 1 or seconds[job] > most]
    short = sorted(set(jobs) - set(long), key=lambda job: (-seconds[job], job.name))
    return long, short


def _one_by_one(jobs: list[Job], run: RunOptions, folder: Path) -> Iterator[Evidence]:
    for place, job in enumerate(jobs, start=1):
        print(f"[{place}/{len(jobs)}] {job.title}", file=sys.stderr)
        yield _evidence(job, run, folder)


def _side_by_side(jobs: list[Job], run: RunOptions, folder: Path) -> Iterator[Evidence]:
    """With a process for each simulation instead of all for one."""
    if not jobs:
        return
    processes, alone = min(run.workers.here, len(jobs)), replace(run, workers=Workers(1))
    print(f"{len(jobs)} simulations, {processes} at a time; named when finished", file=sys.stderr)
    with closing(side_by_side(partial(_evidence, run=alone, folder=folder), jobs, processes)) as finished_ones:
        for place, (index, outcome, said) in enumerate(finished_ones, start=1):
            print(f"[{place}/{len(jobs)}] {jobs[index].title}\n{said}", end="", file=sys.stderr)
            yield outcome


def as_they_are(claims: Sequence[Claim], run: RunOptions, folder: Path) -> dict[str, Evidence]:
    """The finished datasets of a folder that the claims rest on, whatever version made them; nothing is run.

    Raises:
        ValueError: a file that is no finished run, or that of another command; none of any of these claims.
    """
    made = {}
    for job in _jobs(claims):
        path, command = folder / f"{job.name}.nc", " ".join([f"python -m {job.title}", *_sizes(job, run)])
        if (dataset := as_it_is(path)) is None:
            continue
        if not _asks_the_same(dataset.attrs["command"], command):
            raise ValueError(f"{path} is of {dataset.attrs['command']!r}, and these claims rest on {command!r}")
        made[job.name] = Evidence(job.name, command, path, dataset)
    if not made:
        raise ValueError(f"{folder} holds no run that these claims rest on: drop --as-they-are, to make them")
    return made


# What an option's parser leaves beside the options: itself, and the command as it was given.
HOW_GIVEN = ("parser", "command")


def _asks_the_same(*commands: str) -> bool:
    """Whether commands ask one simulation for the same run, in whatever order, with defaults written out or not."""
    asked = [command.split(maxsplit=3)[:3] for command in commands]
    if asked[0] != asked[1]:
        return False
    experiment = simulation(asked[0][2].removeprefix("sims."))
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            options = [vars(experiment.parse(shlex.split(command)[3:])) for command in commands]
    except (SystemExit, ValueError):  # an option that another version had, or no command
        return False
    first, second = ({name: value for name, value in of.items() if name not in HOW_GIVEN} for of in options)
    return first == second


def _jobs(claims: Sequence[Claim]) -> list[Job]:
    """Each run that the claims rest on, once."""
    checks = (check for claim in claims for check in claim.checks)
    return list({check.run: Job(check.run, check.simulation, check.arguments) for check in checks}.values())


def _sizes(job: Job, run: RunOptions) -> list[str]:
    """Preset, seed and times, as far as the simulation has them; the check's own times are times the report's."""
    takes = vars(simulation(job.simulation).parse(list(job.arguments)))
    sizes = {name: getattr(run, name) for name in ("preset", "seed") if name in takes}
    if run.times > 1 and "times" in takes:
        sizes["times"] = run.times * takes["times"]
    return [word for name, value in sizes.items() for word in (f"--{name}", str(value))]


def judged(claim: Claim, made: Mapping[str, Evidence], kept: Mapping[int, Finding] | None = None) -> Result:
    """The claim's findings on these datasets; of those that are not there the kept ones, by the place of the check."""
    kept = kept or {}
    findings = tuple(
        check.judge(made[check.run].dataset) if check.run in made else kept.get(place) or _not_run(check)
        for place, check in enumerate(claim.checks)
    )
    return Result(claim, findings, tuple(made[name].command for name in claim.runs if name in made))


# What stands for the numbers of a run that is not made yet.
NOT_RUN = "not run yet"


def _not_run(check: Check) -> Finding:
    words = f"as the others, by the run {check.run}"
    return Finding(words, "none", Verdict.INCONCLUSIVE, NOT_RUN, "none: not run", measured="nothing yet")


def _evidence(job: Job, run: RunOptions, folder: Path) -> Evidence:
    """Make one run, or read what an equal run has written."""
    experiment = simulation(job.simulation)
    path = folder / f"{job.name}.nc"
    sizes = _sizes(job, run)
    workers = worker_arguments(run.workers) if "workers" in experiment.parse([]) else []
    arguments = [*job.arguments, *sizes, *workers, *["--force"] * run.force]
    command = " ".join([f"python -m {job.title}", *sizes])
    begun = _processor_seconds()
    dataset = experiment.finished(arguments, path)
    return Evidence(job.name, command, path, dataset, _processor_seconds() - begun)


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


Work = TypeVar("Work")
Outcome = TypeVar("Outcome")


def side_by_side(
    work: Callable[[Work], Outcome], jobs: Sequence[Work], processes: int
) -> Generator[tuple[int, Outcome, str]]:
    """Yield (index, outcome, what was said on stderr) of every job as it is finished, so many at a time.

    Whatever ends this early stops the other processes, which find their finished pieces when they are run again.

    Raises:
        SystemExit: with the status of the first job that refused or failed to finish, after printing what it said.
        ChildProcessError: a process was killed.
    """
    with terminable(), pool(processes, _start, processes) as executor:
        with interrupts_held():
            indices = {executor.submit(_told, work, job): index for index, job in enumerate(jobs)}
        for future in as_completed(indices):
            outcome, status, said = future.result()
            if status is not None:
                print(said, end="", file=sys.stderr)
                raise SystemExit(status)
            yield indices.pop(future), outcome, said


def _start(processes: int) -> None:
    """One thread, a share of the memory, and progress bars by a lock that a stopped process does not leave behind."""
    one_thread()
    share_machine(processes)
    tqdm.set_lock(RLock())


def _told(work: Callable[[Work], Outcome], job: Work) -> tuple[Any, Any, str]:
    """(outcome, None, stderr) of a job, or (None, status, stderr) where it leaves with a status."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), when_terminated(lambda: os._exit(TERMINATED)):
            return work(job), None, said.getvalue()
    except SystemExit as leaving:
        return None, leaving.code, said.getvalue()
    except Exception:
        print(said.getvalue(), end="", file=sys.stderr)
        raise
