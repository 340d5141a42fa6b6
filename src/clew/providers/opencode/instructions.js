// The project's instructions to the agent (AGENTS.md and the like), which OpenCode skips together with the project's
// configuration. Found as OpenCode does: the first kind that exists, in the directory and those above it, up to the
// worktree.
import { existsSync, realpathSync } from "node:fs"
import { dirname, join } from "node:path"
import { within } from "./paths.js"

const off = (name) => ["1", "true"].includes((process.env[name] ?? "").toLowerCase())

const above = (directory, last) => {
  const found = [directory]
  while (found.at(-1) !== last && dirname(found.at(-1)) !== found.at(-1)) found.push(dirname(found.at(-1)))
  return found
}

// A link that leads out of the project could show the agent a file that it may not read.
const isOwn = (path, worktree) => within(realpathSync(path), worktree === "/" ? dirname(path) : worktree)

export const instructions = (directory, worktree) => {
  const claude = off("OPENCODE_DISABLE_CLAUDE_CODE") || off("OPENCODE_DISABLE_CLAUDE_CODE_PROMPT") ? [] : ["CLAUDE.md"]
  const kinds = ["AGENTS.md", ...claude, "CONTEXT.md"]
  const levels = above(directory, worktree)
  const there = kinds.find((kind) => levels.some((level) => existsSync(join(level, kind)))) ?? kinds[0]
  return levels.map((level) => join(level, there)).filter((path) => !existsSync(path) || isOwn(path, worktree))
}
