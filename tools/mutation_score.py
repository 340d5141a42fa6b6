"""Print the share of mutants that the kernel's tests caught, from what mutmut exported."""

import json
import sys
from pathlib import Path

STATS = Path("mutants/mutmut-cicd-stats.json")
CAUGHT = ("killed", "timeout", "segfault", "suspicious", "caught_by_type_check")
ESCAPED = ("survived", "no_tests")


def score(stats: dict[str, int]) -> str:
    """One line a person can read; mutants that were skipped or not reached count for nothing."""
    caught = sum(stats.get(name, 0) for name in CAUGHT)
    escaped = sum(stats.get(name, 0) for name in ESCAPED)
    judged = caught + escaped
    if not judged:
        return "mutation score: no mutant was judged"
    unjudged = stats.get("total", judged) - judged
    rest = f", {unjudged} not judged" if unjudged else ""
    return (
        f"mutation score: {caught / judged:.1%} ({caught} of {judged} caught{rest}; `mutmut results` lists the others)"
    )


def main() -> int:
    if not STATS.exists():
        print(f"{STATS} is missing: run `make mutants` first", file=sys.stderr)
        return 1
    print(score(json.loads(STATS.read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
