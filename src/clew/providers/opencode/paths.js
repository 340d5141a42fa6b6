// Where a path leads. OpenCode goes by the text of a path when it decides whether it must ask, and then follows links,
// so its tools are given the path that a link really leads to: when that is beyond the directory, and when it is what
// OpenCode and git themselves are told by (the names are those of rules.py).
import { readlink, realpath } from "node:fs/promises"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"

const HEAD = /^\*\*\* (Add File|Update File|Delete File|Move to):(.*)$/
const TOLD = [".opencode", "opencode.json", "opencode.jsonc", "tui.json", "tui.jsonc", ".git"]

// What is not there yet is where the rest of it leads.
export const led = async (path, links = 40) => {
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

export const within = (path, place) => {
  const way = relative(place, path)
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

const isTold = (way) => way.split(sep).some((name) => TOLD.includes(name))

export const paths = (directory, worktree) => {
  const places = worktree && worktree !== "/" ? [directory, worktree] : [directory]

  // The name by which that file is asked for, when it is one that OpenCode or git is told by.
  const told = async (real) => {
    for (const place of places) {
      const held = await led(place)
      if (within(real, held) && isTold(relative(held, real))) return join(place, relative(held, real))
      for (const name of TOLD) {
        const there = await led(join(place, name))
        if (within(real, there)) return join(place, name, relative(there, real))
      }
    }
    return undefined
  }

  // The path that it really is, when its text does not say so. What removes a file removes the link itself, so that is
  // followed only as far as its directory.
  const straight = async (path, removes = false) => {
    const named = resolve(directory, path)
    if (!places.some((place) => within(named, place))) return undefined
    const says = places.some((place) => within(named, place) && isTold(relative(place, named)))
    const real = removes ? join(await led(dirname(named)), basename(named)) : await led(named)
    const held = await Promise.all(places.map((place) => led(place)))
    return held.some((place) => within(real, place)) ? says ? undefined : told(real) : real
  }

  const patched = async (patch) => {
    const lines = patch.split("\n")
    for (const [at, line] of lines.entries()) {
      const [, what, rest] = HEAD.exec(line) ?? []
      if (what === undefined) continue
      const path = rest.trim()
      const moves = what === "Update File" && lines[at + 1]?.startsWith("*** Move to:")
      const real = await straight(path, moves || what === "Delete File")
      // Where a file is moved to is not among what OpenCode asks for, unless it is beyond the directory.
      if (what === "Move to" && (await told(await led(resolve(directory, path)))) !== undefined)
        throw new Error(`${path} is of OpenCode's or git's own configuration; nothing is moved there.`)
      if (real !== undefined) lines[at] = `*** ${what}: ${real}`
      else if (moves && (await straight(path)) !== undefined) throw new Error(`${path} leads out of the directory.`)
    }
    return lines.join("\n")
  }

  return { straight, patched }
}
