/**
 * The runtime `http`: sends one request, in the process of the worker.
 *
 * 1. The address is checked like that of a delivery (`src/outbound/`): https and public addresses, unless the operator allows others.
 * 2. Redirects are not followed, and a request is never repeated within a run. Its `Idempotency-Key` is the same whenever the same run, or
 *    the same attempt of a node, sends it.
 * 3. A status that is not expected is a failure, a connection that breaks an error. The timeout is that of the task.
 * 4. The result is `{status, headers, body}`, with the body parsed if it is JSON. The log has the heads of request and answer, without
 *    values of the stash, credentials, cookies and the query.
 */
import type { IncomingMessage } from 'node:http';
import { exchange, isExchangeFailure } from '../../outbound/exchange.ts';
import type { Ranges } from '../../outbound/addresses.ts';
import { Guard } from '../../outbound/guard.ts';
import { makeSockets } from '../../outbound/sockets.ts';
import { maxResultBytes } from '../../contract/wire.ts';
import { failed, faulty, mismatch, type Outcome, type Output, type Runtime, success, type Task } from '../contract.ts';
import type { RunFacts } from '../task/facts.ts';
import { resultOfValue } from '../task/result.ts';
import type { HttpWork } from './block.ts';
import { headerNameFault, headerValueFault, urlFault } from './request-rules.ts';

export interface HttpOptions {
  readonly allowHttp: boolean;
  readonly allowed: Ranges;
  readonly caFile?: string | undefined;
}

interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: it has more bytes than a result may have. */
  readonly bytes: Buffer | undefined;
  /** Whether the connection ended before the body did. */
  readonly isCut: boolean;
  readonly ms: number;
}

const settings = 'MILLRACE_HTTP';
const connectMs = 10_000;
const maxExcerptChars = 300;
/** Headers whose values the log never shows. */
const secretHeader = /auth|cookie|token|secret|password|key|signature|answer-url/i;
/** Not a secret: it makes the log of use when looking for the request at its receiver. */
const shownHeaders: ReadonlySet<string> = new Set(['idempotency-key']);

export function httpRuntime({ allowHttp, allowed, caFile }: HttpOptions): Runtime {
  const guard = new Guard({ settings, allowHttp, allowed });
  const sockets = makeSockets({ maxFree: 0, caFile, settings });
  return {
    name: 'http',
    serves: ['http'],
    outlives: false,
    async run(task, output, signal) {
      const { work } = task;
      if (work.kind !== 'http') return mismatch('http', work);
      if (signal.aborted) return failed('it was stopped before it began');
      const headers = headersOf(task, work);
      const fault = findFault(work, headers);
      if (fault !== undefined) return faulty(fault);
      const body = bodyOf(work, headers);
      const log = new HeadLog(output, task.secrets);
      log.request(work, headers, body);
      const request = {
        url: work.url,
        method: work.method,
        headers,
        body,
        connectMs,
        totalMs: Number.POSITIVE_INFINITY,
      };
      try {
        const answer = await exchange({ request, guard, sockets, reuse: false, signal, read: readAnswer });
        if (isExchangeFailure(answer)) return faulty(`the request failed: ${answer.detail}`);
        log.answer(answer);
        return judge(answer, work);
      } catch (error) {
        if (signal.aborted) return failed('it was stopped before its answer came');
        throw error;
      }
    },
  };
}

function headersOf({ env, facts }: Task, { headers, body, answerUrl }: HttpWork): Record<string, string> {
  const own = Object.fromEntries(headers.map((name) => [name, env[name] ?? '']));
  const given = new Set(headers.map((name) => name.toLowerCase()));
  const standard = {
    accept: 'application/json, */*;q=0.8',
    'user-agent': 'millrace',
    'idempotency-key': idempotencyKey(facts),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const added = Object.entries(standard).filter(([name]) => !given.has(name));
  return { ...Object.fromEntries(added), ...own, ...(answerUrl !== null && { 'millrace-answer-url': answerUrl }) };
}

function idempotencyKey({ node, idempotencyKey: ofRun, attempt }: RunFacts): string {
  return node === null ? ofRun : `${node.execution}/${node.id}/${attempt}`;
}

/** What only shows once placeholders and expressions have values. */
function findFault({ url, headers: names }: HttpWork, headers: Readonly<Record<string, string>>): string | undefined {
  const fault = urlFault(url);
  if (fault !== undefined) return `its url ${fault}`;
  for (const name of names) {
    const wrong = headerNameFault(name) ?? headerValueFault(headers[name] ?? '');
    if (wrong !== undefined) return `its header ${JSON.stringify(name)} ${wrong}`;
  }
  return undefined;
}

/** A text is sent as it is if it is declared as something else than JSON. */
function bodyOf({ body }: HttpWork, headers: Readonly<Record<string, string>>): Buffer | null {
  if (body === undefined) return null;
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
  return Buffer.from(typeof body === 'string' && !isJson(type) ? body : JSON.stringify(body));
}

function isJson(contentType: string): boolean {
  return /^\s*(?:application|text)\/(?:[\w.-]+\+)?json\b/i.test(contentType);
}

async function readAnswer(response: IncomingMessage, { elapsedMs }: { elapsedMs: () => number }): Promise<Answer> {
  const bytes = await readBody(response);
  return {
    status: response.statusCode ?? 0,
    statusText: response.statusMessage ?? '',
    headers: Object.fromEntries(
      Object.entries(response.headers).map(([name, value = '']) => [
        name,
        typeof value === 'string' ? value : value.join(', '),
      ]),
    ),
    bytes,
    isCut: bytes !== undefined && !response.complete,
    ms: elapsedMs(),
  };
}

/** Undefined: it is too long, and the rest is not read. */
function readBody(response: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= maxResultBytes) return;
      resolve(undefined);
      response.destroy();
    });
    response.on('error', () => {});
    response.once('close', () => resolve(Buffer.concat(chunks, size)));
  });
}

function judge(answer: Answer, { expect, method }: HttpWork): Outcome {
  const { status, statusText, headers, bytes, isCut } = answer;
  if (isCut && method !== 'HEAD') return faulty(`the connection ended within the answer, whose status was ${status}`);
  const isExpected = expect === null ? status >= 200 && status <= 299 : expect.includes(status);
  const result =
    bytes === undefined
      ? { unkept: `its result has more than ${maxResultBytes} bytes` }
      : resultOfValue({ status, headers, body: parseBody(bytes, headers) });
  if (isExpected) return { ...success, ...result };
  const excerpt = bytes === undefined ? '' : bytes.toString('utf8').trim().slice(0, maxExcerptChars);
  const reason = `the answer was ${`${status} ${statusText}`.trim()}${excerpt === '' ? '' : `: ${excerpt}`}`;
  return { ...failed(reason), ...('result' in result && { result: result.result }) };
}

function parseBody(bytes: Buffer, headers: Readonly<Record<string, string>>): unknown {
  const text = bytes.toString('utf8');
  if (text === '') return null;
  if (!isJson(headers['content-type'] ?? '')) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Writes the heads of request and answer to the log. */
class HeadLog {
  readonly #output: Output;
  readonly #secrets: ReadonlySet<string>;

  constructor(output: Output, secrets: ReadonlySet<string>) {
    this.#output = output;
    this.#secrets = secrets;
  }

  request({ method, url }: HttpWork, headers: Readonly<Record<string, string>>, body: Buffer | null): void {
    const { origin, pathname, search } = new URL(url);
    this.#write([
      `> ${method} ${origin}${pathname}${search === '' ? '' : '?…'}`,
      ...this.#lines('>', headers),
      ...(body === null ? [] : [`> ${body.byteLength} bytes`]),
    ]);
  }

  answer({ status, statusText, headers, bytes, ms }: Answer): void {
    const size = bytes === undefined ? `more than ${maxResultBytes}` : String(bytes.byteLength);
    this.#write([`< ${status} ${statusText}`.trimEnd(), ...this.#lines('<', headers), `< ${size} bytes in ${ms} ms`]);
  }

  #lines(mark: string, headers: Readonly<Record<string, string>>): string[] {
    return Object.entries(headers).map(([name, value]) => `${mark} ${name}: ${this.#isSecret(name) ? '***' : value}`);
  }

  #isSecret(name: string): boolean {
    return this.#secrets.has(name) || (secretHeader.test(name) && !shownHeaders.has(name.toLowerCase()));
  }

  #write(lines: readonly string[]): void {
    this.#output.write('out', Buffer.from(`${lines.join('\n')}\n`))?.catch(() => {});
  }
}
