// The project's own words to the agent (AGENTS.md and the like). OpenCode leaves them out together with the project's
// configuration. They are found as it finds them: the first kind that there is, in the directory and those above it, as
// far as the worktree.
import { existsSync, realpathSync } from "node:fs"
import { dirname, join } from "node:path"
import { within } from "./paths.js"

const off = (name) => ["1", "true"].includes((process.env[name] ?? "").toLowerCase())

const above = (directory, last) => {
  const found = [directory]
  while (found.at(-1) !== last && dirname(found.at(-1)) !== found.at(-1)) found.push(dirname(found.at(-1)))
  return found
}

// One that is a link to somewhere else would show the agent a file that it may not read.
const isOwn = (path, worktree) => within(realpathSync(path), worktree === "/" ? dirname(path) : worktree)

export const instructions = (directory, worktree) => {
  const claude = off("OPENCODE_DISABLE_CLAUDE_CODE") || off("OPENCODE_DISABLE_CLAUDE_CODE_PROMPT") ? [] : ["CLAUDE.md"]
  const kinds = ["AGENTS.md", ...claude, "CONTEXT.md"]
  const levels = above(directory, worktree)
  const there = kinds.find((kind) => levels.some((level) => existsSync(join(level, kind)))) ?? kinds[0]
  return levels.map((level) => join(level, there)).filter((path) => !existsSync(path) || isOwn(path, worktree))
}
