// One clock for the processes of a benchmark, in milliseconds.

export const now = () => performance.timeOrigin + performance.now();
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** The value below which this share of the values is. */
export function share(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

export const ms = (value) => `${value.toFixed(1)} ms`;
