// Why a question was not answered: a word for the page, which has its own words for most of them, and a message.

export class Refusal extends Error {
  constructor(code, message, where = "") {
    super(message);
    this.code = code;
    this.where = where;
  }
}
