/** Reading requests: bounded, typed by their content type, and free of what no database could keep (I11). */
import type { z } from 'zod';
import { type Fault, MillraceError } from '../errors.ts';
import { numberFault } from '../kernel/exact-number.ts';
import { faultWords, fieldsOf, shapeFaults } from '../kernel/shape-faults.ts';
import type { DocumentText, Endpoint } from './endpoint.ts';

const usualBytes = 4 * 1024 * 1024;

const formats: Readonly<Record<string, 'json' | 'yaml'>> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/x-yaml': 'yaml',
  'text/yaml': 'yaml',
};

async function readBytes(request: Request, limit: number): Promise<Buffer> {
  // who says how long it is gets no longer one through; reading it whole spares a stream (measured: a tenth of a busy gateway)
  if (Number(request.headers.get('content-length') ?? Number.NaN) <= limit)
    return Buffer.from(await request.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) throw new MillraceError('too_large', `the body may be at most ${limit} bytes long`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

async function readText(request: Request, limit: number): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readBytes(request, limit));
  } catch (error) {
    if (error instanceof TypeError) throw new MillraceError('bad_request', 'the body is not UTF-8 text');
    throw error;
  }
}

/** Parameters such as a charset are allowed; no header means JSON. */
function formatOf(request: Request): 'json' | 'yaml' {
  const type = (request.headers.get('content-type') ?? 'application/json').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const format = formats[type];
  if (format) return format;
  throw new MillraceError('unsupported_media_type', `send ${Object.keys(formats).join(', ')}, not ${type}`);
}

async function readDocument(request: Request, limit: number): Promise<DocumentText> {
  const format = formatOf(request);
  return { text: await readText(request, limit), format };
}

async function readJson(request: Request, limit: number): Promise<unknown> {
  const text = await readText(request, limit);
  // of no type at all, whatever some client says by itself
  if (text === '') return undefined;
  if (formatOf(request) === 'yaml') throw new MillraceError('unsupported_media_type', 'send application/json here');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MillraceError('bad_request', `the body is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

export async function readBody(
  request: Request,
  { body, bodyBytes = usualBytes }: Pick<Endpoint, 'body' | 'bodyBytes'>,
): Promise<unknown> {
  if (body === undefined) return undefined;
  if (body === 'bytes') return readBytes(request, bodyBytes);
  if (body === 'document') return readDocument(request, bodyBytes);
  const sent = await readJson(request, bodyBytes);
  if (sent === undefined && !body.safeParse(undefined).success) {
    throw new MillraceError('bad_request', 'this needs a JSON body');
  }
  return checked(body, sent, 'body');
}

/** Parses a part of the request; every fault at once, each with its path. */
export function checked(schema: z.ZodType, value: unknown, part: string): unknown {
  refuseUnstorable(value, part);
  const result = schema.safeParse(value, faultWords);
  if (result.success) return result.data;
  const faults = shapeFaults(result.error.issues, [part], fieldsOf(schema));
  throw new MillraceError('bad_request', faults.map((f) => `${f.path}: ${f.message}`).join('; '), { faults });
}

/** PostgreSQL keeps no NUL in text, and half a surrogate pair is no character: refused before anything is written. */
function refuseUnstorable(value: unknown, path: string): void {
  const fault = unstorable(value, path, 0);
  if (fault) throw new MillraceError('bad_request', `${fault.path}: ${fault.message}`, { faults: [fault] });
}

const deepest = 200;

function unstorable(value: unknown, path: string, depth: number): Fault | undefined {
  if (depth > deepest) return { path, message: `nested more than ${deepest} deep` };
  if (typeof value === 'string') return unstorableText(value, path);
  if (typeof value === 'number') return unstorableNumber(value, path);
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') return { path: `${path}.${key}`, message: 'is not a name that may be used' };
    const fault = unstorableText(key, path) ?? unstorable(item, `${path}.${key}`, depth + 1);
    if (fault) return fault;
  }
  return undefined;
}

function unstorableText(text: string, path: string): Fault | undefined {
  if (text.includes('\0')) return { path, message: 'holds a NUL character' };
  if (!text.isWellFormed()) return { path, message: 'holds half of a surrogate pair' };
  return undefined;
}

function unstorableNumber(value: number, path: string): Fault | undefined {
  const message = numberFault(value);
  return message === undefined ? undefined : { path, message };
}
