// Overwrites the password in the server's initial environment. Every process of the same user, also a command of the
// agent, could read it from /proc. OpenCode has read it by then; it takes its password only from the environment.
import { open, readFile } from "node:fs/promises"

const STARTS = 47 // env_start, counted from the field after the program's name in /proc/self/stat.

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
    // Without these files, or without access to them, the password stays.
  }
}
