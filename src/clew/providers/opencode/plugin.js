// Clew's plugin in OpenCode's server.
//
// - A shell gets the variables of its session, which Clew writes to one file per session (plugin.py), and no password.
// - A tool gets the path that a link really leads to (paths.js).
// - The agent gets the project's instructions, although its configuration is not read (instructions.js).
// - A prompt that Clew has withdrawn is kept out (gate.js).
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pass } from "./gate.js"
import { hide } from "./password.js"
import { instructions } from "./instructions.js"
import { paths } from "./paths.js"

const TOOLS = new Set(["read", "write", "edit", "multiedit", "glob", "grep", "list", "lsp"])

const parents = new Map()

export const Clew = async ({ directory, worktree }) => {
  await hide("OPENCODE_SERVER_PASSWORD")
  const { straight, patched } = paths(directory, worktree)

  return {
    config: async (config) => {
      if (process.env.OPENCODE_DISABLE_PROJECT_CONFIG === "1")
        config.instructions = [...(config.instructions ?? []), ...instructions(directory, worktree)]
    },
    event: async ({ event }) => {
      const session = event.type === "session.created" ? event.properties.info : undefined
      if (session?.parentID) parents.set(session.id, session.parentID)
    },
    "chat.message": async (input) => pass(input.messageID),
    "tool.execute.before": async (input, output) => {
      const given = output.args
      if (input.tool === "apply_patch" && typeof given?.patchText === "string")
        given.patchText = await patched(given.patchText)
      if (!TOOLS.has(input.tool)) return
      for (const name of ["filePath", "path"])
        if (typeof given?.[name] === "string") given[name] = (await straight(given[name])) ?? given[name]
    },
    "shell.env": async (input, output) => {
      output.env.OPENCODE_SERVER_PASSWORD = ""
      if (process.env.BUN_TMPDIR === process.env.CLEW_OPENCODE_SESSIONS) output.env.BUN_TMPDIR = tmpdir()
      let session = input.sessionID
      while (parents.has(session)) session = parents.get(session)
      try {
        const kept = await readFile(join(process.env.CLEW_OPENCODE_SESSIONS, `${session}.json`))
        Object.assign(output.env, JSON.parse(kept))
      } catch (fault) {
        if (fault.code !== "ENOENT") throw fault
      }
    },
  }
}
