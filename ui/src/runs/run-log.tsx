/** A run's output, live. Stays at the end while one is at the end; scroll up and it keeps still. */
import { useQueryClient } from '@tanstack/react-query';
import { memo, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react';
import { logUrl, tenant } from '../client.ts';
import { keys } from '../queries.ts';
import { LogFollower, type LogState } from './log-follower.ts';

const words: Readonly<Record<LogState, string>> = {
  opening: 'Opening…',
  following: 'Following',
  complete: 'Complete',
  lost: 'Connection lost, trying again…',
};
const nearEndPx = 24;

function useLog(run: string) {
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
        onFirstOutput: () => void client.invalidateQueries({ queryKey: keys.run(run) }),
      }),
  );
  return useSyncExternalStore(follower.subscribe, follower.snapshot);
}

export function RunLog({ run }: { readonly run: string }) {
  const { state, text } = useLog(run);
  const box = useRef<HTMLPreElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  useLayoutEffect(() => {
    if (atEnd && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [atEnd, text]);

  const look = (): void => {
    const { current } = box;
    if (current !== null) setAtEnd(current.scrollHeight - current.scrollTop - current.clientHeight < nearEndPx);
  };
  return (
    <section className="log" aria-labelledby="log-title">
      <header className="log-head">
        <h2 id="log-title">Output</h2>
        <span className="muted" role="status">
          {words[state]}
        </span>
        {atEnd ? null : (
          <button type="button" className="button small" onClick={() => setAtEnd(true)}>
            To the end
          </button>
        )}
        <a className="log-download" href={logUrl(run)} download={`${run}.log`}>
          Download
        </a>
      </header>
      {text.isCut ? <p className="log-cut">Only the end is shown here. Download has all that was kept.</p> : null}
      {/* a region that scrolls must be reachable by keyboard */}
      <pre ref={box} className="log-text" tabIndex={0} aria-labelledby="log-title" onScroll={look}>
        {text.blocks.map((block) => (
          <Block key={block.number} text={block.text} />
        ))}
        {text.blocks.length > 0 ? null : <Silence state={state} />}
      </pre>
    </section>
  );
}

const Block = memo(function Block({ text }: { readonly text: string }) {
  return <span>{text}</span>;
});

function Silence({ state }: { readonly state: LogState }) {
  return (
    <span className="muted">{state === 'complete' ? 'This run wrote nothing.' : 'Nothing has been written yet.'}</span>
  );
}
