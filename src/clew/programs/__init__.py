"""Run other people's programs: start them, talk to them, lock their sessions, and end them with all they started."""
