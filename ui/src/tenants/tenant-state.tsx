/** How a tenant stands: a shape, whether it runs, and a colour that says whether that is well. */
import { Due } from '../time/times.tsx';
import { nextTryOf, sentenceWords, standingWhy, standingWord, type Tenant, type Tone, toneOf } from './standing.ts';
import './tenants.css';

const ring = 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11Z';
const shapes: Readonly<Record<Tone, string>> = {
  well: 'm3 8.6 3.4 3.4L13 4.5',
  quiet: `${ring}M4.2 11.8l7.6-7.6`,
  busy: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.8h-2.8',
  waits: `${ring}M8 5v3.2l2.2 1.3`,
  bad: 'M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01',
};

const meanings: Readonly<Record<Tenant['state'], string>> = {
  ENABLED: 'its scheduler waits for a slot',
  ALLOCATED: 'it has a slot, and its scheduler is being started',
  STARTED: 'its scheduler runs',
  DISABLED: 'its scheduler does not run',
};

const notHeardOf = 'its scheduler ran when it was last heard of';

type Shown = Pick<Tenant, 'state' | 'reason_code' | 'standing' | 'summary'>;

export function TenantState({ tenant }: { readonly tenant: Shown }) {
  const { state, standing, summary } = tenant;
  // it runs, but needs attention
  const tone = standing === 'runs' && summary !== 'runs' ? 'waits' : toneOf(tenant);
  const meaning = tone === 'bad' && state === 'STARTED' ? notHeardOf : meanings[state];
  return (
    <span className="tenant-state" data-tone={tone} title={`${state}: ${meaning}`}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={shapes[tone]} />
      </svg>
      {standingWord(tenant)}
    </span>
  );
}

/** The fault, why it does not run yet or who stopped it, and when it is retried. */
export function Reason({ tenant }: { readonly tenant: Shown & Pick<Tenant, 'retry_at'> }) {
  const nextTryAt = nextTryOf(tenant);
  const why = standingWhy(tenant);
  if (why === null) return null;
  return (
    <>
      {sentenceWords(why)}
      {nextTryAt === null ? null : (
        <>
          {'; '}
          <span className="tenant-retry">
            again <Due at={nextTryAt} />
          </span>
        </>
      )}
    </>
  );
}
