"""Context: what a session is told, within a budget."""

from clew.context.engine import ContextEngine
from clew.context.prompt import BUDGET, PromptTooLong, prompt_for, prompts_of

__all__ = ["BUDGET", "ContextEngine", "PromptTooLong", "prompt_for", "prompts_of"]
