export { formatMoney, formatMoneyRange } from "./format.js";
export { parseMoney } from "./parse.js";
