// What a shell of this server gets besides the server's own environment: the variables of its session, which Clew keeps
// in one file for each, and no password, with which an agent could lift its own permissions.
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const parents = new Map()

export const Clew = async () => ({
  event: async ({ event }) => {
    const session = event.type === "session.created" ? event.properties.info : undefined
    if (session?.parentID) parents.set(session.id, session.parentID)
  },
  "shell.env": async (input, output) => {
    output.env.OPENCODE_SERVER_PASSWORD = ""
    if (process.env.BUN_TMPDIR === process.env.CLEW_OPENCODE_SESSIONS) output.env.BUN_TMPDIR = tmpdir()
    let session = input.sessionID
    while (parents.has(session)) session = parents.get(session)
    try {
      Object.assign(output.env, JSON.parse(await readFile(join(process.env.CLEW_OPENCODE_SESSIONS, `${session}.json`))))
    } catch (fault) {
      if (fault.code !== "ENOENT") throw fault
    }
  },
})
