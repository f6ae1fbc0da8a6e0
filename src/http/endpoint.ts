/**
 * Describes HTTP endpoints: one table entry per `METHOD /path`. Routing, access rules, OpenAPI and the typed client are
 * derived from it. A table is data; the handlers are a record with the same keys.
 */
import type { z } from 'zod';
import type { Caller, Role } from '../contract/roles.ts';
import type { Fault } from '../errors.ts';

/**
 * The allowed callers: roles of keys, `task` for a run's credential, `anyone` without a key. Root may call every endpoint
 * that any key may call.
 */
export type Access = readonly (Role | 'task' | 'anyone')[];

/** A body that is not JSON. `document`: JSON or YAML by content type, passed on as text. */
type RawBody = 'bytes' | 'document';
/** A response that is not JSON. */
type RawAnswer = 'text' | 'bytes' | 'events' | 'none';

export interface Endpoint {
  readonly summary: string;
  readonly tag: string;
  readonly allow: Access;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType | RawBody;
  /** What OpenAPI says of headers, and of a raw body that is JSON. The handler checks them itself. */
  readonly documented?: { readonly body?: z.ZodType; readonly headers?: z.ZodObject };
  /** Maximum bytes of the body, if the defaults (`body.ts`) do not fit. */
  readonly bodyBytes?: number;
  /** The body is JSON whatever its content type says, because clients of another product send none or a wrong one. */
  readonly ignoresContentType?: boolean;
  /** The words with which the detail of a rejected body begins, if clients of another product expect them. */
  readonly refusal?: (faults: readonly Fault[]) => string;
  /** Status and shape of the ordinary response. */
  readonly status?: number;
  readonly answer: z.ZodType | RawAnswer;
  /** Further statuses that an ordinary call may get, with their meanings. */
  readonly others?: Readonly<Record<number, string>>;
}

export type EndpointKey = `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`;
export type EndpointTable = Readonly<Record<EndpointKey, Endpoint>>;

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** The text of a document, and the format that its content type names. */
export interface DocumentText {
  readonly text: string;
  readonly format: 'json' | 'yaml';
}

type BodyOf<B> = B extends 'bytes'
  ? Buffer
  : B extends 'document'
    ? DocumentText
    : B extends z.ZodType
      ? z.output<B>
      : undefined;

/** The input of a handler. It is parsed and checked, so the handler can trust it. */
export interface Input<E extends Endpoint> {
  readonly params: Parsed<E['params']>;
  readonly query: Parsed<E['query']>;
  readonly body: BodyOf<E['body']>;
  readonly caller: Caller | undefined;
  readonly request: Request;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

type AnswerOf<A> = A extends z.ZodType ? z.input<A> : A extends 'text' ? string : A extends 'none' ? void : never;

export type Handler<E extends Endpoint, Context> = (
  input: Input<E>,
  context: Context,
) => Promise<AnswerOf<E['answer']> | Response>;

/** A handler for every entry of a table. A missing handler is a compile error. */
export type Handlers<T extends EndpointTable, Context> = {
  readonly [K in keyof T & EndpointKey]: Handler<T[K], Context>;
};

/** Keeps the literal types of a table. */
export function endpoints<const T extends EndpointTable>(table: T): T {
  return table;
}
