import { formatMoney as money, formatMoneyRange } from "../../money/src/index.js";

/** A line of the price list. */
export function priceLine({ name, price, upTo }) {
  return `${name}: ${upTo ? formatMoneyRange(price, upTo) : money(price)}`;
}
