"""The same work done by other projects. Each runs in a process of its own, with packages that Clew never installs."""
