"""`clew completion`: the script by which a shell completes commands and options."""

import sys
from typing import Literal

from clew.cli.program import program


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script that makes a shell complete Clew's commands and options.

    For example:

        clew completion bash > ~/.local/share/bash-completion/completions/clew

        clew completion zsh > ~/.zfunc/_clew

        clew completion fish > ~/.config/fish/completions/clew.fish

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    sys.stdout.write(program().generate_completion(prog_name="clew", shell=shell))
