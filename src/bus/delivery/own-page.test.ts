/** A reader far behind reads a page once for all the batches in it. */
import { expect, it } from 'vitest';
import type { BusEvent } from '../store.ts';
import { OwnPage, type Page } from './own-page.ts';
import type { Subscription } from './subscriptions.ts';

const event = (seq: number): BusEvent => ({ seq }) as BusEvent;
const events = [1, 2, 3, 4, 5, 6].map(event);
const subscription = {} as Subscription;

function counting(): { reads: number; readonly read: () => Promise<Page> } {
  const source = {
    reads: 0,
    read: async (): Promise<Page> => {
      source.reads += 1;
      return { events, lookedTo: 8 };
    },
  };
  return source;
}

it('later batches of a page are taken from memory, up to the number that was looked at', async () => {
  const own = new OwnPage();
  const source = counting();
  await own.after(subscription, 0, 20, source.read);
  expect(await own.after(subscription, 2, 20, source.read)).toEqual({ events: events.slice(2), lookedTo: 8 });
  expect(await own.after(subscription, 4, 5, source.read)).toEqual({ events: [event(5)], lookedTo: 5 });
  expect(source.reads).toBe(1);
  await own.after(subscription, 8, 20, source.read);
  expect(source.reads).toBe(2);
});

it('a page is read again for a changed subscription, for an earlier position, and after the reader was loaded', async () => {
  const own = new OwnPage();
  const source = counting();
  await own.after(subscription, 2, 20, source.read);
  await own.after(subscription, 1, 20, source.read);
  expect(source.reads).toBe(2);
  await own.after({} as Subscription, 3, 20, source.read);
  expect(source.reads).toBe(3);
  own.forget();
  await own.after(subscription, 3, 20, source.read);
  expect(source.reads).toBe(4);
});
