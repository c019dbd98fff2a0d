// Runs next to the page: loads the model and answers one request at a time; of waiting requests, only the newest.

import { buildFunctions } from "./functions.js";
import { loadModel } from "./model.js";
import { Refusal } from "./refusal.js";

const loading = loadModel().then(
  (model) => model,
  (error) => new Refusal("not_loaded", String(error)),
);
let newest = 0;
let before = loading;

onmessage = ({ data }) => {
  newest = data.number;
  before = before.then(() => answer(data));
};

async function answer({ number, fn, body }) {
  if (number < newest) return;
  try {
    const model = await loading;
    if (model instanceof Refusal) throw model;
    postMessage({ number, results: await compute(model, number, fn, body) });
  } catch (error) {
    if (number === newest) postMessage({ number, refusal: { code: error.code ?? "failed", message: error.message } });
  }
}

async function compute(model, number, fn, body) {
  if (fn === "load") return [model.facts.model];
  const read = async (...sequence) => {
    await new Promise((resume) => setTimeout(resume)); // let a newer request arrive: a long passage takes time
    if (number < newest) throw new Refusal("superseded", "a newer question was asked");
    return model.read(...sequence);
  };
  const report = (...progress) => postMessage({ number, progress });
  const answerOne = buildFunctions(model, read, report)[fn];
  const results = [];
  for (const input of body.inputs) results.push(await answerOne(input, body));
  return results;
}
