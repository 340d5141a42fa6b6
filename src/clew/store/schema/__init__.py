"""The tables, the schema version, the migrations between versions, and the promises that `clew db check` checks."""
