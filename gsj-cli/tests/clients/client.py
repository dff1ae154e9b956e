"""Lists and calls the retrieval tools with the official Python client; prints what came as one JSON object.

The address stands in MCP_URL, since it holds a token.
"""
import asyncio
import json
import os

from mcp import Client


def result(answer):
    return {
        "texts": [block.text for block in answer.content],
        "structured": answer.structured_content,
        "is_error": bool(answer.is_error),
    }


async def main():
    async with Client(os.environ["MCP_URL"], read_timeout_seconds=60) as client:
        tools = (await client.list_tools()).tools
        said = {
            "server": client.server_info.name,
            "version": client.protocol_version,
            "tools": [tool.name for tool in tools],
            "schemas": [tool.input_schema["type"] for tool in tools],
            "calls": [result(await client.call_tool(call["name"], call["arguments"])) for call in json.loads(os.environ["MCP_CALLS"])],
            "prompts": len((await client.list_prompts()).prompts),
            "resources": len((await client.list_resources()).resources),
        }
        await client.send_ping()
        print(json.dumps(said))


asyncio.run(main())
