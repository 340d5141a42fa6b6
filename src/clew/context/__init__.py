"""Context: what a session is told, within a budget."""

from clew.context.fallback import EngineFailed, FallbackEngine, engine_named
from clew.context.journal import JournalEngine
from clew.context.prompt import PromptTooLong

__all__ = ["EngineFailed", "FallbackEngine", "JournalEngine", "PromptTooLong", "engine_named"]
