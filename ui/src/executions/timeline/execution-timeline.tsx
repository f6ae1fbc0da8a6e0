/** An execution over time: a row for each step, a bar for each of its visits. Bars lead to the step and to the history. */
import { useMemo } from 'react';
import { Link, useSearchParams } from 'wouter';
import { makeScale, type Scale } from '../../job/timeline/scale.ts';
import { TimeAxis } from '../../job/timeline/time-axis.tsx';
import '../../job/state-colours.css';
import '../../job/timeline/timeline.css';
import '../tree/tree.css';
import { Answer } from '../../kit/answer.tsx';
import { Empty } from '../../kit/empty.tsx';
import { withChanges } from '../../kit/url-state.ts';
import { useNow } from '../../time/clock.ts';
import { formatSpan } from '../../time/format.ts';
import { toneOf } from '../status.tsx';
import { makeStepNames, type StepName, type StepNames } from '../step-names.ts';
import { hasEnded, type HistoryEntry, useHistory, type ExecutionViewProps } from '../use-executions.ts';
import { type Bar, type BarRow, barsOf } from './bars.ts';

/** Commits that are drawn. */
const maxCommits = 1_000;
const maxRows = 500;
/** The shares of the parts of a bar add up to more than 1, below which they would not fill it. */
const flexUnits = 1_000_000;

export default function ExecutionTimeline({ execution, latest }: ExecutionViewProps) {
  const history = useHistory(latest.id, execution.rev, maxCommits);
  const names = useMemo(() => makeStepNames(latest.tree), [latest.tree]);
  const isLive = !hasEnded(execution) && execution.rev === latest.rev;
  return (
    <Answer of={history} what="Reading the history">
      {(entries) =>
        entries.length === 0 ? (
          <Empty title="Nothing has happened yet" />
        ) : (
          <>
            {entries[0]?.rev === 1 ? null : (
              <p className="note">Only the last {entries.length.toLocaleString('en')} commits are drawn.</p>
            )}
            {isLive ? (
              <LiveChart id={latest.id} entries={entries} names={names} />
            ) : (
              <Chart id={latest.id} entries={entries} names={names} endMs={Date.parse(entries.at(-1)?.at ?? '')} />
            )}
          </>
        )
      }
    </Answer>
  );
}

interface ChartProps {
  readonly id: string;
  readonly names: StepNames;
  readonly entries: readonly HistoryEntry[];
  readonly endMs: number;
}

/** Never before the last commit: the browser's clock may be another than the server's. */
function LiveChart(props: Omit<ChartProps, 'endMs'>) {
  const now = useNow('second');
  return <Chart {...props} endMs={Math.max(now, Date.parse(props.entries.at(-1)?.at ?? ''))} />;
}

function Chart({ id, names, entries, endMs }: ChartProps) {
  const rows = useMemo(() => barsOf(entries, endMs), [entries, endMs]);
  const scale = useMemo(() => makeScale(rows.flatMap(({ bars }) => bars)), [rows]);
  if (rows.length === 0) return <Empty title="No step took longer than one commit" />;
  return (
    <>
      <div className="timeline execution-timeline">
        <TimeAxis scale={scale} />
        <ol className="timeline-rows">
          {rows.slice(0, maxRows).map((row) => (
            <Row key={row.path} id={id} row={row} name={names.ofNode(row.bars[0]?.node ?? '')} scale={scale} />
          ))}
        </ol>
      </div>
      {rows.length > maxRows ? <p className="muted">and {rows.length - maxRows} more steps</p> : null}
      <p className="timeline-legend">
        {(['running', 'retry', 'incident', 'undoing', 'closing', 'done'] as const).map((state) => (
          <span key={state} className="execution-key state-ink" data-state={toneOf(state)}>
            <span className="timeline-work" /> {state}
          </span>
        ))}
      </p>
    </>
  );
}

interface RowProps {
  readonly id: string;
  readonly row: BarRow;
  readonly name: StepName;
  readonly scale: Scale;
}

function Row({ id, row: { path, bars }, name: { verb, title }, scale }: RowProps) {
  const words = `${verb} ${title}`.trim();
  return (
    <li className="timeline-row">
      <span className="timeline-name" title={path}>
        <span>
          <span className="tree-verb">{verb}</span> {title}
        </span>
      </span>
      <span className="timeline-track">
        {bars.map((bar) => (
          <BarLink key={bar.node} id={id} name={words} bar={bar} scale={scale} />
        ))}
      </span>
    </li>
  );
}

function BarLink({
  id,
  name,
  bar,
  scale,
}: {
  readonly id: string;
  readonly name: string;
  readonly bar: Bar;
  readonly scale: Scale;
}) {
  const [search] = useSearchParams();
  const [left, right] = [scale.place(bar.from), scale.place(bar.to)];
  const parts = bar.stretches.map(({ state, from, to }) => `${state} ${formatSpan(to - from)}`);
  const words = `${name}, ${bar.attempts > 1 ? `${bar.attempts} attempts, ` : ''}${parts.join(', ')}`;
  return (
    <Link
      href={`/executions/${id}?${withChanges(search, { view: '', node: bar.node })}`}
      className="timeline-bar"
      aria-label={words}
      title={words}
      style={{ left: `${left * 100}%`, width: `${(right - left) * 100}%` }}
    >
      {bar.stretches.map(({ state, from, to }) => (
        <span
          key={from}
          className="timeline-work state-ink"
          data-state={toneOf(state)}
          data-part={state}
          style={{ flex: `${flexUnits * Math.max(0, scale.place(to) - scale.place(from))} 0 0` }}
        />
      ))}
    </Link>
  );
}
