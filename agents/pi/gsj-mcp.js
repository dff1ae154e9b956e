// Gives pi the tools of one MCP server (streamable HTTP), whose URL is in GSJ_MCP_URL.
//
// The tools are listed once, while pi starts: if that fails, the error leaves the factory and pi
// exits before any model call, so that an episode never runs without its retrieval. The schema
// conversion decides the bytes that the model is prompted with, and with them the roster's pinned hash.

const PROTOCOL = "2025-06-18";
const PREFIX = "mcp_gsj_";

/** Keeps what a declaration means to a model: member order type, required, properties, rest; no titles, no defaults. */
function declared(schema) {
  const out = {};
  if (schema.type !== undefined) out.type = schema.type === "integer" ? "number" : schema.type;
  if (schema.required?.length) out.required = schema.required;
  if (schema.properties) {
    out.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, value]) => [name, declared(value)]));
  }
  if (schema.anyOf) out.anyOf = schema.anyOf.map(declared);
  if (schema.items) out.items = declared(schema.items);
  if (schema.enum) out.enum = schema.enum;
  if (schema.description) out.description = schema.description;
  return out;
}

/** The JSON-RPC messages of an answer, which a server may send as one JSON body or as events. */
function messages(type, text) {
  if (!type.includes("text/event-stream")) return text.trim() === "" ? [] : [JSON.parse(text)].flat();
  return text
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map((event) => event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, "")).join("\n"))
    .filter((data) => data !== "")
    .flatMap((data) => JSON.parse(data));
}

class Client {
  #url;
  #session;
  #next = 1;

  constructor(url) {
    this.#url = url;
  }

  async #post(message, signal) {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": PROTOCOL,
        ...(this.#session && { "mcp-session-id": this.#session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      signal,
    });
    const text = await response.text();
    // The URL holds a token: no message of ours repeats it.
    if (!response.ok) throw new Error(`${message.method}: the retrieval service answered ${response.status}: ${text.slice(0, 200)}`);
    this.#session = response.headers.get("mcp-session-id") ?? this.#session;
    return messages(response.headers.get("content-type") ?? "", text);
  }

  async call(method, params, signal) {
    const id = this.#next++;
    const answer = (await this.#post({ id, method, params }, signal)).find((message) => message.id === id);
    if (!answer) throw new Error(`${method}: the retrieval service sent no answer`);
    if (answer.error) throw new Error(`${method}: ${answer.error.message ?? "error without a message"}`);
    return answer.result;
  }

  async open() {
    const clientInfo = { name: "gsj-mcp", version: "1" };
    await this.call("initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo });
    await this.#post({ method: "notifications/initialized" });
    const tools = [];
    let cursor;
    do {
      const page = await this.call("tools/list", cursor ? { cursor } : {});
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor);
    return tools;
  }
}

function text(parts) {
  return (parts ?? []).filter((part) => part.type === "text").map((part) => ({ type: "text", text: part.text }));
}

export default async function (pi) {
  const url = process.env.GSJ_MCP_URL;
  if (!url) throw new Error("GSJ_MCP_URL is not set: it names the retrieval service of this session");
  // Where the model's port is chosen at start (no sandbox), the environment has it and models.json can't.
  if (process.env.GSJ_MODEL_URL) pi.registerProvider("gsj", { baseUrl: process.env.GSJ_MODEL_URL });

  const client = new Client(url);
  for (const tool of await client.open()) {
    const name = PREFIX + tool.name;
    pi.registerTool({
      name,
      label: name,
      description: tool.description ?? "",
      promptSnippet: tool.description ?? "",
      parameters: declared(tool.inputSchema),
      async execute(_id, params, signal) {
        const result = await client.call("tools/call", { name: tool.name, arguments: params ?? {} }, signal);
        const content = text(result.content);
        // Only a thrown error reaches the model marked as one.
        if (result.isError) throw new Error(content.map((part) => part.text).join("\n") || `${name} failed`);
        return { content, details: {} };
      },
    });
  }
}
