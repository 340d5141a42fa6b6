"""`clew runtimes`: where agents can run."""

from clew.cli.client import Server
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read_all
from clew.cli.table import table
from clew.cli.telling import tell_as_is
from clew.cli.times import moment
from clew.protocol.views import RuntimeView


def runtimes(*, options: Options = OPTIONS) -> None:
    """List the runtimes: each is one provider in one home on one machine.

    For example:

        clew runtimes
    """
    said = Server(options.data).get("/runtimes")
    if options.json:
        return tell_as_is(said)
    return table(
        ("runtime", "provider", "machine", "home", "account", "state", "going", "waiting", "seen"),
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
