"""Kill servers at random moments of their work, many times, and check that nothing was lost. `make soak` runs this.

On SQLite one server holds the file; on PostgreSQL three share a database, and their connections are killed as well.
"""

import argparse
import random
import sys

from tests.store.soak.soak import SOAKS

KILLS = {"sqlite": 300, "postgresql": 150}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="Servers are killed; nothing may be lost.")
    parser.add_argument("--database", choices=sorted(SOAKS), help="only this one")
    parser.add_argument("--kills", type=int, help=f"how many on each; otherwise {KILLS}")
    parser.add_argument("--seconds", type=float, default=240.0, help="how long at most on each (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    held = True
    for name in [asked.database] if asked.database else list(KILLS):
        verdict = SOAKS[name](asked.kills or KILLS[name], asked.seconds, asked.seed)
        print(verdict.table(), flush=True)
        held &= verdict.holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
