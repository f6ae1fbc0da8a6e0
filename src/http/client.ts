/**
 * The typed client of CLI, UI and tests. A call names its endpoint by its key in the table, and the table's types give
 * the types of input and result. It contains no schema at run time, so it adds little to a browser's bundle. Lists that
 * come in pages are read to their end here (`collectPages`).
 */
import type { z } from 'zod';
import type { Problem } from '../errors.ts';
import type { Endpoint, EndpointKey, EndpointTable } from './endpoint.ts';

type Sent<S> = S extends z.ZodType ? z.input<S> : never;
type Field<K extends string, S> = [S] extends [never]
  ? unknown
  : undefined extends S
    ? { [P in K]?: S }
    : { [P in K]: S };

/** The input of a call: only the parts that the endpoint declares. */
type CallInput<E extends Endpoint> = (E extends { params: infer P } ? { params: Sent<P> } : unknown) &
  (E extends { query: infer Q } ? { query?: Sent<Q> } : unknown) &
  (E extends { body: infer B }
    ? Field<'body', B extends 'bytes' ? Uint8Array : B extends 'document' ? string : Sent<B>>
    : unknown) & {
    headers?: Record<string, string>;
    signal?: AbortSignal;
    /** Is given the headers of the response, also of a failure. */
    onHeaders?: (headers: Headers) => void;
  };

export type CallAnswer<E extends Endpoint> = E['answer'] extends z.ZodType
  ? z.output<E['answer']>
  : E['answer'] extends 'none'
    ? undefined
    : E['answer'] extends 'text'
      ? string
      : Response;

export class CallFailed extends Error {
  override readonly name = 'CallFailed';
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined, text: string) {
    super(problem?.detail ?? text);
    this.status = status;
    this.problem = problem;
  }
}

export interface ClientOptions {
  /** The URL that the tenant's paths are appended to, without a trailing slash. */
  readonly base: string;
  readonly headers?: Record<string, string>;
  readonly fetch?: (request: Request) => Promise<Response>;
}

export type Client<T extends EndpointTable> = <K extends keyof T & EndpointKey>(
  key: K,
  ...input: Record<string, never> extends CallInput<T[K]> ? [input?: CallInput<T[K]>] : [input: CallInput<T[K]>]
) => Promise<CallAnswer<T[K]>>;

interface LooseInput {
  readonly params?: Record<string, unknown>;
  readonly query?: Record<string, string | number | boolean | undefined>;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  readonly onHeaders?: (headers: Headers) => void;
}

export function makeClient<T extends EndpointTable>(options: ClientOptions): Client<T> {
  const send = options.fetch ?? ((request: Request) => fetch(request));
  return (async (key: string, input: LooseInput = {}) => {
    const response = await send(makeRequest(options, key, input));
    input.onHeaders?.(response.headers);
    if (!response.ok) throw await readFailure(response);
    return readAnswer(response);
  }) as Client<T>;
}

function makeRequest(options: ClientOptions, key: string, input: LooseInput): Request {
  const [method = 'GET', path = ''] = key.split(' ');
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input.params?.[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined) search.set(name, String(value));
  }
  const query = search.size > 0 ? `?${search}` : '';
  return new Request(`${options.base}${filled}${query}`, {
    method,
    headers: { ...options.headers, ...bodyHeaders(input.body), ...input.headers },
    ...(input.body === undefined ? {} : { body: encode(input.body) }),
    ...(input.signal ? { signal: input.signal } : {}),
  });
}

function bodyHeaders(body: unknown): Record<string, string> {
  if (body === undefined || body instanceof Uint8Array) return {};
  return { 'content-type': 'application/json' };
}

function encode(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
}

async function readFailure(response: Response): Promise<CallFailed> {
  const text = await response.text();
  try {
    return new CallFailed(response.status, JSON.parse(text) as Problem, text);
  } catch {
    return new CallFailed(response.status, undefined, text || response.statusText);
  }
}

async function readAnswer(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? '';
  if (response.status === 204 || response.body === null) return undefined;
  if (type.startsWith('application/json')) return response.json();
  if (type.startsWith('text/plain')) return response.text();
  return response;
}

/** Maximum items that the server returns in one page of a list. */
const maxPageItems = 1_000;

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** Reads pages until `next` is null, or until it has `most` items. */
export async function collectPages<T>(
  fetchPage: (cursor: string | undefined, limit: number) => Promise<Page<T>>,
  most: number = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await fetchPage(cursor, Math.min(maxPageItems, most - all.length));
    // push(...items) would fail for a list with more items than a call may have arguments
    for (const item of page.items) all.push(item);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && all.length < most);
  return all.slice(0, most);
}

/** Reads a response that is a page, or a bare array as Waterwheel's clients and older servers have it. */
export function pageIn<T>(answer: readonly T[] | Page<T>): Page<T> {
  return 'items' in answer ? answer : { items: answer, next: null };
}

/** Makes a page of a bare array, for Waterwheel's paged lists: the name of the last item is the cursor of the next page. */
export function pageAfterLast<T extends { name: string }>(items: readonly T[], limit: number): Page<T> {
  return { items, next: items.length < limit ? null : (items.at(-1)?.name ?? null) };
}
