/** Export and import of topics and subscribers, to copy them to another bus. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id } from '../../shapes.ts';
import { subscriberChange, topicName } from '../shapes.ts';

const exportedTopic = z.strictObject({ name: topicName, owner: id.nullable(), owner_name: z.string().max(100) });

const settings = subscriberChange.omit({ uuid: true }).required();
const exportedSubscriber = settings.extend({
  name: z.string().min(1).max(100),
  identity: id.describe('of the key that owns it'),
  callback: settings.shape.callback.nullable(),
  /** The user name and the signing secrets, encrypted with the passphrase; null: it has none, or no passphrase was given. */
  sealed: z.string().max(4_096).nullable(),
});

const exported = z.strictObject({
  version: z.literal(1),
  topics: z.array(exportedTopic).max(100_000),
  subscribers: z.array(exportedSubscriber).max(10_000),
});

/** Bytes of an import: the largest body of any endpoint. A larger export is imported in parts. */
const importBytes = 4 * 1024 * 1024;

export const transferEndpoints = endpoints({
  'GET /bus/export': {
    summary: 'All topics and subscribers, without credentials',
    tag: 'bus',
    allow: ['operator'],
    answer: exported,
  },
  'POST /bus/export': {
    summary: 'All topics and subscribers. Credentials are encrypted with the passphrase',
    tag: 'bus',
    allow: ['operator'],
    body: z.strictObject({ passphrase: z.string().min(12).max(1_000) }),
    ignoresContentType: true,
    answer: exported,
  },
  'POST /bus/import': {
    summary: 'Create the topics and subscribers of an export; those that exist by name or owner are left as they are',
    tag: 'bus',
    allow: ['operator'],
    body: exported.extend({ passphrase: z.string().max(1_000).optional() }),
    bodyBytes: importBytes,
    ignoresContentType: true,
    answer: z.object({
      topics: z.int(),
      subscribers: z.int(),
      /** Subscribers that exist already, by name. */
      skipped: z.array(z.string()),
    }),
  },
});
