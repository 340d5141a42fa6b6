"""The tables, their version, the steps between versions, and the promises that `clew db check` asks."""
