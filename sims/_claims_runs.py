"""The runs that claims rest on, and the verdicts that follow from their datasets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import xarray as xr

from meanfield.execution.team import Workers
from meanfield.files import require_writable
from meanfield.validation import require_choice
from meanfield.verification.catalogue import CLAIMS
from meanfield.verification.claims import Check, Claim, combined
from meanfield.verification.verdicts import Finding, Verdict
from sims._command import worker_arguments
from sims._finished import finished


@dataclass(frozen=True)
class RunOptions:
    """What all simulations of a report are run with."""

    preset: str
    seed: int
    workers: Workers
    force: bool


@dataclass(frozen=True)
class Evidence:
    """One finished run: its name, the command that makes it, its dataset, figure and printed report."""

    run: str
    command: str
    path: Path
    dataset: xr.Dataset

    @property
    def figure(self) -> Path:
        return self.path.with_suffix(".png")


@dataclass(frozen=True)
class Result:
    """A claim with one finding per check, and the verdict that they make."""

    claim: Claim
    findings: tuple[Finding, ...]
    commands: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        return combined(finding.verdict for finding in self.findings)


def chosen_claims(only: str | None) -> list[Claim]:
    """Those named in a comma-separated list, in the catalogue's order; all of them without one."""
    if only is None:
        return list(CLAIMS.values())
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        require_choice("--only", name, CLAIMS)
    return [claim for claim in CLAIMS.values() if claim.id in wanted]


def evidence(claims: Sequence[Claim], run: RunOptions, folder: Path) -> dict[str, Evidence]:
    """Every simulation that the claims rest on, run or read."""
    require_writable(folder)
    wanted = {check.run: check for claim in claims for check in claim.checks}
    for check in wanted.values():
        module = import_module(f"sims.{check.simulation}")
        if hasattr(module, "require_installed"):  # an extra that is missing is told before an hour's work
            module.require_installed()
    found = {}
    for place, check in enumerate(wanted.values(), start=1):
        print(f"[{place}/{len(wanted)}] {' '.join([f'sims.{check.simulation}', *check.arguments])}", file=sys.stderr)
        found[check.run] = _evidence(check, run, folder)
    return found


def judged(claim: Claim, found: Mapping[str, Evidence]) -> Result:
    """The claim's findings on these datasets."""
    findings = tuple(check.judge(found[check.run].dataset) for check in claim.checks)
    return Result(claim, findings, tuple(found[name].command for name in claim.runs))


def _evidence(check: Check, run: RunOptions, folder: Path) -> Evidence:
    """Make one run, or read what an equal run has written."""
    module = import_module(f"sims.{check.simulation}")
    path = folder / f"{check.run}.nc"
    # A simulation that draws nothing has neither sizes nor seeds.
    sizes = ["--preset", run.preset, "--seed", str(run.seed)] if hasattr(module, "PRESETS") else []
    split = worker_arguments(run.workers) if sizes else []
    arguments = [*check.arguments, *sizes, *split, *["--force"] * run.force]
    command = " ".join([f"python -m sims.{check.simulation}", *check.arguments, *sizes])
    return Evidence(check.run, command, path, finished(check.simulation, arguments, path))
