/** The HTTP request of a delivery: one batch, its headers and its signature. */
import { createHash, randomBytes } from 'node:crypto';
import type { Secrets } from '../../contract/context.ts';
import type { OutboundRequest } from '../../contract/bus.ts';
import { signBatch } from '../subscribers/signature.ts';
import type { Receiver } from '../store.ts';

/** As the original has them. */
const requestTimes = { connectMs: 2_000, totalMs: 20_000 } as const;

export interface Sending {
  readonly batch: string;
  readonly body: Buffer;
  /** 1 is the first. */
  readonly attempt: number;
  /** The id of the replay that sends it; null: an ordinary delivery. */
  readonly replay: string | null;
  readonly nowMs: number;
}

export function makeRequest(receiver: Receiver, sending: Sending, secrets: Secrets): OutboundRequest {
  const seconds = Math.floor(sending.nowMs / 1_000);
  const keys = receiver.secrets.map((secret) => decrypt(secrets, secret));
  return {
    url: receiver.callback,
    body: sending.body,
    connectMs: requestTimes.connectMs,
    totalMs: receiver.requestMs ?? requestTimes.totalMs,
    headers: {
      // receivers compare it byte for byte: no charset
      'content-type': 'application/json',
      ...(receiver.credential && { authorization: basic(decrypt(secrets, receiver.credential)) }),
      'webhook-id': sending.batch,
      'webhook-timestamp': String(seconds),
      ...(keys.length > 0 && { 'webhook-signature': signBatch(keys, sending.batch, seconds, sending.body) }),
      'millrace-attempt': String(sending.attempt),
      ...(sending.replay !== null && { 'millrace-replay': sending.replay }),
      traceparent: traceParent(sending.batch),
    },
  };
}

/** What is sealed in these bytes, for as long as the reader that they were loaded with. */
const opened = new WeakMap<Buffer, Buffer>();

function decrypt(secrets: Secrets, sealed: Buffer): Buffer {
  const known = opened.get(sealed);
  if (known !== undefined) return known;
  const plain = secrets.decrypt(sealed);
  opened.set(sealed, plain);
  return plain;
}

function basic(user: Buffer): string {
  return `Basic ${Buffer.concat([user, Buffer.from(':x')]).toString('base64')}`;
}

/** All attempts of a batch belong to one trace. */
function traceParent(batch: string): string {
  const trace = createHash('sha256').update(batch).digest('hex').slice(0, 32);
  return `00-${trace}-${randomBytes(8).toString('hex')}-01`;
}
