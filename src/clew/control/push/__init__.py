"""Web Push: notices that reach a browser while no page of Clew is open in it. It needs the extra `clew[push]`."""
