"""Start the guide on standard input and output."""

import asyncio

from clew.providers.guide.agent.methods import Methods
from clew.providers.guide.memory import home_of

if __name__ == "__main__":
    asyncio.run(Methods(home_of()).serve())
