"""Put what the contract suite found into docs/providers.md: every provider, every behaviour.

    make contract                           run the suite in full and put what came of it into the page
    make contract ARGS="-k codex"           the same for one provider; the other columns stay as they are

By hand, from the files that the workers of a run wrote because CLEW_CONTRACT_TABLE named one:

    python -m tools.contract_table build/contract.*.json            print the table
    python -m tools.contract_table build/contract.*.json --write    put it into the page

What was not tried, or could not be because its agent is not installed, keeps the cell it has in the page; what the
suite no longer holds goes.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "providers.md"
SUITE = ROOT / "tests" / "providers" / "contract"
BEGIN, END = "<!-- contract: begin -->", "<!-- contract: end -->"

FAILS, ABSENT, YES, UNABLE, PARTLY = "fails", "not installed", "yes", "declared unable", "partly"
SHOWN = {YES: "yes", UNABLE: "unable", PARTLY: "partly", FAILS: "**fails**", ABSENT: "absent"}
READ = {shown: result for result, shown in SHOWN.items()}

Behaviour = tuple[str, str]
"""What it is about, and in words."""

Table = dict[Behaviour, dict[str, str]]


def behaviours() -> set[Behaviour]:
    """All that the suite holds, read from its files."""
    found: set[Behaviour] = set()
    for file in SUITE.glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.add((file.stem.removeprefix("test_"), in_words(node.name)))
    return found


def in_words(test: str) -> str:
    return test.partition("[")[0].removeprefix("test_").replace("_", " ")


def merged(rows: Iterable[Mapping[str, str]]) -> Table:
    """One result for each behaviour and provider, however many cases it was tried in."""
    found: dict[Behaviour, dict[str, set[str]]] = {}
    for row in rows:
        cells = found.setdefault((row["about"], row["behaviour"]), {})
        cells.setdefault(row["rig"], set()).add(row["result"])
    return {behaviour: {rig: _one(results) for rig, results in cells.items()} for behaviour, cells in found.items()}


def _one(results: set[str]) -> str:
    for result in (FAILS, ABSENT):
        if result in results:
            return result
    return PARTLY if results == {YES, UNABLE} else next(iter(results))


def written(table: Table) -> str:
    rigs = sorted({rig for cells in table.values() for rig in cells})
    lines = [_row(["", *rigs]), _row(["---"] * (len(rigs) + 1))]
    about = ""
    for behaviour in sorted(table):
        if behaviour[0] != about:
            about = behaviour[0]
            lines.append(_row([f"**{about}**", *([""] * len(rigs))]))
        lines.append(_row([behaviour[1], *(SHOWN.get(table[behaviour].get(rig, ""), "") for rig in rigs)]))
    totals = [f"{_count(table, rig, YES, PARTLY)} / {_count(table, rig, UNABLE)}" for rig in rigs]
    return "\n".join([*lines, _row(["**done / declared unable**", *totals])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _count(table: Table, rig: str, *results: str) -> int:
    return sum(cells.get(rig) in results for cells in table.values())


def in_page(text: str) -> Table:
    """The table as the page has it."""
    begin, end = text.find(BEGIN), text.find(END)
    lines = [line.strip("|").split("|") for line in text[begin:end].splitlines() if line.startswith("|")]
    if not lines:
        return {}
    (_, *rigs), _, *rows = [[cell.strip() for cell in line] for line in lines]
    table, about = Table(), ""
    for first, *cells in rows:
        if first.startswith("**done"):
            break
        if first.startswith("**"):
            about = first.strip("*")
            continue
        table[about, first] = {rig: READ[cell] for rig, cell in zip(rigs, cells, strict=True) if cell in READ}
    return table


def renewed(text: str, table: Table, known: Set[Behaviour]) -> str:
    """The page with what was found laid over what it had, of the behaviours that are known."""
    old = in_page(text)
    whole = {each: cells for each in known if (cells := {**old.get(each, {}), **table.get(each, {})})}
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{written(whole)}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="put the table into docs/providers.md")
    told = parser.parse_args()
    rows = [row for file in told.files for row in json.loads(file.read_text(encoding="utf-8"))]
    absent = sorted({row["rig"] for row in rows if row["result"] == ABSENT})
    if absent:
        print(f"Not run, for their agents are not installed: {', '.join(absent)}", file=sys.stderr)
    table = merged(row for row in rows if row["result"] != ABSENT)
    if not table:
        print("No contract test ran: nothing to show.", file=sys.stderr)
        return 1
    if told.write:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), table, behaviours()), encoding="utf-8")
    else:
        print(written(table))
    failing = sorted({rig for cells in table.values() for rig, result in cells.items() if result == FAILS})
    if failing:
        print(f"Fails in some: {', '.join(failing)}", file=sys.stderr)
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
