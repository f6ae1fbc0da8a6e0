/**
 * The broker on PostgreSQL. The `live` table is the queue and workers claim over HTTP, so it has no queues of its own: it
 * carries hints, as wake-ups through the control database.
 */
import { MillraceError } from '../errors.ts';
import type { WakeUps } from '../postgres/wake.ts';
import type { Broker } from './contract.ts';

export function postgresBroker(hub: WakeUps): Broker {
  return {
    hintsOf: (tenantId) => ({
      send: (kind, payload) => hub.send(kind, tenantId, payload),
      on: (kind, listener) => hub.on(kind, tenantId, () => listener()),
    }),
    onAny: (kind, listener) => hub.onAny(kind, listener),
    room: () => 0,
    publish: async () => {
      throw new MillraceError('internal', 'the PostgreSQL broker has no queues to publish to; workers claim runs');
    },
  };
}
