// Vercel AI SDK by its provider for OpenAI-compatible servers: text, stream, tools that it runs itself, objects.

import { ABOUT, WEATHER, Unjudged, expect, take } from "./stepping.mjs";

async function given(task, step, room = 64) {
  const { createOpenAICompatible } = await task.load("@ai-sdk/openai-compatible");
  const provider = createOpenAICompatible({
    name: "vllm", baseURL: task.v1, apiKey: task.key, includeUsage: true, supportsStructuredOutputs: true,
  });
  return { model: provider(task.model), prompt: task.ask(step), maxOutputTokens: room, temperature: 0, maxRetries: 0 };
}

async function generate(task) {
  const { generateText } = await task.load("ai");
  const answer = await generateText(await given(task, "chat"));
  task.same("chat", answer.text, answer.finishReason);
  expect(answer.usage.totalTokens > 0, `usage ${JSON.stringify(answer.usage)}`);
}

async function stream(task) {
  const { streamText } = await task.load("ai");
  let caught = null;
  const answer = streamText({ ...(await given(task, "chat")), onError: ({ error }) => { caught = error; } });
  let text = "";
  for await (const piece of answer.textStream) text += piece;
  if (caught) throw caught;
  task.same("chat", text, await answer.finishReason);
  expect((await answer.usage).totalTokens > 0, "the stream ended without the usage that was asked for");
}

// A conversation with a tool that the SDK runs itself, and what it was called with.
async function equipped(task) {
  const { jsonSchema, stepCountIs, isStepCount, tool } = await task.load("ai");
  const called = [];
  const weather = tool({
    description: ABOUT,
    inputSchema: jsonSchema(WEATHER),
    execute: async (input) => { called.push(input); return "Sunny."; },
  });
  const stop = (stepCountIs ?? isStepCount)(task.scripted ? 4 : 1);
  const wish = { ...(await given(task, "call", 400)), tools: { weather }, toolChoice: task.choice, stopWhen: stop };
  return [wish, called];
}

async function tools(task) {
  const { generateText } = await task.load("ai");
  const [wish, called] = await equipped(task);
  const answer = await generateText(wish);
  expect(called.length, `the tool was not called: ${JSON.stringify(answer.text)}`);
  task.called("call", "weather", called[0]);
  if (task.scripted) task.same("call", answer.text);
}

async function streamTools(task) {
  const { streamText } = await task.load("ai");
  const [wish, called] = await equipped(task);
  let caught = null;
  const answer = streamText({ ...wish, onError: ({ error }) => { caught = error; } });
  const text = await answer.text;
  if (caught) throw caught;
  expect(called.length, `the tool was not called: ${JSON.stringify(text)}`);
  task.called("call", "weather", called[0]);
  if (task.scripted) task.same("call", text);
}

async function object(task) {
  const ai = await task.load("ai");
  const schema = ai.jsonSchema({
    type: "object",
    properties: { answer: { enum: ["yes", "no"] }, sure: { type: "boolean" } },
    required: ["answer", "sure"],
    additionalProperties: false,
  });
  const answer = await ai.generateText({ ...(await given(task, "json", 400)), output: ai.Output.object({ schema }) });
  if (answer.finishReason === "length") throw new Unjudged("the model did not end its JSON");
  expect(typeof answer.output?.sure === "boolean", `the client gives ${JSON.stringify(answer.output)}`);
}

await take("ai", { generate, stream, tools, "stream-tools": streamTools, object });
