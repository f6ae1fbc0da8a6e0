/**
 * JSON that SQL reads members of. PostgreSQL refuses zero characters and halves of characters when it looks into a value, even into
 * another member, and then a whole commit fails. They are replaced.
 */
import { isList, isObject, type Json } from '../../json.ts';

const unreadable = /\\u(?:0000|d[89a-f])/;

export function readableText(value: Json): string {
  const text = JSON.stringify(value);
  return unreadable.test(text) ? JSON.stringify(mended(value)) : text;
}

function mended(value: Json): Json {
  if (typeof value === 'string') return mendedText(value);
  if (isList(value)) return value.map(mended);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [mendedText(key), mended(inner)]));
}

function mendedText(text: string): string {
  return text.replaceAll('\0', '\ufffd').replaceAll(/\p{Surrogate}/gu, '\ufffd');
}
