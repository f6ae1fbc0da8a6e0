/** Explains why a delivery has not happened. */
import { z } from 'zod';
import { endpoints } from '../../../http/endpoint.ts';
import { id } from '../../shapes.ts';

/** All codes of reasons. docs/bus.md documents each; a test compares the two lists. */
export const deliveryReasonCodes = [
  'nothing_queued',
  'not_counted_yet',
  'lag',
  'window_open',
  'ready',
  'under_way',
  'retry_scheduled',
  'receiver_failed',
  'receiver_unreachable',
  'no_courier',
  'poisoned',
  'paused',
  'disabled',
  'waiting_for_pull',
  'leased',
  'delivered',
  'dead_letter',
  'dropped',
  'replay_under_way',
  'replay_ended',
] as const;

const deliveryStates = ['idle', 'delivering', 'waiting', 'retrying', 'stopped', 'delivered', 'given_up'] as const;

export const deliveryExplainEndpoints = endpoints({
  'GET /api/explain/delivery/{id}': {
    summary:
      'Why a delivery has not happened. The id is that of a subscriber or of a batch, or the name of a subscriber',
    tag: 'explain',
    allow: ['viewer', 'operator', 'client', 'subscriber'],
    params: z.object({ id: z.string().min(1).max(100).describe('such as `billing--1a2b3c4d` or `1a2b3c4d_0_17_19`') }),
    answer: z.object({
      subject: z.object({
        kind: z.enum(['subscriber', 'batch']),
        id: z.string(),
        /** The subscriber. */
        name: z.string(),
        subscriber: id,
      }),
      state: z.enum(deliveryStates),
      summary: z.string(),
      reasons: z.array(
        z.object({
          code: z.enum(deliveryReasonCodes),
          message: z.string(),
          data: z.record(z.string(), z.unknown()),
        }),
      ),
      /** What will happen next, or what the user can do. */
      next: z.string().nullable(),
    }),
  },
});
