// Calls memory-kb at what happens in a session. `memory-kb uninstall opencode` takes it out again.
import { spawn } from "node:child_process"

const COMMAND = [] // filled in by `install`

export const MemoryKB = async ({ directory }) => {
  const starts = new Map() // what each session started with, and for which model
  const answers = new Map() // what the model said last
  const subagents = new Set()

  const calls = new Map() // the last call of each session: they come one after another, as OpenCode does not wait for all

  const call = (event, sessionID, said = {}) => {
    const next = (calls.get(sessionID) ?? Promise.resolve()).then(() => run(event, sessionID, said))
    calls.set(sessionID, next)
    return next
  }

  const run = (event, sessionID, said) =>
    new Promise((resolve) => {
      const words = COMMAND.map((word) => (word === "EVENT" ? event : word))
      const child = spawn(words[0], words.slice(1), { cwd: directory, stdio: ["pipe", "pipe", "ignore"], timeout: 10_000 })
      let told = ""
      child.stdout.on("data", (data) => (told += data))
      child.on("error", () => resolve(""))
      child.on("close", () => {
        try {
          resolve(JSON.parse(told).hookSpecificOutput.additionalContext ?? "")
        } catch {
          resolve("")
        }
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ session_id: sessionID, cwd: directory, ...said }))
    })

  const end = async (sessionID) => {
    if (starts.delete(sessionID)) await call("session-end", sessionID)
  }

  return {
    event: async ({ event: { type, properties } }) => {
      const { sessionID, info, part } = properties ?? {}
      if (type === "session.created" && info?.parentID) subagents.add(info.id)
      if (type === "session.deleted") await end(info?.id ?? sessionID)
      if (!starts.has(sessionID ?? part?.sessionID)) return
      if (type === "message.part.updated" && part.type === "text" && part.time?.end) answers.set(part.sessionID, part.text)
      if (type === "session.idle") await call("stop", sessionID, { last_assistant_message: answers.get(sessionID) ?? "" })
      if (type === "session.compacted")
        starts.get(sessionID).text = await call("session-start", sessionID, { source: "compact" })
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (subagents.has(sessionID)) return
      const model = message.model?.modelID
      if (!starts.has(sessionID))
        starts.set(sessionID, { text: await call("session-start", sessionID, { source: "startup" }) })
      starts.get(sessionID).model = model
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic)
      if (!typed.length) return
      // `opencode run` puts what it is given between quotes.
      const prompt = typed.map((part) => part.text).join("\n").replace(/^"([^]*)"$/, "$1")
      const text = await call("prompt", sessionID, { prompt })
      if (text) parts.push({ ...typed[0], id: `${typed.at(-1).id}m`, synthetic: true, text })
    },
    "experimental.chat.system.transform": async ({ sessionID, model }, output) => {
      const start = starts.get(sessionID)
      if (start?.text && start.model === model?.id) output.system.push(start.text)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      if (!starts.has(sessionID)) return
      const text = await call("tool", sessionID, {
        tool_name: tool,
        tool_use_id: callID,
        tool_input: args?.filePath ? { ...args, file_path: args.filePath } : args,
        tool_response: { output: output.output, exitCode: output.metadata?.exit },
      })
      if (text) output.output += `\n\n${text}`
    },
    dispose: async () => {
      await Promise.all([...starts.keys()].map(end))
    },
  }
}
