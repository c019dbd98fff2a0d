// The page's interface to the model in this folder. A worker runs it, so that the page stays responsive.

import { Refusal } from "./refusal.js";

const worker = startWorker();
let asked = null; // the pending request: a page shows one answer at a time
let numAsked = 0;

worker.onmessage = ({ data: { number, results, refusal, progress } }) => {
  if (number !== asked?.number) return; // the input has changed since
  if (progress) asked.report?.(...progress);
  else if (refusal) asked.reject(new Refusal(refusal.code, refusal.message));
  else asked.resolve(results);
};
worker.onerror = (event) => {
  event.preventDefault();
  asked?.reject(new Refusal("not_loaded", event.message ?? ""));
};

export async function listModels() {
  return { models: await send("load", {}) };
}

/** The results for a body of `inputs` and settings; `report` receives the number of the current part, and of all. */
export async function ask(fn, body, _, report) {
  return send(fn, body, report);
}

function send(fn, body, report) {
  asked?.reject(new DOMException("another question was asked", "AbortError"));
  return new Promise((resolve, reject) => {
    numAsked += 1;
    asked = { number: numAsked, resolve, reject, report };
    worker.postMessage({ number: numAsked, fn, body });
  });
}

function startWorker() {
  // started from a blob URL, so that the page's content security policy also applies to the worker
  const address = new URL("./worker.js", import.meta.url).href;
  const blob = new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" });
  return new Worker(URL.createObjectURL(blob), { type: "module" });
}
