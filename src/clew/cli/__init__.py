"""The command line. Commands are in `commands/`; the other modules are shared by them."""

import sys


def main() -> None:
    """The entry point of the program `clew`."""
    try:
        from clew.cli.program import main as run  # noqa: PLC0415 - it needs packages that may be missing
    except ModuleNotFoundError:
        from clew.cli.missing_packages import REMEDY, missing_packages, missing_words  # noqa: PLC0415
        from clew.cli.output import ExitStatus, tell_problem  # noqa: PLC0415

        missing = missing_packages()
        if not missing:
            raise
        tell_problem("cli:missing-packages", missing_words(missing), REMEDY, as_json="--json" in sys.argv)
        raise SystemExit(ExitStatus.FAILED) from None
    run()


__all__ = ["main"]
