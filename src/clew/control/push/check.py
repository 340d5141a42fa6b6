"""What the doctor says of push: nothing while no browser of the person has it turned on."""

from clew.control.actor import Actor, reader_of
from clew.control.push.subscriptions import show_push
from clew.control.services import Services
from clew.protocol.views import CheckView
from clew.store.operations.push import list_subscriptions


async def check_push(services: Services, actor: Actor) -> CheckView | None:
    reader = reader_of(actor)
    if not reader or not await services.read(lambda tx: list_subscriptions(tx, reader)):
        return None
    push = await show_push(services, actor)
    if push.key is None:
        return CheckView("push", "failed", push.words, push.remedy)
    failed = [f"{each.service}: {each.failure}" for each in push.subscriptions if each.failure]
    if failed:
        remedy = (
            "Nothing is lost: the page has it. If it stays so, turn push off and on in that browser's settings page."
        )
        return CheckView("push", "warning", f"The last notification did not arrive. {' '.join(failed)}", remedy)
    browsers = len(push.subscriptions)
    return CheckView("push", "ok", f"{browsers} {'browser is' if browsers == 1 else 'browsers are'} told by push.")
