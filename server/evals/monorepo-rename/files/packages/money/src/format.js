/** 1234 cents as "12.34 EUR". */
export function formatMoney(cents, currency = "EUR") {
  const sign = cents < 0 ? "-" : "";
  const whole = Math.abs(cents);
  return `${sign}${Math.floor(whole / 100)}.${String(whole % 100).padStart(2, "0")} ${currency}`;
}

/** Two amounts as "1.00 EUR to 2.00 EUR"; see formatMoney. */
export function formatMoneyRange(low, high, currency) {
  return `${formatMoney(low, currency)} to ${formatMoney(high, currency)}`;
}
