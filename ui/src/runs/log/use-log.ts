/** The output of one run as it comes. */
import { useQueryClient } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import { logUrl, tenant } from '../../client.ts';
import { keys } from '../../queries.ts';
import { LogFollower, type LogSnapshot } from './log-follower.ts';

type Subscribe = (listener: () => void) => () => void;

/**
 * Only while the tab is in sight: each log that is followed holds a connection, and a browser opens no more than six to a
 * server, so that a few forgotten tabs would keep all others waiting. It reads on where it was when the tab shows again.
 */
function whileSeen(subscribe: Subscribe): Subscribe {
  return (listener) => {
    let leave: (() => void) | undefined;
    const look = (): void => {
      if (document.hidden) {
        leave?.();
        leave = undefined;
      } else {
        leave ??= subscribe(listener);
      }
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      leave?.();
    };
  };
}

export function useLog(run: string): LogSnapshot {
  const client = useQueryClient();
  const [follower] = useState(
    () =>
      new LogFollower({
        open: (signal, from) => fetch(`${logUrl(run)}?follow=true&from=${from}`, { signal }),
        hasEnded: async () => {
          const now = await tenant('GET /api/runs/{id}', { params: { id: run } });
          client.setQueryData(keys.run(run), now);
          return now.finished_at !== null;
        },
        onFirstOutput: () => void client.invalidateQueries({ queryKey: keys.run(run), exact: true }),
      }),
  );
  const [subscribe] = useState(() => whileSeen(follower.subscribe));
  return useSyncExternalStore(subscribe, follower.snapshot);
}
