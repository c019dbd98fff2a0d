// Client for the server's API. An error response becomes a Refusal with the server's code and message.

import { Refusal } from "./refusal.js";

const TOKEN = "litebert-token";

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export async function listModels() {
  return request("v1/models", {});
}

/** The results for a body of `inputs` and settings. */
export async function ask(fn, body, signal) {
  const answer = await request(`v1/${fn}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
    signal,
  });
  return answer.results;
}

/** `path` is relative to the page, which a proxy may serve under a prefix. */
async function request(path, options) {
  const token = sessionStorage.getItem(TOKEN);
  if (token) options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("unreachable", String(error));
  }
  let answer;
  try {
    answer = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("unreadable", `${response.status} ${response.statusText}`);
  }
  if (!response.ok) throw new Refusal(answer.error?.code, answer.error?.message ?? response.statusText, answer.error?.where);
  return answer;
}
