// The model in this browser: onnxruntime-web runs model.onnx, and nothing leaves the page.

import * as ort from "./runtime/ort.wasm.min.mjs";
import { MASK, buildTokenizer, join } from "./tokenizer.js";

const NEVER = 2n ** 31n; // a patience that no model has layers for

export async function loadModel() {
  // threads need a page that is isolated from others (headers COOP and COEP); any static server does without
  ort.env.wasm.numThreads = globalThis.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency) : 1;
  ort.env.wasm.wasmPaths = new URL("./runtime/", import.meta.url).href;
  const [facts, vocabulary, session] = await Promise.all([
    fetch("facts.json").then((response) => response.json()),
    fetch("vocabulary.json").then((response) => response.json()),
    ort.InferenceSession.create("model.onnx"),
  ]);
  const tokenizer = buildTokenizer(vocabulary);

  async function run(first, second) {
    const { ids, types } = join(vocabulary, first, second);
    const row = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
    const feeds = { input_ids: row(ids), token_type_ids: row(types), attention_mask: row(ids.map(() => 1)) };
    if (facts.has_exits) feeds.patience = new ort.Tensor("int64", BigInt64Array.of(NEVER), []);
    return (await session.run(feeds)).logits;
  }

  return {
    facts,
    tokenizer,
    // for each [MASK] the best pieces, with their probabilities
    async fillMask(text, count = 5) {
      const ids = tokenizer.encode(text);
      if (!ids.includes(vocabulary.special.mask)) throw new Error("no mask");
      if (ids.length > vocabulary.max_length - 2) throw new Error("too long");
      const logits = await run(ids);
      const width = logits.dims[1];
      return Array.from({ length: logits.dims[0] }, (_, n) => {
        const some = Float64Array.from(logits.data.subarray(n * width, (n + 1) * width));
        for (const id of Object.values(vocabulary.special)) some[id] = -Infinity;
        return rank(softmax(some), count).map(([id, probability]) => ({ piece: tokenizer.piece(id), probability }));
      });
    },
    // how probable it is that the second text follows the first
    async order(text, second) {
      if (!second) throw new Error("no pair");
      return softmax(Float64Array.from((await run(tokenizer.encode(text), tokenizer.encode(second))).data))[0];
    },
    // the labels with their probabilities; or, of a regression, the number
    async classify(text, second) {
      if (facts.num_texts === 2 && !second) throw new Error("no pair");
      const logits = await run(tokenizer.encode(text), second ? tokenizer.encode(second) : undefined);
      if (facts.kind === "regression") {
        const number = logits.data[0] * facts.scale + facts.center;
        return { number: facts.low === null ? number : Math.min(Math.max(number, facts.low), facts.high) };
      }
      const values = Float64Array.from(logits.data);
      const shares = facts.kind === "multi-label" ? values.map((x) => 1 / (1 + Math.exp(-x))) : softmax(values);
      return { labels: rank(shares, shares.length).map(([n, probability]) => ({ label: facts.labels[n], probability })) };
    },
  };
}

function softmax(values) {
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const weights = values.map((value) => Math.exp(value - largest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function rank(shares, count) {
  return [...shares.entries()].sort((a, b) => b[1] - a[1]).slice(0, count);
}

export { MASK };
