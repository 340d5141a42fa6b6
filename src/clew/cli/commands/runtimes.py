"""`clew runtimes`: the runtimes that agents run on."""

from clew.cli.answers import read_all
from clew.cli.client import Server
from clew.cli.input import OPTIONS, Options
from clew.cli.output import table, tell_json
from clew.cli.times import moment
from clew.protocol.views import RuntimeView


def runtimes(*, options: Options = OPTIONS) -> None:
    """List the runtimes: each is one provider in one home on one machine.

    For example:

        clew runtimes
    """
    said = Server(options.data).get("/runtimes")
    if options.json:
        return tell_json(said)
    return table(
        ("runtime", "provider", "machine", "home", "account", "state", "running", "waiting", "seen"),
        [
            (
                each.id,
                each.provider,
                each.machine,
                each.home,
                ", ".join(each.accounts),
                "online" if each.online else "offline",
                f"{each.live} of {each.most}",
                str(each.waiting),
                moment(each.seen_at),
            )
            for each in read_all(RuntimeView, said)
        ],
        "There are no runtimes yet.",
    )
