// The playground of a model that runs in the visitor's browser.

import { start } from "./app.js";
import { answer } from "./view-answer.js";
import { embed } from "./view-embed.js";
import { fillMask } from "./view-fill-mask.js";
import { choose, classify } from "./view-labels.js";
import { order } from "./view-order.js";
import { tokens } from "./view-tokens.js";

start({ views: [fillMask, classify, tokens, answer, choose, order, embed], privacy: "health.browser", links: [] });
