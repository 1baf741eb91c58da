// Payloads, and the number of the job in them.
import { randomUUID } from 'node:crypto';

const hex = (number) => number.toString(16).padStart(12, '0');

function read(text) {
  if (!/^[0-9a-f]{12}$/.test(text ?? '')) throw new Error('a payload without its number');
  return Number.parseInt(text, 16);
}

function chain(depth) {
  let value = {};
  for (let i = 1; i < depth; i += 1) value = { [randomUUID()]: value };
  return value;
}

// Table chasqui: width keys, each a chain of depth nested objects. Only the number in the first key differs.
export function trees(width, depth) {
  const first = randomUUID().slice(0, -12);
  const head = chain(depth);
  const tail = Object.fromEntries(Array.from({ length: width - 1 }, () => [randomUUID(), chain(depth)]));
  return (number) => ({ [first + hex(number)]: head, ...tail });
}

export function treeNumber(data) {
  for (const key in data) return read(key.slice(-12));
  throw new Error('an empty payload');
}

// Table chronos: {"ts":T,"pad":"NUMBERxxx"}.
export function pads(size) {
  const fill = 'x'.repeat(Math.max(size - 52, 0));
  return (number, ts) => ({ ts, pad: hex(number) + fill });
}

export const padNumber = (data) => read(data.pad?.slice(0, 12));
