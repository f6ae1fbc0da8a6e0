/** Subscribers: subscribe as in Routemaster, list, read, change and remove them. */
import { z } from 'zod';
import type { Fault } from '../../../errors.ts';
import { endpoints } from '../../../http/endpoint.ts';
import { arrayOrPage, id, pageWish } from '../../shapes.ts';
import { listedSubscriber, own, subscriberChange, subscriberDetail, subscriberPath, topicName } from '../shapes.ts';

/** The words of Routemaster that a refused subscription begins with. */
function refusal(faults: readonly Fault[]): string {
  return faults.length === 0 || faults.some(({ path }) => path === 'body.topics' || path === 'body')
    ? 'need an array of topics'
    : 'bad data in payload';
}

const subscribe = {
  summary: 'Subscribe to exactly these topics; the callback and the user name are replaced as well',
  tag: 'bus',
  ...own,
  body: subscriberChange.required({ topics: true }).superRefine(({ callback, kind }, context) => {
    if (callback !== undefined || kind === 'pull') return;
    context.addIssue({ code: 'custom', path: ['callback'], message: 'URL is missing' });
  }),
  ignoresContentType: true,
  refusal,
  status: 204,
  answer: 'none',
} as const;

const list = {
  summary: 'Subscribers by name: an array of the first ones, or with `limit` or `cursor` a page',
  tag: 'bus',
  allow: ['viewer', 'operator', 'client', 'subscriber'],
  query: pageWish,
  answer: arrayOrPage(listedSubscriber),
} as const;

const change = {
  summary: 'Change a subscriber; fields that are missing keep their values, and null means the default',
  tag: 'bus',
  body: subscriberChange,
  ignoresContentType: true,
  answer: subscriberDetail,
} as const;

const remove = {
  summary: 'Remove a subscriber with its position, dead letters and replays',
  tag: 'bus',
  status: 204,
  answer: 'none',
} as const;

export const subscriberEndpoints = endpoints({
  'POST /bus/subscription': subscribe,
  'POST /bus/subscriber': subscribe,
  'GET /bus/subscriptions': list,
  'GET /bus/subscribers': list,
  'GET /bus/subscriber': {
    summary: 'The subscriber of the caller, with its limits and how far it has come',
    tag: 'bus',
    ...own,
    answer: subscriberDetail,
  },
  'PATCH /bus/subscriber': { ...change, ...own },
  'DELETE /bus/subscriber': { ...remove, ...own },
  'DELETE /bus/subscriber/topics/{name}': {
    summary: 'Unsubscribe from one topic',
    tag: 'bus',
    ...own,
    params: z.object({ name: z.string() }),
    status: 204,
    answer: 'none',
  },
  'GET /bus/subscribers/{id}': {
    summary: 'A subscriber, with its limits and how far it has come',
    tag: 'bus',
    allow: ['viewer', 'operator'],
    params: subscriberPath,
    answer: subscriberDetail,
  },
  'PATCH /bus/subscribers/{id}': { ...change, allow: ['operator'], params: subscriberPath },
  'DELETE /bus/subscribers/{id}': { ...remove, allow: ['operator'], params: subscriberPath },
  'DELETE /bus/subscribers/{id}/topics/{name}': {
    summary: 'Unsubscribe a subscriber from one topic',
    tag: 'bus',
    allow: ['operator'],
    params: subscriberPath.extend({ name: topicName }),
    status: 204,
    answer: 'none',
  },
  'PUT /bus/subscribers/{id}/owner': {
    summary: 'Give a subscriber to another key, for example after its key was revoked',
    tag: 'bus',
    allow: ['operator'],
    params: subscriberPath,
    body: z.strictObject({ identity: id.describe('the identity of the new key') }),
    ignoresContentType: true,
    answer: subscriberDetail,
    others: { 409: 'the key has a subscriber of its own' },
  },
});
