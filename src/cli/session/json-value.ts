/** Reads JSON from flags: written there, from a file (`@file`), or from stdin (`-`). */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Json } from '../../flows/json.ts';
import { UsageError } from './exit.ts';
import type { Io } from './io.ts';

/** For the help of such a flag. */
export const jsonSource = 'JSON, @FILE, or - for stdin';

export async function readJsonFlag(io: Io, flag: string, value: string): Promise<Json> {
  if (value === '-') return parseJsonText(`${flag} from stdin`, await text(io.stdin));
  if (!value.startsWith('@')) return parseJsonText(flag, value);
  const name = value.slice(1);
  const content = await readFile(resolve(io.cwd, name), 'utf8').catch((error: unknown) => {
    const isMissing = error instanceof Error && Reflect.get(error, 'code') === 'ENOENT';
    throw isMissing ? new UsageError(`${flag}: ${name}: file not found`) : error;
  });
  return parseJsonText(`${flag}: ${name}`, content);
}

export function parseJsonText(subject: string, json: string): Json {
  try {
    return JSON.parse(json) as Json;
  } catch (error) {
    throw new UsageError(`${subject} is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

/** Reads `NAME=JSON`. A text after `=` that is not JSON needs quotes, so that a typing error is not sent. */
export function readAssignment(flag: string, value: string): [name: string, value: Json] {
  const at = value.indexOf('=');
  const name = value.slice(0, at).trim();
  if (at <= 0 || name === '') throw new UsageError(`${flag} ${JSON.stringify(value)} must be NAME=JSON`);
  return [name, parseJsonText(`${flag} ${name}`, value.slice(at + 1))];
}
