/** The events of `bench -- bus`: what is published, and the row that an event becomes in the bus log. */
import { keyHash } from '../../src/bus/publish/key-hash.ts';

/** Nanoseconds of a clock that all processes of this machine share. */
export function nowNs(): bigint {
  return process.hrtime.bigint();
}

const urls = 10_000;

/** An event as a publisher sends it. `sent`: when, in nanoseconds. */
export function makeEvent(n: number, sent = '0'): string {
  return `{"type":"update","url":"https://shop.example/orders/${100_000 + (n % urls)}","data":{"state":"shipped","total":1299,"sent":"${sent}"}}`;
}

/** An array of events, or a single one. */
export function makeBody(first: number, count: number, isBulk: boolean): string {
  const events = Array.from({ length: count }, (_, i) => makeEvent(first + i));
  return isBulk ? `[${events.join(',')}]` : (events[0] ?? '');
}

export interface ParsedEvent {
  readonly type: string;
  readonly url: string;
  readonly data: unknown;
}

/** The element of a delivery without its end, as the product stores it, and its hash. */
export function rowOf(topic: string, { type, url, data }: ParsedEvent, t: number): { body: string; hash: number } {
  const body = `{"topic":"${topic}","type":"${type}","url":${JSON.stringify(url)},"t":${t},"data":${JSON.stringify(data)}`;
  return { body, hash: keyHash(url) };
}
