/**
 * Work of kind `http`: a request. Its headers are stored as the `env` of the block, because that is where values from the stash come
 * from: the runtime gets them as variables with the names of the headers.
 */
import { z } from 'zod';
import { largestInteger, text } from '../../documents/fields.ts';
import { printableFault } from '../../documents/name.ts';
import { defineKind } from '../work.ts';
import { headerNameFault, headerValueFault, urlFault } from './request-rules.ts';

const httpMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export interface HttpWork {
  readonly kind: 'http';
  readonly method: (typeof httpMethods)[number];
  readonly url: string;
  /** Names of headers; their values are variables of the task. */
  readonly headers: readonly string[];
  /** Undefined: the request has none. */
  readonly body?: unknown;
  /** The statuses that are a success; null: 200 to 299. */
  readonly expect: readonly number[] | null;
  /** The link by which the receiver answers later. Flows set it. */
  readonly answerUrl: string | null;
}

/** A text that is only known when the run starts is checked then. */
function isOpen(value: string): boolean {
  return value.includes('{{') || value.includes('$(');
}

const headerValue = z.union(
  [
    text((value) => (isOpen(value) ? undefined : headerValueFault(value))).describe('The value itself.'),
    z
      .strictObject({
        stash: text(printableFault, { minLength: 1 }).describe('The name of a stash entry that holds the value.'),
      })
      .describe('The value is taken from the stash when the task starts.'),
  ],
  { error: 'must be text (numbers in quotes), or {stash: name}' },
);

export const http = defineKind({
  kind: 'http',
  isLocal: false,
  hasVariables: false,
  summary: 'Send an HTTP request.',
  schema: z
    .strictObject({
      method: z.enum(httpMethods).nullish().describe('Default POST.'),
      url: text((value) => (isOpen(value) ? undefined : urlFault(value)), {
        minLength: 1,
        examples: ['https://api.example.com/orders'],
      }).describe('The address: https, unless the workers allow http. Redirects are not followed.'),
      headers: z
        .record(text(headerNameFault, { pattern: "^[A-Za-z0-9!#$%&'*+.^`|~-]+$" }), headerValue)
        .nullish()
        .describe('Headers: names to texts, or to `{stash: name}`.'),
      body: z
        .unknown()
        .optional()
        .describe('Sent as JSON; a text as it is if the headers give another `Content-Type` than JSON.'),
      expect: z
        .array(z.int().min(100).max(599))
        .min(1)
        .nullish()
        .describe('The statuses of a success. Default: 200 to 299.')
        .meta({ examples: [[200, 404]] }),
    })
    .meta({ title: 'HTTP', description: 'Send a request. The result is `{status, headers, body}`.' }),
  templates: ['url', 'headers', 'body'],
  block: z.object({
    kind: z.literal('http'),
    method: z.enum(httpMethods),
    url: z.string(),
    env: z.record(z.string(), z.unknown()).optional(),
    body: z.unknown().optional(),
    expect: z.array(z.int().max(largestInteger)).nullish(),
    answer_url: z.string().optional(),
  }),
  build: ({ method, url, headers, body, expect }) => ({
    kind: 'http' as const,
    method: method ?? 'POST',
    url,
    env: headers ?? {},
    ...(body === undefined || body === null ? {} : { body }),
    expect: expect ?? null,
  }),
  expand: ({ kind, method, url, env, body, expect, answer_url: answerUrl }, texts): HttpWork => ({
    kind,
    method,
    url: texts.text(url),
    headers: Object.keys(env ?? {}),
    ...(body === undefined ? {} : { body: texts.value(body) }),
    expect: expect ?? null,
    answerUrl: answerUrl ?? null,
  }),
  view: ({ method, url, body }) => ({ command: [method, url], input: body ?? null }),
  remedy: (flags) => `start one: millrace worker --runtime http${flags}`,
});
