// The server's playground: all functions of its models, and a form for the token if one is required.

import { setToken } from "./api.js";
import { load, start } from "./app.js";
import { el } from "./dom.js";
import { answer } from "./view-answer.js";
import { embed } from "./view-embed.js";
import { fillMask } from "./view-fill-mask.js";
import { choose, classify } from "./view-labels.js";
import { order } from "./view-order.js";
import { read } from "./view-read.js";
import { tokens } from "./view-tokens.js";
import { say } from "./words.js";

function askForToken() {
  const box = el("input", { type: "password", id: "token", autocomplete: "off" });
  const form = el("form", { class: "card token" }, el("label", { for: "token" }, say("token")), box,
    el("button", { type: "submit", class: "primary" }, say("token_send")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(box.value);
    load();
  });
  document.getElementById("main").replaceChildren(form);
  box.focus();
}

document.addEventListener("litebert-unauthorized", askForToken);
start({
  views: [fillMask, classify, tokens, answer, choose, order, embed, read],
  privacy: "health",
  links: [{ href: "docs", words: "api" }],
});
