"""Programs: other people's programs as processes of ours, started, talked to and ended with all they started."""
