// Speaks to `daiku lsp` with VS Code's own JSON-RPC library. Arguments: command…; DAIKU_TEST_WORKSPACE is the folder.
// Prints one JSON object with what it saw.
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import rpc from "vscode-jsonrpc/node";

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(child.stdout),
  new rpc.StreamMessageWriter(child.stdin),
);
const chunks = [];
const progress = new rpc.ProgressType();
connection.onProgress(progress, "run-1", (chunk) => chunks.push(chunk));
connection.onNotification("window/showMessage", () => {});
connection.listen();

const refused = async (method, params) => {
  try {
    return { result: await connection.sendRequest(method, params) };
  } catch (error) {
    return { code: error.code, data: error.data };
  }
};

const early = await refused("daiku/tools", {});
const hello = await connection.sendRequest("initialize", {
  processId: process.pid,
  rootUri: null,
  workspaceFolders: [{ uri: pathToFileURL(process.env.DAIKU_TEST_WORKSPACE).href, name: "w" }],
  capabilities: {},
  initializationOptions: { settings: { llm: { provider: "scripted" } }, client: { approvals: true } },
});
await connection.sendNotification("initialized", {});
const result = await connection.sendRequest("daiku/chat", {
  text: "Hi",
  model: "scripted/script.jsonl",
  partialResultToken: "run-1",
});
const source = new rpc.CancellationTokenSource();
const slow = connection
  .sendRequest("daiku/chat", { text: "Hi", model: "scripted/slow.jsonl" }, source.token)
  .then(() => 0, (error) => error.code);
setTimeout(() => source.cancel(), 300);
const cancelled = await slow;
const wrong = await refused("daiku/chat", { text: 5, mode: "x" });
const unknown = await refused("daiku/nothing", {});
await connection.sendRequest("shutdown");
await connection.sendNotification("exit");
const code = await exited;
console.log(JSON.stringify({ early, hello, result, chunks, cancelled, wrong, unknown, code }));
