"""The states of a run as conditions, by its state alone: what else a state brings with it is what has to be checked."""

from clew.kernel import LIVE, RUN_ENDS, RunState
from clew.store.schema.checks.promise import listed

IS_LIVE = f"state IN ({listed(LIVE)})"
IS_CARRYING = f"state IN ({listed(LIVE - {RunState.STOPPING})})"
HAS_ENDED = f"state IN ({listed(RUN_ENDS)})"
