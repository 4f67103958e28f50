"""The recorded verdicts of each preset, which a report is compared with."""

import json
from collections.abc import Sequence
from pathlib import Path

from meanfield.common import write_text_whole
from sims.claims.runs import Result

FOLDER = Path(__file__).parent / "recorded_verdicts"


def differences(results: Sequence[Result], preset: str) -> list[str]:
    """One line for each verdict that is not the recorded one."""
    recorded = _recorded(preset)
    return [
        f"{result.claim.id}: recorded {recorded.get(result.claim.id, 'nothing')}, now {result.verdict}"
        for result in results
        if recorded.get(result.claim.id) != result.verdict
    ]


def keep(results: Sequence[Result], preset: str) -> Path:
    """Record these verdicts; those of other claims stay."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{preset}.json"
    verdicts = _recorded(preset) | {result.claim.id: str(result.verdict) for result in results}
    write_text_whole(path, json.dumps(verdicts, indent=2) + "\n")
    return path


def _recorded(preset: str) -> dict[str, str]:
    path = FOLDER / f"{preset}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
