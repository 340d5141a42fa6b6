// Called for each prompt just before OpenCode stores it. The file decides, and only one side can create it: if Clew
// did, the prompt was withdrawn and stays out for good; if this plugin did, Clew knows that it comes (plugin.py). The
// ids of Clew's prompts are made in messages.py.
import { closeSync, openSync } from "node:fs"
import { join } from "node:path"

const OURS = /^msg_[0-9a-f]{9}000/

export const pass = (message) => {
  if (!OURS.test(message ?? "")) return
  try {
    closeSync(openSync(join(process.env.CLEW_OPENCODE_SESSIONS, message), "wx", 0o600))
  } catch (fault) {
    throw new Error(fault.code === "EEXIST" ? "Clew has withdrawn this prompt." : `No prompt can pass: ${fault.message}`)
  }
}
