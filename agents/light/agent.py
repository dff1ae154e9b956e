#!/usr/bin/python3
"""A small agent: bash and the retrieval tools in a loop of chat completions. Prompt on stdin, one JSON event a line."""
import json, os, signal, subprocess, sys, urllib.request

SYSTEM = ("You are a careful clerk working on a case file. Its pages lie in the folder md of your working directory. Use "
          "the tools to look things up before you state them, and end with a plain answer that calls no tool.")
BASH = {"type": "object", "required": ["command"], "properties": {"command": {"type": "string", "description": "Command for bash"}}}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # both services are on the loopback

def emit(kind, **rest):
    print(json.dumps({"type": kind, **rest}), flush=True)

def post(url, body, accept="application/json, text/event-stream"):
    headers = {"Content-Type": "application/json", "Accept": accept}
    with DIRECT.open(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=900) as answer:
        text = answer.read().decode()
    return json.loads(next((line[5:] for line in text.splitlines() if line.startswith("data:")), text))

def mcp(method, params):
    return post(os.environ["GSJ_MCP_URL"], {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})["result"]

def declared(part):  # a schema without what says nothing to a model
    if isinstance(part, dict):
        return {key: declared(value) for key, value in part.items() if key not in ("title", "default")}
    return [declared(value) for value in part] if isinstance(part, list) else "number" if part == "integer" else part

def function(name, description, parameters):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters, "strict": False}}

def bash(command, seconds=120, shown=16_000):
    env = {name: value for name, value in os.environ.items() if not name.startswith("GSJ_")}
    with subprocess.Popen(["/usr/bin/bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=env, start_new_session=True) as child:
        try:
            output, note = child.communicate(timeout=seconds)[0], ""
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, note = child.communicate()[0], f"\n[stopped after {seconds} s]"
    return output.decode(errors="replace")[-shown:] + (note or (f"\n[exit code {child.returncode}]" if child.returncode else ""))

def run_tool(name, arguments, offered):
    try:
        if name not in offered:
            return f"There is no tool named {name}."
        given = json.loads(arguments or "{}")
        if name == "bash":
            return bash(given["command"])
        result = mcp("tools/call", {"name": name.removeprefix("mcp_gsj_"), "arguments": given})
        return "\n".join(block["text"] for block in result["content"])
    except Exception as error:  # whatever a call meets is the model's to read
        return f"The call failed: {type(error).__name__}: {error}"

def main():
    tools = {"bash": function("bash", "Run a bash command in the working directory and read its output.", BASH)}
    for tool in mcp("tools/list", {})["tools"]:
        name = "mcp_gsj_" + tool["name"]
        tools[name] = function(name, tool["description"], declared(tool["inputSchema"]))
    offered = {name: tools[name] for name in os.environ["GSJ_TOOLS"].split(",")} if os.environ.get("GSJ_TOOLS") else tools
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": sys.stdin.read()}]
    while True:  # turns, tokens and time are limited by the gateway
        request = {"model": os.environ["GSJ_MODEL"], "messages": messages, "tools": list(offered.values()), "stream": False,
                   "max_completion_tokens": int(os.environ.get("GSJ_MAX_TOKENS", "4096")),
                   "chat_template_kwargs": {"enable_thinking": os.environ.get("GSJ_THINKING", "off") != "off"}}
        choice = post(os.environ["GSJ_MODEL_BASE_URL"] + "/chat/completions", request, "application/json")["choices"][0]
        said = {key: value for key in ("content", "reasoning_content", "tool_calls") if (value := choice["message"].get(key))}
        messages.append({"role": "assistant", "content": None, **said})
        stop = "toolUse" if "tool_calls" in said else "length" if choice.get("finish_reason") == "length" else "stop"
        emit("message_end", message={**messages[-1], "stopReason": stop})
        for call in said.get("tool_calls", []):
            text = run_tool(call["function"]["name"], call["function"].get("arguments"), offered)
            emit("tool_execution_end", toolCallId=call["id"], toolName=call["function"]["name"], result=text)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        if stop != "toolUse":
            return emit("agent_settled")

try:
    main()
except Exception as error:  # says nothing of the URLs: one of them holds the session's token
    emit("message_end", message={"role": "assistant", "stopReason": "error", "errorMessage": f"{type(error).__name__}: {error}"})
    sys.exit(1)
