// Convert logits to probabilities, and rank them.

export function softmax(values) {
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const weights = values.map((value) => Math.exp(value - largest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

/** In single precision, as in Python, because sums of these scores are compared. */
export function logSoftmax(values) {
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const total = Math.log(values.reduce((sum, value) => sum + Math.exp(value - largest), 0));
  return Float32Array.from(values, (value) => value - largest - total);
}

/** [index, value] of the largest values, largest first; ties keep their order. */
export function rank(values, count) {
  return [...values.entries()].sort((a, b) => b[1] - a[1]).slice(0, count);
}
