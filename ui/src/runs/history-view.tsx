/** A run's life, moment by moment, with how long it was from one to the next. */
import { Answer } from '../kit/answer.tsx';
import '../kit/moments.css';
import { formatLocal, formatSpan } from '../time/format.ts';
import { sentence } from '../explain/sentence.ts';
import { type Moment, type Run, useHistory } from './use-runs.ts';

export function HistoryView({ run }: { readonly run: Run }) {
  const history = useHistory(run.id);
  return (
    <Answer of={history} what="Reading the history">
      {({ items }) => (
        <ol className="moments">
          {items.map((moment, index) => (
            // two moments may fall into one
            <MomentRow key={index} moment={moment} before={items[index - 1]} />
          ))}
        </ol>
      )}
    </Answer>
  );
}

/** Workers and schedulers are left out as actors: the message names them if they matter. */
const machinery: ReadonlySet<string> = new Set(['worker', 'scheduler']);

function MomentRow({ moment, before }: { readonly moment: Moment; readonly before: Moment | undefined }) {
  const since = before === undefined ? undefined : Date.parse(moment.at) - Date.parse(before.at);
  return (
    <li data-what={moment.what}>
      <span className="moment-what">
        {sentence(moment.message)}
        {moment.actor === null || machinery.has(moment.actor) ? null : (
          <span className="muted"> By {moment.actor}.</span>
        )}
      </span>
      <span className="moment-at">
        <time dateTime={moment.at} title={formatLocal(moment.at)}>
          {moment.at.slice(0, 10)} {moment.at.slice(11, 23).replace(/Z$/, '')}Z
        </time>
        {since === undefined ? null : <span className="moment-since">+{formatSpan(since)}</span>}
      </span>
    </li>
  );
}
