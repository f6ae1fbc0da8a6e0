/**
 * Queries of the event bus. Positions and deliveries change with every batch, which no digest announces one by one, so pages
 * poll while they are visible.
 */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { pageIn } from '../../../src/http/client.ts';
import { listAll, type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Topic = TenantAnswer<'GET /bus/topics'>[number];
export type Subscriber = Awaited<ReturnType<typeof fetchSubscribers>>[number];
export type SubscriberDetail = TenantAnswer<'GET /bus/subscribers/{id}'>;
export type Delivery = TenantAnswer<'GET /bus/subscribers/{id}/deliveries'>['items'][number];
export type DeadLetter = TenantAnswer<'GET /bus/dead_letters'>['items'][number];
export type Replay = TenantAnswer<'GET /bus/subscribers/{id}/replays'>['items'][number];
export type BusActivity = TenantAnswer<'GET /bus/activity'>;

const pollMs = 2_000;
/** Charts have a step of a minute or more. */
const chartPollMs = 10_000;

async function fetchSubscribers(signal: AbortSignal) {
  const { items } = await listAll(async (cursor, limit) =>
    pageIn(await tenant('GET /bus/subscribers', { query: { cursor, limit }, signal })),
  );
  return items;
}

export function useTopics() {
  return useQuery({
    queryKey: [...keys.bus, 'topics'],
    queryFn: ({ signal }) => tenant('GET /bus/topics', { signal }),
    refetchInterval: pollMs,
  });
}

export function useSubscribers() {
  return useQuery({
    queryKey: [...keys.bus, 'subscribers'],
    queryFn: ({ signal }) => fetchSubscribers(signal),
    refetchInterval: pollMs,
  });
}

export function useSubscriber(id: string) {
  return useQuery({
    queryKey: keys.subscriber(id),
    queryFn: ({ signal }) => tenant('GET /bus/subscribers/{id}', { params: { id }, signal }),
    refetchInterval: pollMs,
  });
}

/** Why its events are not delivered, or that nothing is queued. */
export function useDeliveryWhy(id: string) {
  return useQuery({
    queryKey: keys.subscriber(id, 'why'),
    queryFn: ({ signal }) => tenant('GET /api/explain/delivery/{id}', { params: { id }, signal }),
    refetchInterval: pollMs,
  });
}

export function useDeliveries(id: string, { failed, limit }: { readonly failed: boolean; readonly limit: number }) {
  return useQuery({
    queryKey: keys.subscriber(id, 'deliveries', failed, limit),
    queryFn: ({ signal }) =>
      tenant('GET /bus/subscribers/{id}/deliveries', {
        params: { id },
        query: { limit, ...(failed ? { failed: 'true' } : {}) },
        signal,
      }),
    refetchInterval: pollMs,
    placeholderData: keepPreviousData,
  });
}

/** All attempts of one batch that are kept, newest first. */
export function useAttempts(id: string, batch: string) {
  return useQuery({
    queryKey: keys.subscriber(id, 'attempts', batch),
    queryFn: async ({ signal }) => {
      const query = { batch, limit: 1_000 };
      return (await tenant('GET /bus/subscribers/{id}/deliveries', { params: { id }, query, signal })).items;
    },
  });
}

export function useDeadLetters(subscriber: string | undefined, limit: number) {
  return useQuery({
    queryKey: [...keys.deadLetters, subscriber, limit],
    queryFn: ({ signal }) => tenant('GET /bus/dead_letters', { query: { subscriber, limit }, signal }),
    refetchInterval: pollMs,
    placeholderData: keepPreviousData,
  });
}

export function useDeadLetter(id: string) {
  return useQuery({
    queryKey: [...keys.deadLetters, 'one', id],
    queryFn: ({ signal }) => tenant('GET /bus/dead_letters/{id}', { params: { id }, signal }),
  });
}

export function useReplays(id: string) {
  return useQuery({
    queryKey: keys.subscriber(id, 'replays'),
    queryFn: ({ signal }) =>
      tenant('GET /bus/subscribers/{id}/replays', { params: { id }, query: { limit: 50 }, signal }),
    refetchInterval: pollMs,
  });
}

/** Of all topics and subscribers, or of one. */
export function useBusActivity(minutes: number, of: { readonly topic?: string; readonly subscriber?: string } = {}) {
  return useQuery({
    queryKey: [...keys.bus, 'activity', minutes, of],
    queryFn: ({ signal }) => tenant('GET /bus/activity', { query: { minutes, ...of }, signal }),
    refetchInterval: chartPollMs,
    placeholderData: keepPreviousData,
  });
}
