// Clew's prompts pass here just before they are kept. Who makes the file first decides: made by Clew, the prompt was
// withdrawn and stays out for good; made here, Clew knows that it comes (gate.py, naming.py).
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
