// A model service on loopback that speaks OpenAI's Chat Completions and says what the test wants said.

import { createServer } from "node:http";

const PIECE = 12;

const chunk = (delta, finish = null) => ({
  id: "chatcmpl-lab",
  object: "chat.completion.chunk",
  created: 1,
  model: "lab",
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const pieces = (text) => text.match(new RegExp(`[\\s\\S]{1,${PIECE}}`, "gu")) ?? [];

/** The events of one reply: text bit by bit, then the tool calls, whose arguments come in bits too. */
function* eventsOf({ text = "", calls = [] }) {
  yield chunk({ role: "assistant", content: "" });
  for (const piece of pieces(text)) yield chunk({ content: piece });
  for (const [index, { name, args }] of calls.entries()) {
    const call = { index, id: `call_${index}_${name}`, type: "function", function: { name, arguments: "" } };
    yield chunk({ tool_calls: [call] });
    for (const piece of pieces(JSON.stringify(args))) {
      yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  yield chunk({}, calls.length > 0 ? "tool_calls" : "stop");
  const usage = { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280 };
  yield { ...chunk({}), choices: [], usage: { ...usage, prompt_tokens_details: { cached_tokens: 900 } } };
}

const bodyOf = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8") || "{}");
};

async function reply(response, turn, gap) {
  if (turn.status) {
    response.writeHead(turn.status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "no", code: "invalid_api_key" } }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const event of eventsOf(turn)) {
    if (response.destroyed) return;
    response.write(`data: ${JSON.stringify(event)}\n\n`);
    if (gap) await new Promise((resolve) => setTimeout(resolve, gap));
  }
  response.end("data: [DONE]\n\n");
}

/**
 * Starts the service. `turns`: what it answers, one after the other: `{text, calls: [{name, args}]}`, `{status}` (an HTTP error) or a function from
 * the request's body to that; after the last it says "Done.". `gap`: milliseconds between events.
 * Answers with `{baseUrl, requests, env, stop}`; `env` connects Daiku to it.
 */
export async function startModel(turns, { gap = 5 } = {}) {
  const waiting = [...turns];
  const requests = [];
  const server = createServer(async (request, response) => {
    if (request.url.endsWith("/models")) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ object: "list", data: [{ id: "lab", object: "model", created: 1, owned_by: "lab" }] }),
      );
      return;
    }
    const body = await bodyOf(request);
    requests.push(body);
    const turn = waiting.shift() ?? { text: "Done." };
    await reply(response, typeof turn === "function" ? turn(body) : turn, gap);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${server.address().port}/v1`;
  const stop = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  const env = {
    DAIKU_LLM__PROVIDER: "openai",
    DAIKU_LLM__MODEL: "openai/lab",
    OPENAI_BASE_URL: baseUrl,
    OPENAI_API_KEY: "lab-key",
    NO_PROXY: "127.0.0.1,localhost",
  };
  return { baseUrl, requests, env, stop };
}
