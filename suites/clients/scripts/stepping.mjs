// What every script for Node shares: its task from standard input, its steps, one JSON object at the end.
// The same as stepping.py; packages come from the folder that the task names.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

export class Unjudged extends Error {}

export const WEATHER = {
  type: "object",
  properties: { city: { type: "string", maxLength: 12 } },
  required: ["city"],
  additionalProperties: false,
};
export const ABOUT = "The weather of a city.";

export function expect(holds, words) {
  if (!holds) throw new Error(words);
}

export class Task {
  constructor(values) {
    Object.assign(this, values);
    this.v1 = `${this.url}/v1`;
    this.scripted = Object.keys(this.says).length > 0;
    this.choice = this.scripted ? "auto" : "required";
    this.require = createRequire(pathToFileURL(`${this.program}/package.json`));
  }

  async load(name) {
    return import(pathToFileURL(this.require.resolve(name)));
  }

  ask(step) {
    return `Say one short sentence. [[say:${step}]]`;
  }

  same(step, text, ended = "stop") {
    if (this.says[step]) {
      const said = this.says[step].at(-1).content;
      expect((text ?? "").trim() === said, `the client gives ${JSON.stringify(text)}, the model said ${JSON.stringify(said)}`);
      return;
    }
    if (!text && ["length", "max_tokens", "incomplete"].includes(ended)) {
      throw new Unjudged("the answer ended at max_tokens before its text began");
    }
    expect(typeof text === "string" && text, `the client gives ${JSON.stringify(text)} for a text`);
  }

  called(step, name, given) {
    const found = typeof given === "string" ? JSON.parse(given) : given;
    expect(name === "weather", `the client gives a call of ${name}, weather was offered`);
    if (this.says[step]) {
      const said = JSON.stringify(this.says[step][0].calls[0].arguments);
      expect(JSON.stringify(found) === said, `the client gives the arguments ${JSON.stringify(found)}, the model wrote ${said}`);
      return;
    }
    expect(typeof found?.city === "string", `the arguments ${JSON.stringify(found)} are not those of the schema`);
  }
}

export async function take(name, steps) {
  const task = new Task(JSON.parse(readFileSync(0, "utf-8")));
  const found = { version: "", missing: "", steps: {} };
  try {
    await task.load(name);
    found.version = JSON.parse(readFileSync(`${task.program}/node_modules/${name}/package.json`, "utf-8")).version;
  } catch (error) {
    found.missing = `${name} cannot be imported from ${task.program}/node_modules (${error.message.split("\n")[0]})`;
  }
  for (const step of found.missing ? [] : task.steps) {
    found.steps[step] = await taken(steps[step], task);
  }
  console.log(`\n${JSON.stringify(found)}`);
}

async function taken(step, task) {
  const began = Date.now();
  let passed = true;
  let error = "";
  try {
    await step(task);
  } catch (why) {
    passed = why instanceof Unjudged ? null : false;
    error = `${why.name === "Error" ? "" : `${why.name}: `}${why.message}`.slice(0, 600);
  }
  return { passed, error, began: began / 1000, seconds: (Date.now() - began) / 1000 };
}
