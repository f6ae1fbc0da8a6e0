/**
 * Keeps the pages true without asking in a loop: one feed per tab says what happened, and the answers it outdates are
 * read again, at most four times a second.
 *
 * A run tells of its creation and its end, not of being claimed in between; so what a creation touched is read once
 * more a moment later, which is when it runs. The counts of the last hour are read at that slower pace only.
 */
import { type QueryClient, type QueryKey, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { eventsUrl } from '../client.ts';
import { keys } from '../queries.ts';
import type { LiveEvent } from './event.ts';
import { Feed, type FeedSnapshot } from './feed.ts';
import { Refresher } from './refresher.ts';
import { touchedBy } from './touched.ts';

const promptly = { afterMs: 20, everyMs: 250 };
const settled = { afterMs: 1_000, everyMs: 1_000 };

interface Live {
  readonly feed: Feed;
  readonly start: () => void;
  readonly stop: () => void;
}

function makeLive(client: QueryClient): Live {
  const isHidden = () => document.hidden;
  const refresh = (touched: readonly QueryKey[]) =>
    Promise.all(touched.map((queryKey) => client.invalidateQueries({ queryKey })));
  const soon = new Refresher({ ...promptly, refresh, isHidden });
  const later = new Refresher({ ...settled, refresh: async (touched) => soon.touch(touched), isHidden });

  const onEvent = (event: LiveEvent): void => {
    // of the many runs only those on show have an answer to outdate
    const touched = touchedBy(event).filter((key) => key[0] !== 'run' || client.getQueryState(key) !== undefined);
    soon.touch(touched);
    later.touch(event.type === 'run.created' ? [...touched, keys.activity] : [keys.activity]);
  };
  const recheckSession = () => void client.invalidateQueries({ queryKey: keys.me });
  const feed = new Feed({ url: eventsUrl, onEvent, onOpen: () => soon.touch([[]]), onRefused: recheckSession });
  const wake = () => {
    soon.wake();
    later.wake();
  };
  return {
    feed,
    start: () => {
      document.addEventListener('visibilitychange', wake);
      feed.start();
    },
    stop: () => {
      document.removeEventListener('visibilitychange', wake);
      feed.stop();
      soon.stop();
      later.stop();
    },
  };
}

const FeedContext = createContext<Feed | undefined>(undefined);

export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient();
  const [live] = useState(() => makeLive(client));
  useEffect(() => {
    live.start();
    return live.stop;
  }, [live]);
  return <FeedContext value={live.feed}>{children}</FeedContext>;
}

export function useFeed(): FeedSnapshot {
  const feed = useContext(FeedContext);
  if (feed === undefined) throw new Error('useFeed outside of LiveProvider');
  return useSyncExternalStore(feed.subscribe, feed.snapshot);
}
