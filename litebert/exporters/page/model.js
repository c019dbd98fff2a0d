// The model in the browser: onnxruntime-web runs model.onnx, and no data leaves the page.

import * as ort from "./runtime/ort.wasm.min.mjs";
import { buildTokenizer } from "./tokenizer.js";

const NEVER = 2 ** 31; // more than any model's number of layers: no early exit

export async function loadModel() {
  // threads need a cross-origin isolated page (headers COOP and COEP), which plain static servers do not provide
  ort.env.wasm.numThreads = globalThis.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency) : 1;
  ort.env.wasm.wasmPaths = address("runtime/");
  const [facts, vocabulary, session] = await Promise.all([
    fetchJson("facts.json"),
    fetchJson("vocabulary.json"),
    ort.InferenceSession.create(address("model.onnx")),
  ]);

  /** The outputs for one sequence, by name; `answerMask` is 1 for tokens that an answer may contain. */
  async function read({ ids, types, answerMask }, patience = 0) {
    const row = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
    const feeds = { input_ids: row(ids), token_type_ids: row(types), attention_mask: row(ids.map(() => 1)) };
    if (answerMask) feeds.answer_mask = row(answerMask);
    if (facts.model.has_exits) feeds.patience = new ort.Tensor("int64", BigInt64Array.of(BigInt(patience || NEVER)), []);
    return session.run(feeds);
  }

  return { facts, tokenizer: buildTokenizer(vocabulary), read };
}

const address = (name) => new URL(`./${name}`, import.meta.url).href;

async function fetchJson(name) {
  const response = await fetch(address(name));
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response.json();
}
