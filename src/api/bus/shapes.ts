/**
 * Shapes that several endpoints of the bus share. Field names are Routemaster's, if it has the field. Numbers of events are
 * texts, as in deliveries, and durations are milliseconds, as in Routemaster's `timeout`.
 */
import { z } from 'zod';
import { filterFaults } from '../../bus/subscribers/filters.ts';
import { id, instant, time } from '../shapes.ts';

/** The callers of endpoints about their own subscriber. */
export const own = { allow: ['client', 'subscriber'] } as const;

export const topicName = z.string().regex(/^[a-z_]{1,64}$/, { error: 'use 1 to 64 of the characters a-z and _' });

/** A subscriber by its id or its name. */
export const subscriberKey = z
  .string()
  .min(1)
  .max(100)
  .describe('the id or the name of a subscriber, such as `billing--1a2b3c4d`');
export const subscriberPath = z.object({ id: subscriberKey });

export const eventNumber = z.string().regex(/^\d{1,15}$/, { error: 'is not the number of an event' });

/** A point of the log: the number of an event, or a time. */
const notAPoint = { error: 'must be the number of an event, or a time as 2026-01-31T12:00:00Z' };
export const logPoint = z
  .union(
    [z.string().regex(/^\d{1,15}$/, notAPoint), z.int().min(0).max(999_999_999_999_999).transform(String), instant],
    notAPoint,
  )
  .describe('the number of an event, or an RFC 3339 time');

const subscriberStates = ['active', 'paused', 'disabled'] as const;
const subscriberState = z.enum(subscriberStates);

/** Maximum topics of a subscriber. */
export const maxTopics = 1_000;

const filter = z
  .record(z.string(), z.unknown())
  .superRefine((value, context) => {
    for (const { path, message } of filterFaults(value)) context.addIssue({ code: 'custom', path: [...path], message });
  })
  .describe('only events that match are delivered; see the documentation of filters');

const uuid = z
  .string()
  .max(256)
  .regex(/^[^:\p{Cc}]*$/u, { error: 'may not have `:` or control characters' });

/** Routemaster's own fields of a subscription. */
const subscriptionFields = {
  topics: z.array(topicName).max(maxTopics),
  callback: z.string().max(1024).describe('an https URL without a query'),
  uuid: uuid.nullable().optional().describe('the user name of Basic authentication in deliveries'),
  timeout: z.int().min(0).max(3_600_000).nullable().optional().describe('milliseconds that an event waits for others'),
  max: z.int().min(1).max(10_000).nullable().optional().describe('maximum events of a batch'),
} as const;

/** Fields of `PATCH`. A field that is missing keeps its value. Null means the default, for every field that has one. */
export const subscriberChange = z.strictObject({
  topics: subscriptionFields.topics.optional(),
  callback: subscriptionFields.callback.optional(),
  uuid: subscriptionFields.uuid,
  timeout: subscriptionFields.timeout,
  max: subscriptionFields.max,
  filter: filter.nullable().optional(),
  max_bytes: z.int().min(1_024).max(16_777_216).nullable().optional().describe('maximum bytes of a batch'),
  quiet: z.boolean().nullable().optional().describe('the window begins anew with every event'),
  ordering: z
    .enum(['subscriber', 'key'])
    .nullable()
    .optional()
    .describe('`key`: only events with the same key stay in order'),
  strands: z.int().min(1).max(64).nullable().optional().describe('deliveries at once, with `ordering: key`'),
  rate: z.int().min(1).max(10_000).nullable().optional().describe('maximum deliveries per second'),
  max_attempts: z.int().min(1).max(10_000).nullable().optional().describe('then a batch becomes a dead letter'),
  max_age: z
    .int()
    .min(1_000)
    .max(31_536_000_000)
    .nullable()
    .optional()
    .describe('milliseconds of failing after which a batch becomes a dead letter; null: MILLRACE_BUS_GIVE_UP'),
  request_timeout: z
    .int()
    .min(100)
    .max(300_000)
    .nullable()
    .optional()
    .describe('milliseconds for an answer; null: 20,000'),
  kind: z.enum(['http', 'pull']).optional().describe('`pull`: it fetches its batches and has no callback'),
});

const counts = z.object({ sent: z.int(), queued: z.int(), oldest: time.nullable() });

/** An item of `GET /bus/subscriptions`: Routemaster's fields, then ours. */
export const listedSubscriber = z.object({
  subscriber: z.string(),
  /** Only the caller's own. */
  uuid: z.string().nullable(),
  callback: z.string().nullable(),
  max_events: z.int(),
  timeout: z.int(),
  topics: z.array(z.string()),
  events: counts,
  id,
  kind: z.enum(['http', 'pull']),
  state: subscriberState,
  reason: z.string().nullable(),
  health: z.int(),
  /** Since when every delivery has failed. */
  failing_since: time.nullable(),
  next_attempt_at: time.nullable(),
});

/** How far one strand has come. */
const strand = z.object({
  strand: z.int(),
  position: eventNumber,
  queued: z.int(),
  oldest: time.nullable(),
  /** Failed attempts of the current batch. */
  attempts: z.int(),
  sent: z.int(),
  /** The state of its errand; null: there is nothing to deliver. */
  errand: z.enum(['scheduled', 'ready', 'pending', 'poisoned']).nullable(),
  next_attempt_at: time.nullable(),
  /** Only of a pulled batch. */
  leased_until: time.nullable(),
});

export const subscriberDetail = listedSubscriber.extend({
  filter: z.record(z.string(), z.unknown()).nullable(),
  max_bytes: z.int(),
  quiet: z.boolean(),
  ordering: z.enum(['subscriber', 'key']),
  strands: z.int(),
  rate: z.int().nullable(),
  max_attempts: z.int().nullable(),
  max_age: z.int().nullable(),
  request_timeout: z.int().nullable(),
  /** Signing secrets that are valid now: 0 to 2. */
  secrets: z.int(),
  owner: id,
  created_at: time,
  last_attempted_at: time.nullable(),
  dead_letters: z.int(),
  /** Events that the limit by bytes dropped before they were delivered, as far as their dead letters exist; null: none. */
  dropped: z.object({ events: z.int(), first: eventNumber, last: eventNumber, at: time }).nullable(),
  readers: z.array(strand),
});

export const delivery = z.object({
  at: time,
  batch: z.string(),
  attempt: z.int(),
  events: z.int(),
  status: z.int().nullable(),
  code: z.string().nullable(),
  ms: z.int(),
  excerpt: z.string().nullable(),
});

export const deadLetter = z.object({
  id,
  /** The name of its subscriber. */
  subscriber: z.string(),
  batch: z.string(),
  events: z.int(),
  status: z.int().nullable(),
  code: z.string(),
  attempts: z.int(),
  first_failed_at: time.nullable(),
  at: time,
});

export const replay = z.object({
  id,
  /** Events after this number. */
  from: eventNumber,
  /** The last event of the range. */
  to: eventNumber,
  position: eventNumber,
  sent: z.int(),
  only_undelivered: z.boolean(),
  state: z.enum(['running', 'done', 'cancelled', 'failed']),
  by: z.string(),
  at: time,
});

/** The element of a delivery's array. */
export const busElement = z.object({
  topic: z.string(),
  type: z.string(),
  url: z.string(),
  t: z.number(),
  data: z.record(z.string(), z.unknown()).optional(),
  id: eventNumber,
});

/** A page of a list. A page ends at `limit` items or about a megabyte. */
export const pageOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next: z.string().nullable() });
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe('items of a page'),
  cursor: z.string().max(200).optional().describe('`next` of the previous page'),
} as const;
