// Resolves links in the paths of tool calls. OpenCode decides by the text of a path whether it must ask, and then
// follows links. So its tools get the path that a link leads to, if that is outside of the directory, or is
// configuration of OpenCode or git (the same names as in modes.py).
import { readlink, realpath } from "node:fs/promises"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"

const HEAD = /^\*\*\* (Add File|Update File|Delete File|Move to):(.*)$/
const CONFIGURATION = [".opencode", "opencode.json", "opencode.jsonc", "tui.json", "tui.jsonc", ".git"]

// Of a path that does not exist yet, the existing part is resolved.
export const resolved = async (path, links = 40) => {
  try {
    return await realpath(path)
  } catch (fault) {
    if (fault.code !== "ENOENT") throw fault
  }
  const parent = await resolved(dirname(path), links)
  const target = await readlink(path).catch(() => undefined)
  if (target === undefined) return join(parent, basename(path))
  if (links === 0) throw new Error(`${path} leads nowhere`)
  return resolved(resolve(parent, target), links - 1)
}

export const within = (path, place) => {
  const way = relative(place, path)
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

const isConfiguration = (way) => way.split(sep).some((name) => CONFIGURATION.includes(name))

export const paths = (directory, worktree) => {
  const places = worktree && worktree !== "/" ? [directory, worktree] : [directory]

  // The name under which a person is asked for that file, if it is configuration of OpenCode or git.
  const configuration = async (real) => {
    for (const place of places) {
      const held = await resolved(place)
      if (within(real, held) && isConfiguration(relative(held, real))) return join(place, relative(held, real))
      for (const name of CONFIGURATION) {
        const there = await resolved(join(place, name))
        if (within(real, there)) return join(place, name, relative(there, real))
      }
    }
    return undefined
  }

  // The path that it really is, if its text does not say so. Removing a file removes the link itself, so then only its
  // directory is resolved.
  const straight = async (path, removes = false) => {
    const named = resolve(directory, path)
    if (!places.some((place) => within(named, place))) return undefined
    const says = places.some((place) => within(named, place) && isConfiguration(relative(place, named)))
    const real = removes ? join(await resolved(dirname(named)), basename(named)) : await resolved(named)
    const held = await Promise.all(places.map((place) => resolved(place)))
    return held.some((place) => within(real, place)) ? says ? undefined : configuration(real) : real
  }

  const patched = async (patch) => {
    const lines = patch.split("\n")
    for (const [at, line] of lines.entries()) {
      const [, what, rest] = HEAD.exec(line) ?? []
      if (what === undefined) continue
      const path = rest.trim()
      const moves = what === "Update File" && lines[at + 1]?.startsWith("*** Move to:")
      const real = await straight(path, moves || what === "Delete File")
      // OpenCode does not ask for the target of a move, unless it is outside of the directory.
      if (what === "Move to" && (await configuration(await resolved(resolve(directory, path)))) !== undefined)
        throw new Error(`${path} is configuration of OpenCode or git; nothing is moved there.`)
      if (real !== undefined) lines[at] = `*** ${what}: ${real}`
      else if (moves && (await straight(path)) !== undefined) throw new Error(`${path} leads out of the directory.`)
    }
    return lines.join("\n")
  }

  return { straight, patched }
}
