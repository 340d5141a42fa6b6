"""Names that must not be swapped. Each line marked as an error must be one, or `make check` fails.

mypy --strict reports a mark that silences nothing, so a swap that became possible is found here.
"""

from clew.kernel import (
    AgentId,
    LaneId,
    LaneScope,
    RouteKey,
    RouteKind,
    RunId,
    RunScope,
    RuntimeId,
    ScopeKey,
    SessionId,
    ThreadId,
)


def takes_thread(_: ThreadId) -> None: ...
def takes_run(_: RunId) -> None: ...
def takes_runtime(_: RuntimeId) -> None: ...
def takes_route(_: RouteKey) -> None: ...
def takes_scope(_: ScopeKey) -> None: ...


thread, run, runtime = ThreadId("t"), RunId("r"), RuntimeId("rt")
route = RouteKey(RouteKind.THREAD, "t")
scope: ScopeKey = LaneScope(LaneId("l"))

takes_thread(thread)
takes_run(run)
takes_runtime(runtime)
takes_route(route)
takes_scope(scope)
takes_scope(RunScope(LaneId("l"), run))

takes_thread(run)  # type: ignore[arg-type]
takes_thread(runtime)  # type: ignore[arg-type]
takes_thread("t")  # type: ignore[arg-type]
takes_thread(route)  # type: ignore[arg-type]
takes_thread(scope)  # type: ignore[arg-type]
takes_run(thread)  # type: ignore[arg-type]
takes_run(runtime)  # type: ignore[arg-type]
takes_run("r")  # type: ignore[arg-type]
takes_run(route)  # type: ignore[arg-type]
takes_run(scope)  # type: ignore[arg-type]
takes_runtime(thread)  # type: ignore[arg-type]
takes_runtime(run)  # type: ignore[arg-type]
takes_runtime("rt")  # type: ignore[arg-type]
takes_runtime(route)  # type: ignore[arg-type]
takes_runtime(scope)  # type: ignore[arg-type]
takes_route(thread)  # type: ignore[arg-type]
takes_route(run)  # type: ignore[arg-type]
takes_route(runtime)  # type: ignore[arg-type]
takes_route("t")  # type: ignore[arg-type]
takes_route(scope)  # type: ignore[arg-type]
takes_scope(thread)  # type: ignore[arg-type]
takes_scope(run)  # type: ignore[arg-type]
takes_scope(runtime)  # type: ignore[arg-type]
takes_scope("l")  # type: ignore[arg-type]
takes_scope(route)  # type: ignore[arg-type]
RunScope(LaneId("l"), SessionId("s"))  # type: ignore[arg-type]
LaneScope(AgentId("a"))  # type: ignore[arg-type]
