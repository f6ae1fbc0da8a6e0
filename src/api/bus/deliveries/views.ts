/** Renders deliveries and dead letters for the wire. */
import { toWire } from '../../wire-times.ts';
import type { DeliveryRow, LetterRow } from './queries.ts';

export function renderDelivery({ at, batch, attempt, events, status, code, ms, excerpt }: DeliveryRow) {
  return toWire({ at, batch, attempt, events, status, code, ms, excerpt });
}

export function renderLetter(row: LetterRow) {
  const { id, subscriber, batch, events, status, code, attempts, first_failed_at, at } = row;
  return toWire({ id, subscriber, batch, events, status, code, attempts, first_failed_at, at });
}
