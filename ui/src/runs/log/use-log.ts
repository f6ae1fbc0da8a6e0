/** The output of one run as it comes. */
import { useQueryClient } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import { logUrl, tenant } from '../../client.ts';
import { keys } from '../../queries.ts';
import { LogFollower, type LogSnapshot } from './log-follower.ts';

export function useLog(run: string): LogSnapshot {
  const client = useQueryClient();
  const [follower] = useState(
    () =>
      new LogFollower({
        open: (signal) => fetch(`${logUrl(run)}?follow=true`, { signal }),
        hasEnded: async () => {
          const now = await tenant('GET /api/runs/{id}', { params: { id: run } });
          client.setQueryData(keys.run(run), now);
          return now.finished_at !== null;
        },
        onFirstOutput: () => void client.invalidateQueries({ queryKey: keys.run(run), exact: true }),
      }),
  );
  return useSyncExternalStore(follower.subscribe, follower.snapshot);
}
