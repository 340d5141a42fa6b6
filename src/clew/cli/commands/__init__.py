"""One module per command group. `clew.cli.program` lists them and loads each when it is typed."""
