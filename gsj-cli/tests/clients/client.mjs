// Lists and calls the retrieval tools with the official TypeScript client; prints what came as one JSON object.
//
// The address stands in MCP_URL, since it holds a token; MCP_SDK is the folder of the package.
import { pathToFileURL } from "node:url";

const sdk = (file) => import(pathToFileURL(`${process.env.MCP_SDK}/dist/esm/${file}`));
const { Client } = await sdk("client/index.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");

const client = new Client({ name: "test", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL));
await client.connect(transport);
const { tools } = await client.listTools();
const calls = [];
for (const call of JSON.parse(process.env.MCP_CALLS)) {
  const answer = await client.callTool(call);
  calls.push({
    texts: answer.content.map((block) => block.text),
    structured: answer.structuredContent ?? null,
    is_error: Boolean(answer.isError),
  });
}
const said = {
  server: client.getServerVersion().name,
  version: transport.protocolVersion,
  tools: tools.map((tool) => tool.name),
  schemas: tools.map((tool) => tool.inputSchema.type),
  calls,
  prompts: (await client.listPrompts()).prompts.length,
  resources: (await client.listResources()).resources.length,
};
await client.ping();
console.log(JSON.stringify(said));
await client.close();
