// The AI SDK itself, in three versions, as a judge of messages and streams. Nothing here does its work.

import { isDeepStrictEqual } from "node:util";

globalThis.AI_SDK_LOG_WARNINGS = false;
const packages = { 5: "ai-v5", 6: "ai-v6", 7: "ai" };
export const versions = [5, 6, 7];

export const sdk = (version) => import(packages[version]);
export const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** The first places where two values differ. */
export function differences(wanted, got, path = "$", found = []) {
  if (found.length > 5 || isDeepStrictEqual(wanted, got)) return found;
  const both = [wanted, got].every((one) => typeof one === "object" && one !== null && Array.isArray(one) === Array.isArray(wanted));
  if (!both) {
    const short = (value) => (JSON.stringify(value) ?? "nothing").slice(0, 200);
    found.push(`${path}: ${short(wanted)} became ${short(got)}`);
    return found;
  }
  for (const key of new Set([...Object.keys(wanted), ...Object.keys(got)])) differences(wanted[key], got[key], `${path}.${key}`, found);
  return found;
}

/** What a version has against these messages: that it refuses them, takes something away, or cannot make a
 *  model's history of them. And that history. */
export async function judged(messages, version) {
  const { safeValidateUIMessages, convertToModelMessages } = await sdk(version);
  const answer = await safeValidateUIMessages({ messages: structuredClone(messages) });
  if (!answer.success) return { against: [`refused: ${answer.error.message.slice(0, 1500)}`] };
  const against = differences(messages, plain(answer.data));
  try {
    return { against, history: await convertToModelMessages(structuredClone(answer.data)) };
  } catch (error) {
    return { against: [...against, `no history: ${error.message}`] };
  }
}
