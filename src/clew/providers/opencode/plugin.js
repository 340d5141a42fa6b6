// Two things that OpenCode does not do by itself.
//
// A shell of this server gets, besides the server's own environment, the variables of its session, which Clew keeps in
// one file for each, and no password, with which an agent could lift its own permissions.
//
// A tool gets the path that a link really leads to, when that is beyond the directory: OpenCode goes by the text of a
// path when it decides whether it must ask, and then follows the link.
import { readFile, readlink, realpath } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"

const TOOLS = new Set(["read", "write", "edit", "multiedit", "glob", "grep", "list", "lsp"])
const HEAD = /^\*\*\* (Add File|Update File|Delete File|Move to):(.*)$/

const parents = new Map()

// Where a path leads; what is not there yet is where the rest of it leads.
const led = async (path, links = 40) => {
  try {
    return await realpath(path)
  } catch (fault) {
    if (fault.code !== "ENOENT") throw fault
  }
  const parent = await led(dirname(path), links)
  const target = await readlink(path).catch(() => undefined)
  if (target === undefined) return join(parent, basename(path))
  if (links === 0) throw new Error(`${path} leads nowhere`)
  return led(resolve(parent, target), links - 1)
}

const within = (path, place) => {
  const way = relative(place, path)
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

export const Clew = async ({ directory, worktree }) => {
  const places = worktree && worktree !== "/" ? [directory, worktree] : [directory]

  // The path that it really is, when it looks like one of these places and is none. What removes a file removes the
  // link itself, so that is followed only as far as its directory.
  const beyond = async (path, removes = false) => {
    const named = resolve(directory, path)
    if (!places.some((place) => within(named, place))) return undefined
    const real = removes ? join(await led(dirname(named)), basename(named)) : await led(named)
    const held = await Promise.all(places.map((place) => led(place)))
    return held.some((place) => within(real, place)) ? undefined : real
  }

  const straight = async (patch) => {
    const lines = patch.split("\n")
    for (const [at, line] of lines.entries()) {
      const [, what, rest] = HEAD.exec(line) ?? []
      if (what === undefined) continue
      const path = rest.trim()
      const moves = what === "Update File" && lines[at + 1]?.startsWith("*** Move to:")
      const real = await beyond(path, moves || what === "Delete File")
      if (real !== undefined) lines[at] = `*** ${what}: ${real}`
      else if (moves && (await beyond(path)) !== undefined) throw new Error(`${path} leads out of the directory.`)
    }
    return lines.join("\n")
  }

  return {
    event: async ({ event }) => {
      const session = event.type === "session.created" ? event.properties.info : undefined
      if (session?.parentID) parents.set(session.id, session.parentID)
    },
    "tool.execute.before": async (input, output) => {
      const given = output.args
      if (input.tool === "apply_patch" && typeof given?.patchText === "string")
        given.patchText = await straight(given.patchText)
      if (!TOOLS.has(input.tool)) return
      for (const name of ["filePath", "path"])
        if (typeof given?.[name] === "string") given[name] = (await beyond(given[name])) ?? given[name]
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
