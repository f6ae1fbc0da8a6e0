/** The actions on a log: search, follow, wrap lines, copy, download. */
import { type KeyboardEvent, useId, useState } from 'react';
import { logUrl } from '../../client.ts';
import { plainText } from './ansi.ts';
import { mostHits } from './log-search.ts';
import type { LogStore } from './log-store.ts';
import type { LogFind } from './use-log-find.ts';

interface Props {
  readonly run: string;
  readonly store: LogStore;
  readonly find: LogFind;
  readonly step: (direction: 1 | -1) => void;
  readonly goToLine: (line: number) => void;
  readonly follows: boolean;
  readonly setFollows: (follows: boolean) => void;
  readonly wraps: boolean;
  readonly setWraps: (wraps: boolean) => void;
}

/** More than this no clipboard is glad of. */
const mostCopiedBytes = 8 * 1024 * 1024;

export function LogBar({ run, store, find, step, goToLine, follows, setFollows, wraps, setWraps }: Props) {
  return (
    <div className="log-bar">
      <FindField find={find} step={step} goToLine={goToLine} />
      <div className="log-tools">
        <button type="button" className="button" aria-pressed={follows} onClick={() => setFollows(!follows)}>
          Follow
        </button>
        <button type="button" className="button" aria-pressed={wraps} onClick={() => setWraps(!wraps)}>
          Wrap
        </button>
        {'clipboard' in navigator && store.keptBytes <= mostCopiedBytes ? <Copy store={store} /> : null}
        <a className="button" href={logUrl(run)} download={`${run}.log`}>
          Download
        </a>
      </div>
    </div>
  );
}

function FindField({ find, step, goToLine }: Pick<Props, 'find' | 'step' | 'goToLine'>) {
  const id = useId();
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.key === 'Escape') find.ask('');
    if (event.key !== 'Enter') return;
    event.preventDefault();
    const line = /^:(\d+)$/.exec(find.question.trim())?.[1];
    if (line === undefined) step(event.shiftKey ? -1 : 1);
    else goToLine(Number(line));
  };
  return (
    <search className="log-find">
      <div className="search-field">
        <label htmlFor={id} className="unseen">
          Find in the output
        </label>
        <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14" />
        </svg>
        <input
          id={id}
          type="search"
          value={find.question}
          placeholder="Find, or :120 for a line"
          spellCheck={false}
          autoComplete="off"
          onKeyDown={onKeyDown}
          onChange={(event) => find.ask(event.currentTarget.value)}
        />
      </div>
      {find.pattern === undefined ? null : (
        <>
          <span className="log-count" role="status">
            {countOf(find)}
          </span>
          <Step label="Previous match" shape="m4 10 4-4 4 4" disabled={find.count === 0} go={() => step(-1)} />
          <Step label="Next match" shape="m4 6 4 4 4-4" disabled={find.count === 0} go={() => step(1)} />
        </>
      )}
    </search>
  );
}

interface StepProps {
  readonly label: string;
  readonly shape: string;
  readonly disabled: boolean;
  readonly go: () => void;
}

function Step({ label, shape, disabled, go }: StepProps) {
  return (
    <button type="button" className="button bare" aria-label={label} title={label} disabled={disabled} onClick={go}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={shape} />
      </svg>
    </button>
  );
}

function countOf({ count, current, isBusy, isFull }: LogFind): string {
  if (count === 0) return isBusy ? 'searching…' : 'no match';
  const all = isFull ? `${mostHits.toLocaleString('en')}+` : `${count.toLocaleString('en')}${isBusy ? '…' : ''}`;
  return current === undefined ? all : `${(current + 1).toLocaleString('en')} of ${all}`;
}

function Copy({ store }: { readonly store: LogStore }) {
  const [word, setWord] = useState('Copy');
  const copy = async (): Promise<void> => {
    const rows = store.read(store.firstRow, store.rows);
    const text = rows.map((row, index) => `${index > 0 && !row.goesOn ? '\n' : ''}${plainText(row.text)}`).join('');
    try {
      await navigator.clipboard.writeText(text);
      setWord('Copied');
    } catch {
      setWord('Not allowed');
    }
    setTimeout(() => setWord('Copy'), 2_000);
  };
  return (
    <button type="button" className="button" onClick={() => void copy()}>
      {word}
    </button>
  );
}
