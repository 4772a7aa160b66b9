// Numbers, sizes and times as people read them. What is not known is a dash, never a zero.

export const UNKNOWN = "–";
/** Flink writes Java's largest and smallest long for "never" and "nothing yet"; doubles round them. */
const LONG_LIMIT = 9.2e18;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fraction = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A number, or null for everything that stands for "not known" in an answer. */
export function number(value) {
  if (value === null || value === undefined || value === "") return null;
  const found = Number(value);
  return Number.isFinite(found) && Math.abs(found) < LONG_LIMIT ? found : null;
}

export function count(value) {
  const found = number(value);
  if (found === null) return UNKNOWN;
  return Number.isInteger(found) || Math.abs(found) >= 100 ? whole.format(found) : fraction.format(found);
}

/** Short, for where there is little room: 12.3k, 4.56M. */
export function short(value) {
  const found = number(value);
  if (found === null) return UNKNOWN;
  for (const [limit, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ]) {
    if (Math.abs(found) >= limit) return fraction.format(found / (unit === "k" ? 1e3 : limit)) + unit;
  }
  return count(found);
}

export function bytes(value) {
  const found = number(value);
  if (found === null || found < 0) return UNKNOWN;
  let size = found;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1024) return `${unit === "B" ? size : fraction.format(size)} ${unit}`;
    size /= 1024;
  }
  return `${fraction.format(size)} TiB`;
}

export function bytesPerSecond(value) {
  return number(value) === null ? UNKNOWN : `${bytes(value)}/s`;
}

export function percent(ratio) {
  const found = number(ratio);
  return found === null ? UNKNOWN : `${Math.round(found * 100)} %`;
}

export function duration(ms) {
  const found = number(ms);
  if (found === null || found < 0) return UNKNOWN;
  if (found < 1000) return `${Math.round(found)} ms`;
  if (found < 60_000) return `${(found / 1000).toFixed(found < 10_000 ? 1 : 0)} s`;
  const seconds = Math.floor(found / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

function two(value) {
  return String(value).padStart(2, "0");
}

/** Clock time in the reader's zone. */
export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Date and time in the reader's zone; what is not a time of our days is not one. */
export function time(ms) {
  const found = number(ms);
  if (found === null || found <= 0) return UNKNOWN;
  const at = new Date(found);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(found)}`;
}

/** Flink's descriptions have HTML in them: line breaks and escaped signs. It becomes plain lines. */
export function descriptionLines(text) {
  const signs = { lt: "<", gt: ">", quot: '"', "#39": "'", "#92": "\\", nbsp: " ", amp: "&" };
  return String(text ?? "")
    .split(/<br\s*\/?>/i)
    .map((line) => line.replace(/&(lt|gt|quot|#39|#92|nbsp|amp);/g, (_, sign) => signs[sign]))
    .filter((line) => line.trim());
}
