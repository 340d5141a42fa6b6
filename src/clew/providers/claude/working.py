"""What Claude Code has running, by its own account: in the background a command or an agent outlasts its turn."""

from clew.providers.claude.wire import Message

_GOING = frozenset({"pending", "running"})


class Working:
    """It tells when each of them begins and ends, also while no turn is going."""

    def __init__(self) -> None:
        self._tasks: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def told(self, message: Message) -> None:
        if message.get("type") != "system":
            return
        task = str(message.get("task_id"))
        match message.get("subtype"):
            case "task_started":
                self._tasks.add(task)
            case "task_notification":
                self._tasks.discard(task)
            case "task_updated" if (message.get("patch") or {}).get("status", "running") not in _GOING:
                self._tasks.discard(task)
            case _:
                pass
