/**
 * Reads requests. Bodies are bounded in size, parsed by their content type, and checked for values that the database cannot
 * store (I11).
 *
 * The work for a body is linear in its length, even if it is rejected: only the first faults are reported.
 */
import { z } from 'zod';
import { clientGone, type Fault, MillraceError } from '../errors.ts';
import { faultWords, fieldsOf, shapeFaults } from '../kernel/text/shape-faults.ts';
import type { DocumentText, Endpoint } from './endpoint.ts';
import { countJsonValues } from './json-size.ts';
import { findUnstorable } from './unstorable.ts';

/** Maximum bytes of a body, unless its endpoint sets another limit. */
const defaultBytes = {
  /** For endpoints that need no key, so that any client may send a body. Enough for a key or a sign-in link. */
  keyless: 4 * 1024,
  json: 64 * 1024,
  /** Job documents and stash values. */
  raw: 4 * 1024 * 1024,
};

function maxBytes({ allow, body, bodyBytes }: BodyRules): number {
  if (bodyBytes !== undefined) return bodyBytes;
  if (allow.includes('anyone')) return defaultBytes.keyless;
  return typeof body === 'string' ? defaultBytes.raw : defaultBytes.json;
}

type BodyRules = Pick<Endpoint, 'allow' | 'body' | 'bodyBytes' | 'ignoresContentType' | 'refusal'>;

const formats: Readonly<Record<string, 'json' | 'yaml'>> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/x-yaml': 'yaml',
  'text/yaml': 'yaml',
};

/** A compressed body could grow beyond every limit when it is unpacked, so none is accepted. */
export function checkContentEncoding(encoding: string | null | undefined): void {
  if (typeof encoding !== 'string' || /^\s*(?:identity)?\s*$/i.test(encoding)) return;
  throw new MillraceError(
    'unsupported_media_type',
    `send the body without Content-Encoding: ${encoding.slice(0, 100)}`,
  );
}

/** Reading a body fails only if the client, or the network, is gone. */
async function readBytes(request: Request, limit: number): Promise<Buffer> {
  checkContentEncoding(request.headers.get('content-encoding'));
  const length = request.headers.get('content-length');
  if (Number(length) > limit) throw tooLarge(limit);
  try {
    return await receive(request, length, limit);
  } catch (error) {
    throw error instanceof MillraceError ? error : clientGone(error);
  }
}

async function receive(request: Request, length: string | null, limit: number): Promise<Buffer> {
  // HTTP limits the body to the announced length. Reading it at once saves a stream (a tenth of a busy gateway's CPU time)
  if (length !== null) return Buffer.from(await request.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function tooLarge(limit: number): MillraceError {
  return new MillraceError('too_large', `the body may be at most ${limit} bytes long`);
}

function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new MillraceError('bad_request', 'the body is not UTF-8 text');
  }
}

/** Parameters such as a charset are allowed; no header means JSON. */
function readFormat(request: Request): 'json' | 'yaml' {
  const type = (request.headers.get('content-type') ?? 'application/json').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const format = formats[type];
  if (format) return format;
  throw new MillraceError('unsupported_media_type', `send ${Object.keys(formats).join(', ')}, not ${type}`);
}

async function readDocument(request: Request, limit: number): Promise<DocumentText> {
  const format = readFormat(request);
  return { text: decodeText(await readBytes(request, limit)), format };
}

interface ReceivedJson {
  readonly value: unknown;
  readonly isLarge: boolean;
}

/** A body with more values than this is checked only up to its first bad value. Each fault costs much more than a value. */
const minLargeValues = 10_000;

async function readJson(request: Request, limit: number, ignoresType = false): Promise<ReceivedJson> {
  const bytes = await readBytes(request, limit);
  // an empty body has no type; some clients send a content type anyway
  if (bytes.length === 0) return { value: undefined, isLarge: false };
  if (!ignoresType && readFormat(request) === 'yaml')
    throw new MillraceError('unsupported_media_type', 'send application/json here');
  const isLarge = countJsonValues(bytes) > minLargeValues;
  const text = decodeText(bytes);
  try {
    return { value: JSON.parse(text), isLarge };
  } catch (error) {
    throw new MillraceError('bad_request', `the body is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

export async function readBody(request: Request, rules: BodyRules): Promise<unknown> {
  const { body } = rules;
  if (body === undefined) return undefined;
  const limit = maxBytes(rules);
  if (body === 'bytes') return readBytes(request, limit);
  if (body === 'document') return readDocument(request, limit);
  const { value, isLarge } = await readJson(request, limit, rules.ignoresContentType);
  try {
    if (value === undefined && !body.safeParse(undefined).success) {
      throw new MillraceError('bad_request', 'this needs a JSON body');
    }
    return parsePart(body, value, 'body', isLarge);
  } catch (error) {
    throw rules.refusal === undefined ? error : prependWords(error, rules.refusal);
  }
}

function prependWords(error: unknown, words: (faults: readonly Fault[]) => string): unknown {
  if (!(error instanceof MillraceError)) return error;
  const { faults } = error;
  return new MillraceError(error.code, `${words(faults)}: ${error.message}`, { faults });
}

/** Maximum faults reported for one request. A body of 30 KB can have 60,000, whose messages took seconds to format. */
const maxFaults = 50;

/** Parses a part of the request. Throws all faults with their paths; with `abortEarly`, only those of the first bad value. */
export function parsePart(schema: z.ZodType, value: unknown, part: string, abortEarly = false): unknown {
  rejectUnstorable(value, part);
  // `safeParse` would format a message for each issue, and then all of them as JSON
  const { value: parsed, issues } = runSchema(schema, value, abortEarly);
  if (issues.length === 0) return parsed;
  const some = issues.slice(0, maxFaults).map((issue) => z.core.util.finalizeIssue(issue, faultWords, z.config()));
  const faults = shapeFaults(some, [part], fieldsOf(schema)).slice(0, maxFaults);
  const more = issues.length > maxFaults ? `; and ${issues.length - maxFaults} more` : '';
  throw new MillraceError('bad_request', faults.map((f) => `${f.path}: ${f.message}`).join('; ') + more, { faults });
}

function runSchema(schema: z.ZodType, value: unknown, abortEarly: boolean): z.core.ParsePayload {
  // oxlint-disable-next-line no-underscore-dangle -- zod's entry point for libraries
  const result = schema._zod.run({ value, issues: [] }, { ...faultWords, async: false, abortEarly });
  if (result instanceof Promise) throw new Error('the schema of a request must not be asynchronous');
  return result;
}

/** PostgreSQL cannot store NUL in text, nor half of a surrogate pair. Rejects both before anything is written. */
function rejectUnstorable(value: unknown, part: string): void {
  const found = findUnstorable(value);
  if (found === undefined) return;
  const fault = { path: [part, ...found.path].join('.'), message: found.message };
  throw new MillraceError('bad_request', `${fault.path}: ${fault.message}`, { faults: [fault] });
}
