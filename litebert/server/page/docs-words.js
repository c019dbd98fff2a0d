// Texts of the API documentation: the server's English and its Chinese translation.

const CHINESE = {
  "Playground": "试用页",
  "version": "版本",
  "Request": "请求",
  "Answer": "回答",
  "Try": "试一试",
  "Send": "发送",
  "Refusals": "可能的错误",
  "optional": "可选",
  "or": "或",
  "list of": "列表：",
  "by name": "（按名称）",
  "text": "文本",
  "number": "数",
  "whole number": "整数",
  "object": "对象",
  "true or false": "真或假",
  "null": "空",
  "value": "值",
  "中文": "English",

  "Inference API for lite BERTs. A request has one or more `inputs` and returns one result per input, in the same order; inputs of different requests are batched together. Errors have the form `{\"error\": {\"code\", \"message\", \"where\"}}`.":
    "轻量 BERT 模型的推理接口。一个请求含一个或多个 `inputs`，每个输入按相同顺序得到一个结果；不同请求的输入会合并计算。出错时返回 `{\"error\": {\"code\", \"message\", \"where\"}}`。",

  "The most probable words for each [MASK] of a text": "文本中每个 [MASK] 处最可能的词",
  "The label of a text or of a pair, or a number": "一段文本或一对文本的标签，或一个数值",
  "A tag for each word": "每个词的标签",
  "The stretch of a text that answers a question": "文章中回答问题的那一段原文",
  "Which of several choices fits a question": "几个选项中哪个适合问题",
  "How probable it is that B follows A": "B 接在 A 之后的概率",
  "A vector for each text": "每段文本的向量",
  "How a text is read: attention, and how far each layer moves each token": "模型如何阅读文本：注意力，以及每一层把每个词元移动多远",
  "Vectors of texts, as OpenAI's clients ask for them": "文本的向量，采用 OpenAI 客户端的格式",
  "Texts in the order of their relevance to a query, as Cohere's clients ask for it": "按与查询的相关性排列文本，采用 Cohere 客户端的格式",
  "List the served models and their functions": "本服务器的模型，以及各自的功能",
  "Liveness check": "存活检查",
  "Readiness check": "就绪检查",
  "Metrics in Prometheus format": "Prometheus 格式的指标",

  "A model's name; without it the first one that can answer.": "模型名称；不写则用第一个能够回答的模型。",
  "Guesses for each [MASK].": "每个 [MASK] 给出多少个猜测。",
  "Two texts that belong together.": "一对文本。",
  "Answer early: after so many layers with the same answer; 0 computes all of them.": "提前作答：连续这么多层答案相同即停止；0 表示计算全部层。",
  "Texts, cut into words at white space (Chinese without spaces into characters); or lists of words.": "文本（在空白处分词，不含空格的中文按字切分），或词的列表。",
  "A choice takes the place of each `_`, or follows the question.": "选项会填入每个 `_`，没有 `_` 则接在问题之后。",
  "Vectors of length one; null: as the model says, else true.": "是否把向量归一化为长度 1；null 表示按模型的设定，模型未设定则为真。",
  "An attention head, from 0; without it the mean of all.": "注意力头，从 0 数起；不写则取所有头的平均。",
  "As the vocabulary has it, with its mark of a word's beginning or inside.": "词表中的写法，带有词首或词内的标记。",
  "As a person reads it.": "供人阅读的写法。",
  "For each [MASK], the best guess first.": "对每个 [MASK]，最佳猜测在前。",
  "Tokens that were not read, because the input is longer than the model reads.": "因输入超出模型长度而没有读到的词元数。",
  "A label, or those that hold; or a number.": "一个标签，或所有成立的标签；或一个数值。",
  "Of every label; empty for a number.": "每个标签的概率；数值任务为空。",
  "In the text, in characters; of a list of words in these with a space between them.": "在文本中的位置，以字符计；若是词的列表，则按词间加一个空格计。",
  "In characters, as of words.": "以字符计，与词相同。",
  "The mean of its words' probabilities.": "所含各词概率的平均。",
  "Of tags such as B-PER and I-PER.": "由 B-PER、I-PER 之类的标签组成。",
  "In the context, in characters.": "在文章中的位置，以字符计。",
  "Null where the model finds none.": "模型没有找到时为空。",
  "What it found next best.": "其次的候选。",
  "The odds that there is no answer.": "没有答案的几率比。",
  "Of the best choice, from 0.": "最佳选项的序号，从 0 数起。",
  "That the second text follows the first.": "第二段接在第一段之后的概率。",
  "In its text, in characters; 0 for a special token.": "在所属文本中的位置，以字符计；特殊词元为 0。",
  "From each token (row) to every token; a row sums to 1.": "从每个词元（行）到所有词元；每行之和为 1。",
  "How far the layer moves each token.": "这一层把每个词元移动多远。",
  "The angle between what goes in and what comes out, for each token.": "每个词元输入与输出之间的角度。",
  "The text was longer than what can be shown.": "文本超出可显示的长度。",
  "A text, or a list of texts.": "一段文本，或文本的列表。",
  "`base64`: the vector as little-endian 32-bit numbers.": "`base64`：向量以小端 32 位浮点数编码。",
  "The model's own number, or a shorter one that it was trained for.": "模型自身的维数，或训练时指定的较短维数。",
  "Accepted and ignored.": "接受但不使用。",
  "The number of the text in the request, from 0.": "文本在请求中的序号，从 0 数起。",
  "Numbers, or base64 of them.": "数值，或其 base64 编码。",
  "Tokens that the model read, special tokens included.": "模型读到的词元数，含特殊词元。",
  "The same.": "同上。",
  "Texts to order, as Cohere names them.": "要排序的文本（Cohere 的名称）。",
  "The same, as TEI names them.": "同上（TEI 的名称）。",
  "Results to return; without it all.": "返回多少个结果；不写则返回全部。",
  "Results contain their texts.": "结果中包含文本。",
  "Of a classifier, the label of relevant texts: its probability is the score.": "对于分类模型：相关文本的标签，其概率即为得分。",
  "The number of a regression model, or the probability of the label.": "回归模型的数值，或该标签的概率。",
  "The text, if it was asked for.": "文本（若请求了）。",
  "The most relevant text first; equals in the order of the request.": "最相关的在前；得分相同者按请求中的顺序。",
  "What it was fine-tuned for.": "微调的任务。",
  "Texts per input of classify: 2 for pairs; 0: one or two.": "classify 的每个输入需要几段文本：2 为文本对；0 为一段或两段。",
  "Its tags are of spans, such as B-PER and I-PER.": "标签标注片段，例如 B-PER 和 I-PER。",
  "It may be asked with a patience.": "支持 patience 参数。",
  "What its vocabulary is mostly for.": "词表主要面向的语言。",
  "The mark for a word to guess.": "表示待猜词的标记。",
  "In tokens; longer texts are cut, and `num_cut` of their results says so.": "以词元计；更长的文本会被截断，结果中的 `num_cut` 会说明。",
  "For each function, inputs of the model's own data; it may have none.": "每个功能的示例输入，取自模型自己的数据；可以没有。",

  "Counters": "指标",
  "Service Unavailable": "服务不可用",
  "The body is not valid JSON.": "请求正文不是有效的 JSON。",
  "The bearer token is missing or wrong.": "缺少令牌，或令牌错误。",
  "Unknown endpoint or model.": "没有这个接口或模型。",
  "The request took too long to arrive.": "请求到达得太慢。",
  "The request body is too large.": "请求正文超过服务器允许的大小。",
  "The Host header is not accepted.": "不接受请求的 Host 头。",
  "The request is invalid; the message says where and how to fix it.": "请求内容有误；消息会说明位置和改法。",
  "The queue is full; retry after the number of seconds in Retry-After.": "等待的输入太多；请在 Retry-After 所示的秒数之后再试。",
  "Our mistake.": "服务器出错。",
  "The server is busy or shutting down, or the request timed out.": "服务器繁忙或正在关闭，或者请求超时。",
  "Internal error.": "服务器内部错误。",
};

const KEY = "litebert-language"; // the same as the playground's

export function getLanguage() {
  return localStorage.getItem(KEY) ?? (navigator.language.startsWith("zh") ? "zh" : "en");
}

export function setLanguage(language) {
  localStorage.setItem(KEY, language);
}

/** The text in the page's language; texts without a translation stay English. */
export function say(words) {
  return getLanguage() === "zh" ? (CHINESE[words] ?? words) : words;
}
