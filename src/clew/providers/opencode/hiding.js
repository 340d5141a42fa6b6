// The password in the environment that the server was started with. Anybody of the same user reads that from /proc,
// a command of the agent too, so it is written over where the system looks for it. OpenCode has read it by then, and
// has no other way to be told it.
import { open, readFile } from "node:fs/promises"

const STARTS = 47 // Of the fields that follow the name of the program in /proc/self/stat.

export const hide = async (name) => {
  try {
    const stat = await readFile("/proc/self/stat", "latin1")
    const start = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[STARTS])
    const kept = await readFile("/proc/self/environ")
    const at = `\0${kept.toString("latin1")}`.indexOf(`\0${name}=`)
    if (at < 0) return
    const from = at + name.length + 1
    const length = kept.indexOf(0, from) - from
    const memory = await open("/proc/self/mem", "r+")
    try {
      await memory.write(Buffer.alloc(length, "-"), 0, length, start + from)
    } finally {
      await memory.close()
    }
  } catch {
    // Where the system has no such files, or keeps them closed, it stays as it is.
  }
}
