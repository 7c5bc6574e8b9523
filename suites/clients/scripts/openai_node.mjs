// openai for Node: whole, streamed, with tools by its runner's stream, and the Responses interface.

import { ABOUT, WEATHER, expect, take } from "./stepping.mjs";

const TOOL = { type: "function", function: { name: "weather", description: ABOUT, parameters: WEATHER } };

async function client(task) {
  const { default: OpenAI } = await task.load("openai");
  return new (OpenAI.OpenAI ?? OpenAI)({ baseURL: task.v1, apiKey: task.key, maxRetries: 0, timeout: 100_000 });
}

function asked(task, step, room = 64) {
  return { model: task.model, messages: [{ role: "user", content: task.ask(step) }], max_tokens: room, temperature: 0 };
}

async function models(task) {
  const ids = [];
  for await (const one of (await client(task)).models.list()) ids.push(one.id);
  expect(ids.includes(task.model), `models.list() gives ${ids} without ${task.model}`);
}

async function chat(task) {
  const answer = await (await client(task)).chat.completions.create(asked(task, "chat"));
  const choice = answer.choices[0];
  task.same("chat", choice.message.content, choice.finish_reason);
  const used = answer.usage;
  expect(used.total_tokens === used.prompt_tokens + used.completion_tokens, `usage ${JSON.stringify(used)}`);
}

async function stream(task) {
  const wish = { ...asked(task, "chat"), stream: true, stream_options: { include_usage: true } };
  let [text, ended, used] = ["", null, null];
  for await (const chunk of await (await client(task)).chat.completions.create(wish)) {
    text += chunk.choices[0]?.delta?.content ?? "";
    ended = chunk.choices[0]?.finish_reason ?? ended;
    used = chunk.usage ?? used;
  }
  task.same("chat", text, ended);
  expect(ended, "no chunk told why the stream ended");
  expect(used, "no chunk brought the usage that was asked for");
}

async function tools(task) {
  const one = await client(task);
  const conversation = { ...asked(task, "call", 400), tools: [TOOL] };
  const answer = await one.chat.completions.create({ ...conversation, tool_choice: task.choice });
  const message = answer.choices[0].message;
  expect(message.tool_calls?.length, `no call: ${message.content}`);
  const call = message.tool_calls[0];
  task.called("call", call.function.name, call.function.arguments);
  conversation.messages.push(message, { role: "tool", tool_call_id: call.id, content: "Sunny." });
  const after = await one.chat.completions.create(conversation);
  if (task.scripted) task.same("call", after.choices[0].message.content);
}

async function streamTools(task) {
  const wish = { ...asked(task, "call", 400), tools: [TOOL], tool_choice: task.choice };
  const final = await (await client(task)).chat.completions.stream(wish).finalChatCompletion();
  const calls = final.choices[0].message.tool_calls;
  expect(calls?.length, "the stream brought no call");
  task.called("call", calls[0].function.name, calls[0].function.arguments);
}

async function responses(task) {
  const wish = { model: task.model, input: task.ask("chat"), max_output_tokens: 64, temperature: 0 };
  const answer = await (await client(task)).responses.create(wish);
  task.same("chat", answer.output_text, answer.status);
}

async function refused(task) {
  const { default: OpenAI } = await task.load("openai");
  let caught = null;
  try {
    await (await client(task)).chat.completions.create({ ...asked(task, "chat"), max_tokens: -1 });
  } catch (error) {
    caught = error;
  }
  expect(caught, "max_tokens = -1 was answered, and no BadRequestError raised");
  expect(caught instanceof OpenAI.BadRequestError, `max_tokens = -1 raised ${caught.name}: ${caught.message}`);
  expect(caught.error?.message, `the error has no message that the SDK could read: ${caught.message}`);
}

await take("openai", { models, chat, stream, tools, "stream-tools": streamTools, responses, refused });
