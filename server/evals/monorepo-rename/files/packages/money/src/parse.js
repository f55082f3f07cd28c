/** The reverse of formatMoney: "12.34 EUR" as 1234. Throws for anything else. */
export function parseMoney(text) {
  const found = /^(-?)(\d+)\.(\d\d) [A-Z]{3}$/.exec(text);
  if (!found) throw new Error(`no amount: ${text}`);
  return (found[1] ? -1 : 1) * (Number(found[2]) * 100 + Number(found[3]));
}
