/** The tokens that an action will change: task, instant and current state. */
import type { State as StateName } from '../../../src/api/shapes.ts';
import { State } from '../kit/state.tsx';
import { formatInstant } from '../time/format.ts';

interface Token {
  readonly task: string;
  readonly instant: string;
  readonly state: StateName | 'ready';
}

/** A longer list would not be read. */
const maxListed = 200;

export function TokenList({ tokens, total }: { readonly tokens: readonly Token[]; readonly total: number }) {
  const listed = tokens.slice(0, maxListed);
  return (
    <>
      {/* it scrolls, so the keyboard must be able to reach it */}
      <ul className="preview-rows" tabIndex={0} aria-label="Tokens">
        {listed.map(({ task, instant, state }) => (
          <li key={`${task} ${instant}`}>
            <span>{task}</span>
            <span className="muted">{formatInstant(instant)}</span>
            <State state={state === 'ready' ? 'active' : state} />
          </li>
        ))}
      </ul>
      {total > listed.length ? (
        <p className="muted">… and {(total - listed.length).toLocaleString('en')} more</p>
      ) : null}
    </>
  );
}
