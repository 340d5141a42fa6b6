"""Context: what a session is told, within a budget."""

from clew.context.journal import EngineFailed, FallbackEngine, JournalEngine, engine_named
from clew.context.prompt import PromptTooLong

__all__ = ["EngineFailed", "FallbackEngine", "JournalEngine", "PromptTooLong", "engine_named"]
