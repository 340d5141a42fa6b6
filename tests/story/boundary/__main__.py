"""The matrix at the boundary: `python -m tests.story.boundary --tries 1500 --jobs 2`."""

import argparse
import random
import sys
import time

from tests.story.boundary.matrix import AGENTS
from tests.story.boundary.reporting import failures, table, worst
from tests.story.boundary.running import legs, run
from tests.story.postgres import serving


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.story.boundary",
        description="Agents, their servers and Clew are killed around a prompt; every word is told once, or held.",
    )
    parser.add_argument("--tries", type=int, default=1500, help="how many in all (%(default)s)")
    parser.add_argument("--agents", default=",".join(AGENTS), help="which, with commas between (%(default)s)")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--jobs", type=int, default=2, help="grounds at once (%(default)s)")
    parser.add_argument("--brief", action="store_true", help="only the moments that matter most, and no taps")
    parser.add_argument("--no-retry", action="store_true", help="nobody asks again for what is held or given up")
    parser.add_argument("--only", default="", help="only combinations whose name holds this, as 'warm, kills agent'")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite", help="of the servers")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    began = time.monotonic()
    chosen = legs(asked.agents.split(","), asked.tries, asked.seed, brief=asked.brief, retries=not asked.no_retry)
    if asked.only:
        chosen = [narrowed for leg in chosen if (narrowed := leg.narrowed(asked.only)) is not None]
    with serving(asked.database):
        outcomes, faults = run(chosen, asked.jobs, lambda words: print(words, flush=True))
    wrong = [each for each in outcomes if not each.good]
    if wrong:
        print(f"\n{failures(wrong, asked.seed)}\n")
        for name, count in worst(wrong).most_common():
            print(f"{count:5} wrong: {name}")
    for fault in faults:
        print(f"\nThe trial itself failed: {fault}")
    seconds = time.monotonic() - began
    print(f"\n{table(outcomes)}\n{len(outcomes)} tries in {seconds:.0f} s, {seconds / (len(outcomes) or 1):.2f} s each")
    return 1 if wrong or faults or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
