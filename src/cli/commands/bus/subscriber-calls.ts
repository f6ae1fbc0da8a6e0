/**
 * The calls about one subscriber. With a name they are those of operators; without, those about the subscriber of the caller's
 * own key.
 */
import type { z } from 'zod';
import type { subscriberChange } from '../../../api/bus/shapes.ts';
import type { Server } from '../../session/server.ts';

/** The fields of `PATCH`. */
export type SubscriberChange = z.input<typeof subscriberChange>;

export interface ReplayWish {
  readonly from: string;
  readonly to?: string | undefined;
  readonly only_undelivered: boolean;
}

export function makeSubscriberCalls({ tenant }: Server, id: string | undefined) {
  const named = id === undefined ? undefined : { params: { id } };
  return {
    show: () => (named ? tenant('GET /bus/subscribers/{id}', named) : tenant('GET /bus/subscriber')),
    change: (body: SubscriberChange) =>
      named ? tenant('PATCH /bus/subscribers/{id}', { ...named, body }) : tenant('PATCH /bus/subscriber', { body }),
    pause: (body: { readonly reason?: string | undefined }) =>
      named
        ? tenant('POST /bus/subscribers/{id}/pause', { ...named, body })
        : tenant('POST /bus/subscriber/pause', { body }),
    resume: (body: { readonly from?: string | undefined }) =>
      named
        ? tenant('POST /bus/subscribers/{id}/resume', { ...named, body })
        : tenant('POST /bus/subscriber/resume', { body }),
    test: () => (named ? tenant('POST /bus/subscribers/{id}/test', named) : tenant('POST /bus/subscriber/test')),
    addSecret: () =>
      named
        ? tenant('POST /bus/subscribers/{id}/secret', { ...named, body: {} })
        : tenant('POST /bus/subscriber/secret', { body: {} }),
    endSecrets: (all: boolean) => {
      const query = { all: all ? ('true' as const) : ('false' as const) };
      return named
        ? tenant('DELETE /bus/subscribers/{id}/secret', { ...named, query })
        : tenant('DELETE /bus/subscriber/secret', { query });
    },
    startReplay: (body: ReplayWish) =>
      named
        ? tenant('POST /bus/subscribers/{id}/replays', { ...named, body })
        : tenant('POST /bus/subscriber/replays', { body }),
    readReplay: (replay: string) =>
      id === undefined
        ? tenant('GET /bus/subscriber/replays/{id}', { params: { id: replay } })
        : tenant('GET /bus/subscribers/{id}/replays/{replay}', { params: { id, replay } }),
    remove: () => (named ? tenant('DELETE /bus/subscribers/{id}', named) : tenant('DELETE /bus/subscriber')),
  };
}

export type SubscriberCalls = ReturnType<typeof makeSubscriberCalls>;
export type SubscriberDetail = Awaited<ReturnType<SubscriberCalls['show']>>;
