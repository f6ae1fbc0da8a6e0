/** The keys of the bus's errands: the kind of work and its arguments, as JSON. */
import { z } from 'zod';
import type { ReaderName } from './store.ts';

export function deliverKey({ subscriber, strand }: ReaderName): string {
  return `["deliver",["${subscriber}",${strand}]]`;
}

export function replayKey(replay: string): string {
  return `["replay",["${replay}"]]`;
}

export function testKey(subscriber: string): string {
  return `["test",["${subscriber}"]]`;
}

export const relayKey = '["relay",[]]';

export type BusWork =
  | { readonly kind: 'deliver'; readonly subscriber: string; readonly strand: number }
  | { readonly kind: 'replay'; readonly replay: string }
  | { readonly kind: 'test'; readonly subscriber: string }
  | { readonly kind: 'relay' };

const shape = z.union([
  z.tuple([z.literal('deliver'), z.tuple([z.uuid(), z.int()])]),
  z.tuple([z.enum(['replay', 'test']), z.tuple([z.uuid()])]),
  z.tuple([z.literal('relay'), z.tuple([])]),
]);

/** Undefined: an errand that this version does not know. */
export function parseKey(key: string): BusWork | undefined {
  let json: unknown;
  try {
    json = JSON.parse(key);
  } catch {
    return undefined;
  }
  const { data } = shape.safeParse(json);
  if (data === undefined) return undefined;
  switch (data[0]) {
    case 'deliver':
      return { kind: 'deliver', subscriber: data[1][0], strand: data[1][1] };
    case 'replay':
      return { kind: 'replay', replay: data[1][0] };
    case 'test':
      return { kind: 'test', subscriber: data[1][0] };
    case 'relay':
    default:
      return { kind: 'relay' };
  }
}
