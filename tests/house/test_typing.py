"""mypy proves that names of different things cannot be swapped."""

from pathlib import Path

from mypy import api

SWAPS = Path(__file__).parents[1] / "typing" / "swaps.py"
MARK = "  # type: ignore[arg-type]"


def test_every_swap_is_an_error_and_nothing_else_is(tmp_path: Path) -> None:
    source = SWAPS.read_text(encoding="utf-8")
    bare = tmp_path / "swaps.py"
    bare.write_text(source.replace(MARK, ""), encoding="utf-8")
    report, _, _ = api.run(["--strict", "--no-incremental", "--hide-error-context", str(bare)])
    found = {int(line.split(":")[1]) for line in report.splitlines() if "[arg-type]" in line}
    expected = {number for number, line in enumerate(source.splitlines(), 1) if line.endswith(MARK)}
    assert found == expected, report
    assert len(expected) == 27
