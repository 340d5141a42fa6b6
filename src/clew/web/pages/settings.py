"""Settings: the policies of agents and projects, with what another policy would have changed, and where data is."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.decisions import replay_decisions
from clew.control.doctor import data_directory
from clew.control.policies import show_agent_policy, show_project_policy
from clew.control.projects import list_projects
from clew.control.push.subscriptions import show_push
from clew.ports.fault import Fault
from clew.protocol.policies import PolicyView
from clew.protocol.replay import ReplayView
from clew.protocol.requests import Replay
from clew.web.site import Site, actor_of

_DAYS = 7
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Preview:
    """What the policy as it is typed would have changed, or why it cannot be used."""

    text: str
    replay: ReplayView | None = None
    fault: Fault | None = None


def add(site: Site) -> None:
    @site.page("/settings")
    async def settings(request: Request) -> Response:
        """With `agent` or `project`, its policy; with `policy`, also what that one would have changed."""
        actor, query = actor_of(request), request.query_params
        view: PolicyView | None = None
        if query.get("agent"):
            view = await show_agent_policy(site.services, actor, query["agent"])
        elif query.get("project"):
            view = await show_project_policy(site.services, actor, query["project"])
        typed = query.get("policy")
        return site.show(
            request,
            "settings.html",
            view=view,
            text=typed if typed is not None else _written(view.set if view else {}),
            applies=_written(view.applies if view else {}),
            preview=None if view is None or typed is None else await _preview(request, view, typed),
            days=_DAYS,
            agents=await list_agents(site.services, actor),
            projects=await list_projects(site.services, actor),
            push=await show_push(site.services, actor),
            data=await data_directory(site.services, actor),
        )

    async def _preview(request: Request, view: PolicyView, text: str) -> Preview:
        try:
            policy = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError) as fault:
            return Preview(text, fault=Fault(f"This is not JSON: {fault}.", "Correct it; nothing was saved."))
        if not isinstance(policy, dict):
            return Preview(text, fault=Fault("A policy is a JSON object.", "Write {} for all defaults."))
        agent, project = (view.name, None) if view.kind == "agent" else (None, view.name)
        try:
            asked = Replay(time.time() - _DAYS * 86_400, policy, agent, project)
            return Preview(text, await replay_decisions(site.services, actor_of(request), asked))
        except Fault as fault:
            return Preview(text, fault=fault)


def _written(policy: Mapping[str, object]) -> str:
    return json.dumps(policy, indent=2, ensure_ascii=False)
