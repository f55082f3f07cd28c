// Numbers, costs and times in a short form for people.

/** 950, 1.2k, 34k, 1.2M */
export function tokens(count: number): string {
  if (count < 1000) return String(count);
  const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`;
}

/** $0.0012, $0.034, $1.20 */
export function dollars(cost: number): string {
  if (cost === 0) return "$0";
  if (cost < 0.0001) return "<$0.0001";
  return `$${cost.toFixed(cost < 0.01 ? 4 : cost < 1 ? 3 : 2)}`;
}

/** 80 ms, 1.4 s, 12 s, 3 min 05 s */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** "3 hr. ago", "yesterday"; a date where it is more than a month; `now` within the last minute. */
export function ago(time: string, locale: string | undefined, now: string): string {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  if (seconds > 30 * 86_400) return new Date(time).toLocaleDateString(locale);
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
  return unit === "second" ? now : format.format(-Math.floor(seconds / size), unit);
}
