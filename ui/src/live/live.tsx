/**
 * Keeps every page live: the stream of changes says which answers are outdated, and those on show are read again. No page
 * polls. What one looks at is read within a moment; what sums up all jobs at most once a second.
 */
import { type QueryClient, type QueryKey, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, use, useEffect, useState, useSyncExternalStore } from 'react';
import { tenantBase } from '../client.ts';
import { keys } from '../queries.ts';
import { useAccess } from '../tenants/access.tsx';
import type { LiveState, Told } from './change-stream.ts';
import { Feed } from './feed.ts';
import { Refresher } from './refresher.ts';
import { touchedBy } from './touched.ts';

const promptly = { afterMs: 20, everyMs: 250 };
const calmly = { afterMs: 200, everyMs: 1_000 };

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
  const later = new Refresher({ ...calmly, refresh, isHidden });

  const onTold = (told: Told): void => {
    if (told.kind === 'refused') void client.invalidateQueries({ queryKey: keys.me });
    if (told.kind !== 'digest') return;
    const touched = touchedBy(told.digest);
    soon.touch(touched.soon);
    later.touch(touched.later);
  };
  const feed = new Feed({ base: tenantBase, onTold });
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
  const isMissing = useAccess().state === 'missing';
  useEffect(() => {
    if (isMissing) return undefined;
    live.start();
    return live.stop;
  }, [live, isMissing]);
  return <FeedContext value={live.feed}>{children}</FeedContext>;
}

export function useFeed(): Feed {
  const feed = use(FeedContext);
  if (feed === undefined) throw new Error('useFeed outside of LiveProvider');
  return feed;
}

export function useLiveState(): LiveState {
  const feed = useFeed();
  return useSyncExternalStore(feed.subscribe, feed.state);
}
